// Bounds of a wider approval: how often it may be used, and up to which amount.
import type { VNode } from "preact";
import { covers } from "./covers";
import { visible } from "../core/words";
import type { Answer, Subject } from "../types";

export interface Bounds { calls: string; period: string; upto: string }

export const UNBOUNDED: Bounds = { calls: "", period: "hour", upto: "" };
const PERIODS = ["minute", "hour", "day", "session"] as const;
const AMOUNT = /^amount<=(.*)$/m;

/** The bounds as the answer has them; none for a subject that cannot be bound. */
export function bounded(subject: Subject | undefined, given: Bounds): Pick<Answer, "rate" | "upto"> {
  if (subject?.kind !== "arguments") return {};
  return {
    ...(given.calls ? { rate: `${given.calls}/${given.period}` } : {}),
    ...(given.upto && AMOUNT.test(subject.value ?? "") ? { upto: given.upto } : {}),
  };
}

export function BoundFields({ subject, given, onChange }: { subject: Subject | undefined; given: Bounds; onChange: (given: Bounds) => void }): VNode | null {
  if (subject?.kind !== "arguments") return null;
  const amount = AMOUNT.exec(subject.value ?? "")?.[1];
  return (
    <fieldset class="bounds">
      <legend>Limits for {visible(covers(subject))}</legend>
      <label>Calls at most <input type="number" min="1" max="10000" step="1" value={given.calls} placeholder="any" onInput={(event) => onChange({ ...given, calls: event.currentTarget.value })} /></label>
      <label>per <select value={given.period} onChange={(event) => onChange({ ...given, period: event.currentTarget.value })}>{PERIODS.map((each) => <option value={each}>{each}</option>)}</select></label>
      {amount !== undefined && <label>Amount up to <input type="number" min="0" step="any" value={given.upto} placeholder={amount} onInput={(event) => onChange({ ...given, upto: event.currentTarget.value })} /></label>}
    </fieldset>
  );
}
