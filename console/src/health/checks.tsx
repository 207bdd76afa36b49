// The checks of the doctor: problems first, with how to fix them.
import type { VNode } from "preact";
import { visible } from "../core/words";
import { Sure } from "../ui/page";
import { Badge } from "../ui/parts";
import type { Diagnosis, Repair } from "../types";

type Check = Diagnosis["checks"][number];

const TONES: Record<Check["state"], readonly [string, string]> = { fail: ["bad", "Problem"], warn: ["warn", "Note"], ok: ["good", "OK"] };
const LISTS: Record<Check["state"], string> = { fail: "Problems", warn: "Notes", ok: "Passed" };
const ORDER: readonly Check["state"][] = ["fail", "warn", "ok"];
const INCIDENT = "incident:";

/** The check of an open incident: it says whether something can be tried about it. */
export function checkOf(incidentId: string): string {
  return INCIDENT + incidentId;
}

export function Checks({ found, repairs, busy, onRepair }: { found: Diagnosis | undefined; repairs: readonly Repair[]; busy: boolean; onRepair: (id: string) => void }): VNode {
  // Open incidents are told about in their own place.
  const checks = found?.checks.filter((each) => !each.id.startsWith(INCIDENT)) ?? [];
  const repairable = checks.filter((each) => each.state !== "ok" && each.repairable);
  return (
    <section class="box" aria-labelledby="part-doctor"><h2 id="part-doctor">Checks</h2>
      {repairable.length > 1 && <Sure words={`Repair all ${repairable.length}…`} question="Palyra repairs them and records each repair." yes="Repair all" tone="main" disabled={busy} onYes={() => onRepair("")} />}
      {repairs.map((each) => <p key={each.id} class={each.worked ? "notice good" : "notice bad"} role="status">{visible(each.title)}: {visible(each.detail)}</p>)}
      {ORDER.map((state) => {
        const here = checks.filter((each) => each.state === state);
        const list = (
          <ul key={state} class="checks" aria-label={LISTS[state]}>
            {here.map((each) => (
              <li key={each.id} class="check">
                <div class="row"><Badge tone={TONES[state][0]}>{TONES[state][1]}</Badge><strong>{visible(each.title)}</strong></div>
                <p class="breaks">{visible(each.detail)}</p>
                {each.fix && state !== "ok" && <p class="hint breaks">Fix: {visible(each.fix)}</p>}
                {each.repairable && state !== "ok" && <button type="button" disabled={busy} onClick={() => onRepair(each.id)}>Repair</button>}
              </li>
            ))}
          </ul>
        );
        return here.length > 0 && list;
      })}
      <p class="hint">In a terminal, even while Palyra is stopped: <code>palyra doctor</code></p>
    </section>
  );
}
