// The shipped sets of policies: what each lets happen, which one is in force, and going over to another.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { status } from "../core/store";
import { Sure, useAttempt } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { TryOut } from "./testing";
import type { NewPreset } from "../types";

const PRESETS: readonly (readonly [NewPreset["preset"], string, string])[] = [
  ["locked", "Locked", "Only reading in the workspace. Everything else is denied until you permit it."],
  ["default", "Default", "Looks freely in the workspace, asks before it does anything. Secrets, wide paths and MCP tools are denied until you permit them."],
  ["coding", "Coding", "As Default, and changes files in the workspace without asking. What it changed can be undone."],
  ["research", "Research", "As Default, and fetches from the network while nothing private or untrusted was read."],
];

export function Presets(): VNode {
  const { error, busy, attempt } = useAttempt();
  const [tried, setTried] = useState("");
  const now = status.value?.policy.preset;
  const use = (preset: NewPreset["preset"]) => attempt(async () => {
    await palyra.setPreset({ preset });
    status.value = await palyra.status();
  }, "The preset is in force.");
  return (
    <>
      <Problem text={error} />
      <ul class="cards">
        {PRESETS.map(([name, words, what]) => (
          <li key={name} class={name === now ? "card here" : "card"} aria-current={name === now || undefined}>
            <div class="row"><strong>{words}</strong>{name === now && <Badge tone="good">in force</Badge>}</div>
            <p>{what}</p>
            {name !== now && (
              <div class="row">
                <Sure words={`Use ${words}…`} question={`Every call from now on is decided by ${words} and your own files.`} yes={`Use ${words}`} tone="main" disabled={busy} onYes={() => void use(name)} />
                <button type="button" class="quiet small" aria-expanded={tried === name} onClick={() => setTried(tried === name ? "" : name)}>What would change?</button>
              </div>
            )}
            {tried === name && name !== now && <TryOut trial={{ preset: name }} words="Try it on what happened" />}
          </li>
        ))}
      </ul>
    </>
  );
}
