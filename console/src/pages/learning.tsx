// What was learned from conversations and not believed yet: evidence, effect, and a person's yes or no to it.
import type { VNode } from "preact";
import { argument, go } from "../core/router";
import { Review } from "../learning/review";
import { Settings } from "../learning/settings";
import { Page } from "../ui/page";
import { Choice } from "../ui/parts";

export function LearningPage(): VNode {
  const view = argument.value === "settings" ? "settings" : "review";
  return (
    <Page title="Learning">
      <div class="tabs"><Choice label="View" value={view} options={[["review", "Review"], ["settings", "Settings"]]} onChoose={(each) => (each === "settings" ? go("learning", each) : go("learning"))} /></div>
      {view === "settings" ? <Settings /> : <Review />}
    </Page>
  );
}
