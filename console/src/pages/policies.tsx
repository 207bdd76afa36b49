// Policies: who can do what, and everything that changes that.
import type { VNode } from "preact";
import { argument, go } from "../core/router";
import { Files } from "../policies/files";
import { Presets } from "../policies/presets";
import { Shadow, Suggest } from "../policies/suggest";
import { Who } from "../policies/who";
import { Page } from "../ui/page";
import { Choice } from "../ui/parts";

const VIEWS = { who: Who, presets: Presets, files: Files, suggestions: Suggest, shadow: Shadow } as const;
type View = keyof typeof VIEWS;
const WORDS: readonly (readonly [View, string])[] = [["who", "Permissions"], ["presets", "Presets"], ["files", "Policy files"], ["suggestions", "Suggestions"], ["shadow", "Shadow policy"]];

export function PoliciesPage(): VNode {
  const view: View = argument.value in VIEWS ? (argument.value as View) : "who";
  const Shown = VIEWS[view];
  return (
    <Page title="Policies">
      <div class="tabs"><Choice label="View" value={view} options={WORDS} onChoose={(each) => go("policies", each)} /></div>
      <Shown />
    </Page>
  );
}
