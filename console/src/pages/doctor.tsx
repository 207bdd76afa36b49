// How the daemon is: everything that is looked at, what is wrong with it, and what mends it.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../core/api";
import { visible } from "../core/words";
import { Progress } from "../ui/form";
import { Page, Sure, useAttempt } from "../ui/page";
import { Badge } from "../ui/parts";
import type { Check, Diagnosis, Repair, Repaired } from "../types";

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
      <p class="hint">In a terminal, also when Palyra does not run: <code>palyra doctor</code>. “Look closely” checks every entry of the journal, too.</p>
    </Page>
  );
}
