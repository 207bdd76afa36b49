// How the daemon is: its load, incidents, channels, background tasks, and what the doctor finds and repairs.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { lastEntry } from "../core/store";
import { ChannelHealth } from "../health/channels";
import { Checks, checkOf } from "../health/checks";
import { Incidents } from "../health/incidents";
import { LoadFigures } from "../health/load";
import { Queue } from "../health/queue";
import { Watchful } from "../health/watchful";
import { Progress } from "../ui/form";
import { useAttempt, useComplete } from "../ui/page";
import { PageHead, Problem } from "../ui/parts";
import "../health/health.css";
import type { Diagnosis, Repair } from "../types";

export function HealthPage(): VNode {
  const complete = useComplete();
  const [found, setFound] = useState<Diagnosis | undefined>();
  const [repairs, setRepairs] = useState<Repair[]>([]);
  const { error, busy, attempt } = useAttempt();
  // Of what is new, the owner is told.
  const told = useRef(0);
  if (lastEntry.value?.kind === "owner.notified") told.current = lastEntry.value.position;
  const look = (deep: boolean) => attempt(async () => { setRepairs([]); setFound(await palyra.diagnose(deep ? { deep } : {})); });
  const repair = (id: string) => void attempt(async () => {
    const done = await palyra.repair({ id });
    setRepairs(done.repairs);
    setFound({ ok: done.ok, checks: done.checks });
  });
  useEffect(() => void look(false), [told.current]);
  return (
    <div class={complete ? "page full health" : "page full health unready"}>
      <PageHead title="Health" beside={found && <Verdict found={found} />}>
        <button type="button" disabled={busy} onClick={() => void look(false)}>Refresh</button><button type="button" disabled={busy} title="Also verifies every entry of the journal" onClick={() => void look(true)}>Deep check</button>
      </PageHead>
      <Problem text={error} />
      {busy && <Progress label="Checking" done={0} words="Checking…" />}
      <LoadFigures />
      <div class="two-panels">
        <Incidents busy={busy} treatable={(id) => Boolean(found?.checks.find((each) => each.id === checkOf(id))?.repairable)} onTreat={(id) => repair(checkOf(id))} />
        <ChannelHealth />
      </div>
      <Queue />
      <div class="two-panels even">
        <Checks found={found} repairs={repairs} busy={busy} onRepair={repair} />
        <Watchful />
      </div>
    </div>
  );
}

function Verdict({ found }: { found: Diagnosis }): VNode {
  const bad = found.checks.filter((each) => each.state === "fail").length;
  const odd = found.checks.filter((each) => each.state === "warn").length;
  const words = bad ? `${bad} ${bad === 1 ? "problem" : "problems"}` : "Healthy";
  return <span role="status" class={`verdict badge ${bad ? "bad" : "good"}`}>{words}{odd ? ` · ${odd} ${odd === 1 ? "note" : "notes"}` : ""}</span>;
}
