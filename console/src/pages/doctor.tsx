// How the daemon is: everything that is looked at, what is wrong with it, and what mends it.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../core/api";
import { lastEntry } from "../core/store";
import { ago, visible, when } from "../core/words";
import { Progress } from "../ui/form";
import { Page, Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Choice, Problem } from "../ui/parts";
import type { Diagnosis, Incident, IncidentList, Repair, Repaired } from "../types";

type Check = Diagnosis["checks"][number];

const TONES: Record<Check["state"], readonly [string, string]> = { fail: ["bad", "must be mended"], warn: ["warn", "worth knowing"], ok: ["good", "fine"] };
const ORDER: readonly Check["state"][] = ["fail", "warn", "ok"];

export function DoctorPage(): VNode {
  const [found, setFound] = useState<Diagnosis | undefined>();
  const [repairs, setRepairs] = useState<Repair[]>([]);
  const { error, busy, attempt } = useAttempt();
  const look = (deep: boolean) => attempt(async () => setFound(await get<Diagnosis>(`/v1/doctor${deep ? "?deep=true" : ""}`)));
  const repair = (id: string) => attempt(async () => {
    const done = await post<Repaired>("/v1/doctor/repair", { id });
    setRepairs(done.repairs);
    setFound({ ok: done.ok, checks: done.checks });
  });
  useEffect(() => void look(false), []);
  const wrong = found?.checks.filter((each) => each.state !== "ok") ?? [];
  const mendable = wrong.filter((each) => each.repairable);
  return (
    <Page title="Doctor" error={error} actions={<><button type="button" disabled={busy} onClick={() => void look(false)}>Look again</button><button type="button" class="quiet" disabled={busy} onClick={() => void look(true)}>Look closely</button></>}>
      {busy && <Progress label="Looking" done={0} words="Looking…" />}
      {found && <p role="status" class={found.ok ? "verdict fine" : "verdict"}>{found.ok ? (wrong.length ? `Nothing must be mended; ${wrong.length} worth knowing.` : "Everything is well.") : `${found.checks.filter((each) => each.state === "fail").length} must be mended.`}</p>}
      {mendable.length > 1 && <Sure words={`Mend all ${mendable.length} that Palyra can mend…`} question="Each is recorded." yes="Mend them" tone="main" disabled={busy} onYes={() => void repair("")} />}
      {repairs.map((each) => <p key={each.id} class={each.worked ? "notice good" : "notice bad"} role="status">{each.title}: {visible(each.detail)}</p>)}
      {ORDER.map((state) => {
        const here = found?.checks.filter((each) => each.state === state) ?? [];
        return here.length > 0 && (
          <ul key={state} class="checks" aria-label={TONES[state][1]}>
            {here.map((each) => (
              <li key={each.id} class="check">
                <div class="row"><Badge tone={TONES[state][0]}>{TONES[state][1]}</Badge><strong>{visible(each.title)}</strong></div>
                <p class="breaks">{visible(each.detail)}</p>
                {each.fix && state !== "ok" && <p class="hint breaks">To mend it: {visible(each.fix)}</p>}
                {each.repairable && state !== "ok" && <button type="button" disabled={busy} onClick={() => void repair(each.id)}>Mend it</button>}
              </li>
            ))}
          </ul>
        );
      })}
      <Incidents />
      <p class="hint">In a terminal, also when Palyra does not run: <code>palyra doctor</code>. “Look closely” checks every entry of the journal, too.</p>
    </Page>
  );
}

const SEVERITY: Record<Incident["severity"], string> = { info: "", warning: "warn", error: "bad", critical: "bad" };
const RESULTS: Record<string, string> = { begun: "under way", done: "done", failed: "did not work" };

/** What went wrong with the daemon itself, and what it did about it. */
function Incidents(): VNode {
  const [which, setWhich] = useState<"open" | "all">("open");
  const changed = lastEntry.value?.kind.startsWith("incident.") ? lastEntry.value.position : 0;
  const found = useLoaded(() => get<IncidentList>(`/v1/incidents?limit=100${which === "open" ? "&open=true" : ""}`), [which, changed]);
  return (
    <Part id="incidents" title="Incidents">
      <Choice label="Which" value={which} options={[["open", "Open"], ["all", "All"]]} onChoose={setWhich} />
      <Problem text={found.error} />
      {found.value && !found.value.incidents.length && <p class="hint">{which === "open" ? "None is open." : "There was none."}</p>}
      <ul class="history" aria-label="Incidents">
        {found.value?.incidents.map((each) => (
          <li key={each.incident_id}>
            <div class="row"><Badge tone={each.closed_ms ? "good" : SEVERITY[each.severity]}>{each.closed_ms ? "over" : each.severity}</Badge><strong>{visible(each.summary)}</strong><span class="hint">{each.domain}, {ago(each.opened_ms)}</span></div>
            {each.fix && !each.closed_ms && <p class="hint">To mend it: {visible(each.fix)}</p>}
            {each.outcome && <p class="hint">{visible(each.outcome)}</p>}
            {(each.tried ?? []).length > 0 && <details><summary>What was tried ({each.tried!.length})</summary><ul>{each.tried!.map((one) => <li key={one.time_ms}>{visible(one.remedy)}: {RESULTS[one.result] ?? one.result}{one.detail ? `, ${visible(one.detail)}` : ""} <span class="hint">{when(one.time_ms)}</span></li>)}</ul></details>}
          </li>
        ))}
      </ul>
    </Part>
  );
}
