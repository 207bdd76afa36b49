// What the doctor looked at: what is wrong comes first, with what mends it.
import type { VNode } from "preact";
import { visible } from "../core/words";
import { Part, Sure } from "../ui/page";
import { Badge } from "../ui/parts";
import type { Diagnosis, Repair } from "../types";

type Check = Diagnosis["checks"][number];

const TONES: Record<Check["state"], readonly [string, string]> = { fail: ["bad", "must be mended"], warn: ["warn", "worth knowing"], ok: ["good", "fine"] };
const ORDER: readonly Check["state"][] = ["fail", "warn", "ok"];
const INCIDENT = "incident:";

/** The check of an open incident: it says whether something can be tried about it. */
export function checkOf(incidentId: string): string {
  return INCIDENT + incidentId;
}

export function Checks({ found, repairs, busy, onRepair }: { found: Diagnosis | undefined; repairs: readonly Repair[]; busy: boolean; onRepair: (id: string) => void }): VNode {
  // Open incidents are told about in their own place.
  const checks = found?.checks.filter((each) => !each.id.startsWith(INCIDENT)) ?? [];
  const mendable = checks.filter((each) => each.state !== "ok" && each.repairable);
  return (
    <Part id="doctor" title="Doctor">
      {mendable.length > 1 && <Sure words={`Mend all ${mendable.length} that Palyra can mend…`} question="Each is recorded." yes="Mend them" tone="main" disabled={busy} onYes={() => onRepair("")} />}
      {repairs.map((each) => <p key={each.id} class={each.worked ? "notice good" : "notice bad"} role="status">{visible(each.title)}: {visible(each.detail)}</p>)}
      {ORDER.map((state) => {
        const here = checks.filter((each) => each.state === state);
        return here.length > 0 && (
          <ul key={state} class="checks" aria-label={TONES[state][1]}>
            {here.map((each) => (
              <li key={each.id} class="check">
                <div class="row"><Badge tone={TONES[state][0]}>{TONES[state][1]}</Badge><strong>{visible(each.title)}</strong></div>
                <p class="breaks">{visible(each.detail)}</p>
                {each.fix && state !== "ok" && <p class="hint breaks">To mend it: {visible(each.fix)}</p>}
                {each.repairable && state !== "ok" && <button type="button" disabled={busy} onClick={() => onRepair(each.id)}>Mend it</button>}
              </li>
            ))}
          </ul>
        );
      })}
      <p class="hint">In a terminal, also when Palyra does not run: <code>palyra doctor</code>. “Look closely” checks every entry of the journal, too.</p>
    </Part>
  );
}
