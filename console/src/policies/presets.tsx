// The shipped sets of policies: what each lets happen, which one is in force, and going over to another.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { status } from "../core/store";
import { Sure, useAttempt } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { PRESETS } from "./preset_words";
import { TryOut } from "./testing";
import type { NewPreset } from "../types";

export function Presets(): VNode {
  const { error, busy, attempt } = useAttempt();
  const [tried, setTried] = useState("");
  const now = status.value?.policy.preset;
  const use = (preset: NewPreset["preset"]) => attempt(async () => {
    await palyra.setPreset({ preset });
    status.value = await palyra.status();
  }, "Preset activated.");
  return (
    <>
      <Problem text={error} />
      <ul class="cards side">
        {PRESETS.map(([name, words, what]) => (
          <li key={name} class={name === now ? "card here" : "card"} aria-current={name === now || undefined}>
            <div class="row"><strong>{words}</strong>{name === now && <Badge tone="good">Active</Badge>}</div>
            <p>{what}</p>
            {name !== now && (
              <div class="row">
                <Sure words={`Use ${words}…`} question={`From now on ${words} and your own files decide every call.`} yes={`Use ${words}`} tone="main" disabled={busy} onYes={() => void use(name)} />
                <button type="button" class="quiet small" aria-expanded={tried === name} onClick={() => setTried(tried === name ? "" : name)}>What would change?</button>
              </div>
            )}
            {tried === name && name !== now && <TryOut trial={{ preset: name }} words="Backtest" />}
          </li>
        ))}
      </ul>
    </>
  );
}
