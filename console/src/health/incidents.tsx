// What went wrong with the daemon itself, and what it did about it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { ago, lasting, visible, when } from "../core/words";
import { useChanged } from "../ui/fresh";
import { Part, useLoaded } from "../ui/page";
import { Badge, Choice, Problem } from "../ui/parts";
import type { Incident, Tried } from "../types";

const SEVERITY: Record<Incident["severity"], string> = { info: "", warning: "warn", error: "bad", critical: "bad" };
const RESULTS: Record<Tried["result"], readonly [string, string]> = { begun: ["warn", "under way"], done: ["good", "done"], failed: ["bad", "did not work"] };
const DOMAINS: Record<Incident["domain"], string> = {
  run: "a run", task: "a background task", worker: "a helper", browser: "a browser", approval: "an approval", artifact: "stored files",
  resource: "this computer", journal: "the journal", connector: "a channel",
};
const ESCALATED = "escalate";
const PAGE = 50;

export function Incidents({ treatable, busy, onTreat }: { treatable: (incidentId: string) => boolean; busy: boolean; onTreat: (incidentId: string) => void }): VNode {
  const [which, setWhich] = useState<"open" | "all">("open");
  const [most, setMost] = useState(PAGE);
  const found = useLoaded(() => palyra.listIncidents({ limit: most, ...(which === "open" ? { open: true } : {}) }), [which, most], useChanged("incidents"));
  const all = found.value?.incidents ?? [];
  return (
    <Part id="incidents" title="Incidents">
      <Choice label="Which incidents" value={which} options={[["open", "Open"], ["all", "All"]]} onChoose={setWhich} />
      <Problem text={found.error} />
      {found.value && !all.length && <p class="hint">{which === "open" ? "None is open." : "There was none."}</p>}
      <ul class="history" aria-label="Incidents">{all.map((each) => <One key={each.incident_id} it={each} treat={!each.closed_ms && treatable(each.incident_id)} busy={busy} onTreat={() => onTreat(each.incident_id)} />)}</ul>
      {all.length === most && most < 500 && <button type="button" onClick={() => setMost(most + PAGE)}>Show older</button>}
    </Part>
  );
}

function One({ it, treat, busy, onTreat }: { it: Incident; treat: boolean; busy: boolean; onTreat: () => void }): VNode {
  const tried = it.tried ?? [];
  const given = tried.some((each) => each.remedy === ESCALATED);
  return (
    <li>
      <div class="row"><Badge tone={it.closed_ms ? "good" : SEVERITY[it.severity]}>{it.closed_ms ? "over" : it.severity}</Badge><strong class="breaks">{visible(it.summary)}</strong><span class="hint">{DOMAINS[it.domain] ?? it.domain}, {ago(it.opened_ms)}{it.closed_ms ? `, over after ${lasting(it.closed_ms - it.opened_ms)}` : ""}</span></div>
      {it.fix && !it.closed_ms && <p class="hint breaks">To mend it: {visible(it.fix)}</p>}
      {it.outcome && <p class="hint breaks">{visible(it.outcome)}</p>}
      {given && !it.closed_ms && <p><Badge tone="bad">yours to decide</Badge> What Palyra tried did not help, and it tries no more.</p>}
      {tried.length > 0 && (
        <details open={!it.closed_ms}>
          <summary>What was tried ({tried.length})</summary>
          <ol aria-label="What was tried">{tried.map((one) => (
            <li key={`${one.time_ms} ${one.remedy}`}>{one.remedy === ESCALATED ? "told you, and tried no more" : visible(one.remedy)} <Badge tone={RESULTS[one.result]?.[0] ?? ""}>{RESULTS[one.result]?.[1] ?? one.result}</Badge>{one.detail ? ` ${visible(one.detail)}` : ""} <span class="hint">{when(one.time_ms)}</span></li>
          ))}</ol>
        </details>
      )}
      {treat && <button type="button" disabled={busy} onClick={onTreat}>Try to mend it now</button>}
    </li>
  );
}
