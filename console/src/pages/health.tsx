// How the daemon is: what went wrong and what was tried, what it does in the background, and what the doctor finds and mends.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { lastEntry } from "../core/store";
import { Checks, checkOf } from "../health/checks";
import { Incidents } from "../health/incidents";
import { Queue } from "../health/queue";
import { Watchful } from "../health/watchful";
import { Progress } from "../ui/form";
import { Page, useAttempt } from "../ui/page";
import type { Diagnosis, Repair } from "../types";

export function HealthPage(): VNode {
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
    <Page title="Health" error={error} actions={<><button type="button" disabled={busy} onClick={() => void look(false)}>Look again</button><button type="button" class="quiet" disabled={busy} onClick={() => void look(true)}>Look closely</button></>}>
      {busy && <Progress label="Looking" done={0} words="Looking…" />}
      {found && <Verdict found={found} />}
      <Incidents busy={busy} treatable={(id) => Boolean(found?.checks.find((each) => each.id === checkOf(id))?.repairable)} onTreat={(id) => repair(checkOf(id))} />
      <Watchful />
      <Queue />
      <Checks found={found} repairs={repairs} busy={busy} onRepair={repair} />
    </Page>
  );
}

function Verdict({ found }: { found: Diagnosis }): VNode {
  const bad = found.checks.filter((each) => each.state === "fail").length;
  const odd = found.checks.filter((each) => each.state === "warn").length;
  return <p role="status" class={bad ? "verdict" : "verdict fine"}>{bad ? `${bad} must be mended.` : odd ? `Nothing must be mended; ${odd} worth knowing.` : "Everything is well."}</p>;
}
