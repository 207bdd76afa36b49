// What went wrong with the daemon itself, and what it did about it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { ago, lasting, sentence, visible, when } from "../core/words";
import { useChanged } from "../ui/fresh";
import { useLoaded } from "../ui/page";
import { Badge, Choice, Problem } from "../ui/parts";
import type { Incident, Tried } from "../types";
import { IncidentLine } from "./incident_line";

const SEVERITY: Record<Incident["severity"], string> = { info: "", warning: "warn", error: "bad", critical: "bad" };
const RESULTS: Record<Tried["result"], readonly [string, string]> = { begun: ["warn", "Running"], done: ["good", "Done"], failed: ["bad", "Failed"] };
const DOMAINS: Record<Incident["domain"], string> = {
  run: "Run", task: "Task", worker: "Worker", browser: "Browser", approval: "Approval", artifact: "Files", resource: "Machine", journal: "Journal", connector: "Channel",
};
const ESCALATED = "escalate";
const PAGE = 50;
const LINE = 100;

export function Incidents({ treatable, busy, onTreat }: { treatable: (incidentId: string) => boolean; busy: boolean; onTreat: (incidentId: string) => void }): VNode {
  const [which, setWhich] = useState<"open" | "all">("open");
  const [most, setMost] = useState(PAGE);
  const changed = useChanged("incidents");
  const found = useLoaded(() => palyra.listIncidents({ limit: most, ...(which === "open" ? { open: true } : {}) }), [which, most], changed);
  const line = useLoaded(() => palyra.listIncidents({ limit: LINE }), [], changed);
  const all = found.value?.incidents ?? [];
  return (
    <section class="box" aria-labelledby="part-incidents"><div class="box-head"><h2 id="part-incidents">Incidents</h2>
      <Choice label="Which incidents" value={which} options={[["open", "Open"], ["all", "All"]]} onChoose={setWhich} /></div>
      {line.value && <IncidentLine incidents={line.value.incidents} areas={DOMAINS} />}
      <Problem text={found.error} />
      {found.value && !all.length && <p class="hint">{which === "open" ? "No open incidents." : "No incidents."}</p>}
      <ul class="history" aria-label="Incidents">{all.map((each) => <One key={each.incident_id} it={each} treat={!each.closed_ms && treatable(each.incident_id)} busy={busy} onTreat={() => onTreat(each.incident_id)} />)}</ul>
      {all.length === most && most < 500 && <button type="button" onClick={() => setMost(most + PAGE)}>Load older</button>}
    </section>
  );
}

function One({ it, treat, busy, onTreat }: { it: Incident; treat: boolean; busy: boolean; onTreat: () => void }): VNode {
  const tried = it.tried ?? [];
  const given = tried.some((each) => each.remedy === ESCALATED);
  return (
    <li>
      <div class="row"><Badge tone={it.closed_ms ? "good" : SEVERITY[it.severity]}>{it.closed_ms ? "Closed" : sentence(it.severity)}</Badge><strong class="breaks">{visible(it.summary)}</strong><span class="hint">{DOMAINS[it.domain] ?? it.domain}, <span title={when(it.opened_ms)}>{ago(it.opened_ms)}</span>{it.closed_ms ? `, lasted ${lasting(it.closed_ms - it.opened_ms)}` : ""}</span></div>
      {it.fix && !it.closed_ms && <p class="hint breaks">Fix: {visible(it.fix)}</p>}
      {it.outcome && <p class="hint breaks">{visible(it.outcome)}</p>}
      {given && !it.closed_ms && <p><Badge tone="bad">Needs you</Badge> The repairs failed. Palyra does not retry.</p>}
      {tried.length > 0 && (
        <details open={!it.closed_ms}>
          <summary>Repair attempts ({tried.length})</summary>
          <ol aria-label="Repair attempts">{tried.map((one) => (
            <li key={`${one.time_ms} ${one.remedy}`}>{one.remedy === ESCALATED ? "notified you and stopped" : visible(one.remedy)} <Badge tone={RESULTS[one.result]?.[0] ?? ""}>{RESULTS[one.result]?.[1] ?? one.result}</Badge>{one.detail ? ` ${visible(one.detail)}` : ""} <span class="hint">{when(one.time_ms)}</span></li>
          ))}</ol>
        </details>
      )}
      {treat && <button type="button" disabled={busy} onClick={onTreat}>Repair now</button>}
    </li>
  );
}
