// How sure something must be to be shown or applied, and whether anything is applied without asking. In force at once.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { count, visible } from "../core/words";
import { CheckField, TextField } from "../ui/form";
import { useAttempt, useLoaded } from "../ui/page";
import { Problem } from "../ui/parts";
import type { LearningSettings, Threshold } from "../types";

const CERTAIN = 10_000;
const MINUTE_MS = 60_000;
const KINDS = [["fact", "a fact", true], ["preference", "a preference", true], ["procedure", "a procedure", false], ["policy", "a policy", false]] as const;
type Kind = (typeof KINDS)[number][0];
type Draft = { enabled: boolean; automatic: boolean; minutes: string } & Record<`${Kind}_review` | `${Kind}_auto`, string>;

function percent(bps: number): string {
  return bps > CERTAIN ? "" : String(bps / 100);
}

function drafted(from: LearningSettings): Draft {
  const of = (kind: Kind): Threshold => from.thresholds?.[kind] ?? { review_bps: CERTAIN };
  const draft = { enabled: from.enabled ?? true, automatic: from.thresholds?.automatic ?? true, minutes: String((from.cooldown_ms ?? 0) / MINUTE_MS) } as Draft;
  for (const [kind] of KINDS) {
    draft[`${kind}_review`] = percent(of(kind).review_bps);
    draft[`${kind}_auto`] = percent(of(kind).auto_bps ?? CERTAIN + 1);
  }
  return draft;
}

/** Basis points of what was typed; NaN is what is none. Nothing at all means never. */
function bps(text: string): number {
  if (!text.trim()) return CERTAIN + 1;
  const found = Math.round(Number(text) * 100);
  return found >= 0 && found <= CERTAIN ? found : Number.NaN;
}

function changes(from: Draft, to: Draft): Record<string, boolean | number> {
  const found: Record<string, boolean | number> = {};
  if (from.enabled !== to.enabled) found["learning.enabled"] = to.enabled;
  if (from.automatic !== to.automatic) found["learning.automatic"] = to.automatic;
  if (from.minutes !== to.minutes) found["learning.cooldown_minutes"] = Number(to.minutes);
  for (const [kind, , auto] of KINDS) {
    if (from[`${kind}_review`] !== to[`${kind}_review`]) found[`learning.${kind}_review_bps`] = bps(to[`${kind}_review`]);
    if (auto && from[`${kind}_auto`] !== to[`${kind}_auto`]) found[`learning.${kind}_auto_bps`] = bps(to[`${kind}_auto`]);
  }
  return found;
}

export function Settings(): VNode {
  const found = useLoaded(() => palyra.learningSettings());
  const [draft, setDraft] = useState<Draft | undefined>();
  const [said, say] = useState("");
  const { error, busy, attempt } = useAttempt();
  useEffect(() => { if (found.value) setDraft(drafted(found.value)); }, [found.value]);
  if (!found.value || !draft) return found.error ? <Problem text={found.error} /> : <p role="status">Loading…</p>;
  const now = found.value;
  const changed = changes(drafted(now), draft);
  const set = (some: Partial<Draft>) => { say(""); setDraft({ ...draft, ...some }); };
  const wrongReview = (kind: Kind) => (!draft[`${kind}_review`].trim() || Number.isNaN(bps(draft[`${kind}_review`])) ? "Enter a number from 0 to 100." : "");
  const wrongAuto = (kind: Kind) => {
    const auto = bps(draft[`${kind}_auto`]);
    return Number.isNaN(auto) ? "Enter a number from 0 to 100, or leave it empty." : auto < bps(draft[`${kind}_review`]) ? "Must not be lower than the review threshold." : "";
  };
  const minutes = Number(draft.minutes);
  const wrongMinutes = Number.isInteger(minutes) && minutes >= 1 && minutes <= 1440 ? "" : "Enter a whole number from 1 to 1440.";
  const faulty = Boolean(wrongMinutes) || KINDS.some(([kind, , auto]) => wrongReview(kind) || (auto && wrongAuto(kind)));
  const save = () => attempt(async () => {
    await palyra.changeConfig({ changes: changed });
    say("Saved. Active now.");
    found.again();
  });
  return (
    <form class="form" aria-label="Learning settings" onSubmit={(event) => { event.preventDefault(); if (!faulty && Object.keys(changed).length) void save(); }}>
      <CheckField label="Learn from finished conversations" checked={draft.enabled} onChange={(enabled) => set({ enabled })} hint="When off, Palyra reviews a session only when you ask." />
      <CheckField label="Apply high-confidence finds automatically" checked={draft.automatic} onChange={(automatic) => set({ automatic })} hint="You get a notice and can roll back. Only your own statements are applied automatically, never content from pages, files or other people." />
      <TextField label="Minutes between reviews of a session" value={draft.minutes} onInput={(given) => set({ minutes: given })} wrong={wrongMinutes} eager />
      {KINDS.map(([kind, words, auto]) => (
        <fieldset key={kind} class="row fields">
          <legend>Confidence for {words}</legend>
          <TextField label="Review from (%)" value={draft[`${kind}_review`]} onInput={(given) => set({ [`${kind}_review`]: given } as Partial<Draft>)} wrong={wrongReview(kind)} eager />
          {auto ? <TextField label="Apply from (%)" value={draft[`${kind}_auto`]} onInput={(given) => set({ [`${kind}_auto`]: given } as Partial<Draft>)} wrong={wrongAuto(kind)} eager hint="Empty: never." />
            : <p class="hint">Never applied without your approval.</p>}
        </fieldset>
      ))}
      <Problem text={error} />
      <div class="row"><button type="submit" class="main" disabled={busy || faulty || !Object.keys(changed).length}>Save</button><span role="status" class="fine">{said}</span></div>
      <p class="hint">Facts and preferences are found by {now.model ? <span class="mono">{visible(now.model)}</span> : "rules"}; another model of class <code>extraction</code> is set by <code>models.extraction</code> and used after a restart. Each review uses at most {count(now.budget_tokens ?? 0)} tokens and {count(now.most_candidates ?? 0)} candidates.</p>
    </form>
  );
}
