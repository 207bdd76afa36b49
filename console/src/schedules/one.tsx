// One schedule: what it says and when, what comes and what came of it, and ways to hold it, fire it or remove it.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { status } from "../core/store";
import { visible, when } from "../core/words";
import { Copy, Output } from "../ui/code";
import { useChanged } from "../ui/fresh";
import { Page, Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge } from "../ui/parts";
import { Table } from "../ui/table";
import { Coming } from "./coming";
import { FiringRun } from "./run";
import { ASKS, FIRINGS, MISSED, OVERLAPS, saidOf, scopeWords, STATES, THEN } from "./words";
import type { Firing, Schedule } from "../types";

/** The secret of a webhook that was just made: shown once, kept nowhere. */
export const once = signal<{ id: string; secret: string } | undefined>(undefined);

export function One({ id }: { id: string }): VNode {
  const found = useLoaded(() => palyra.getSchedule(id), [id], useChanged("schedules"));
  const { error, busy, attempt } = useAttempt();
  const back = <a class="button quiet" href={href("schedules")}>All schedules</a>;
  if (!found.value) return <Page title="Schedule" error={found.error} actions={back}>{found.error ? null : <p role="status">Loading…</p>}</Page>;
  const { schedule, firings = [] } = found.value;
  const state = schedule.state ?? "active";
  const does = (verb: (id: string) => Promise<unknown>, said: string) => void attempt(async () => {
    await verb(id);
    found.again();
  }, said);
  return (
    <Page title={visible(schedule.name)} error={found.error || error} actions={back}>
      <div class="row">
        <Badge tone={STATES[state][0]}>{STATES[state][1]}</Badge>
        {state === "active" && <button type="button" disabled={busy} onClick={() => does(palyra.pauseSchedule, "Paused.")}>Pause</button>}
        {state === "paused" && <button type="button" disabled={busy} onClick={() => does(palyra.resumeSchedule, "Resumed.")}>Resume</button>}
        {state !== "paused" && <button type="button" disabled={busy} onClick={() => does(palyra.runSchedule, "Running now.")}>Run now</button>}
        <a class="button" href={href("schedules", id, "edit")}>Edit</a>
        <Sure words="Delete…" question="Deletes the schedule and its grants. Active runs continue, and its sessions stay." yes="Delete" disabled={busy} onYes={() => void attempt(async () => { await palyra.removeSchedule(id); go("schedules"); }, "Deleted.")} />
      </div>
      {once.value?.id === id && <Secret id={id} secret={once.value.secret} />}
      <Part id="says" title="Prompt"><blockquote class="says" tabIndex={0}><bdi>{visible(schedule.text)}</bdi></blockquote></Part>
      <Part id="coming" title="Next runs">
        {state === "active" ? <Coming shown={found.value} /> : <p>{state === "paused" ? "Paused: no runs until you resume it." : "Finished: it was set to run once."}</p>}
        {schedule.trigger.on === "webhook" && !once.value && <Called id={id} />}
      </Part>
      <Part id="rules" title="Advanced"><Rules schedule={schedule} /></Part>
      <Part id="history" title="History"><History firings={firings} /></Part>
    </Page>
  );
}

function Rules({ schedule }: { schedule: Schedule }): VNode {
  const quiet = schedule.quiet;
  return (
    <dl class="facts">
      <dt>Time zone</dt><dd>{visible(schedule.zone ?? "UTC")}</dd>
      <dt>Overlapping runs</dt><dd>{saidOf(OVERLAPS, schedule.overlap ?? "skip")}</dd>
      <dt>Missed runs</dt><dd>{saidOf(MISSED, schedule.missed ?? "skip")}</dd>
      {quiet && <><dt>Quiet hours</dt><dd>{quiet.from} to {quiet.to}; runs {saidOf(THEN, quiet.then ?? "later")}</dd></>}
      <dt>Allowed without approval</dt><dd>{(schedule.scopes ?? []).length ? <ul class="plain-list">{schedule.scopes!.map((each, at) => <li key={at}><bdi>{visible(scopeWords(each))}</bdi></li>)}</ul> : "only what policy allows"}</dd>
      <dt>Calls that need approval</dt><dd>{saidOf(ASKS, schedule.ask ?? "wait")}</dd>
      {schedule.model && <><dt>Model</dt><dd class="mono">{visible(schedule.model)}</dd></>}
      {schedule.workspace && <><dt>Folder</dt><dd class="mono breaks">{visible(schedule.workspace)}</dd></>}
      <dt>Session</dt><dd>{schedule.fresh ? "new for each run" : "one for all runs"}</dd>
    </dl>
  );
}

function History({ firings }: { firings: Firing[] }): VNode {
  if (!firings.length) return <p class="hint">No runs yet.</p>;
  return (
    <Table label="Runs" rows={firings} keyOf={(each) => String(each.due_ms)} columns={[
      { key: "due", words: "Due", draw: (each) => when(each.due_ms), by: (each) => each.due_ms },
      { key: "state", words: "Result", draw: (each) => <Badge tone={FIRINGS[each.state][0]}>{FIRINGS[each.state][1]}</Badge>, by: (each) => each.state },
      { key: "note", words: "Note", draw: (each) => <><bdi>{visible(each.note ?? "")}</bdi>{each.run_id && <FiringRun runId={each.run_id} />}</> },
      { key: "where", words: "Session", draw: (each) => (each.session_id ? <a href={href("chat", each.session_id)}>Open session</a> : "–") },
    ]} />
  );
}

function Secret({ id, secret }: { id: string; secret: string }): VNode {
  return (
    <div class="once" role="status">
      <p>Calls are signed with this secret. It is shown only once: copy it now.</p>
      <p class="row"><code class="breaks">{secret}</code><Copy text={secret} what="Copy secret" /><button type="button" class="quiet small" onClick={() => (once.value = undefined)}>Done</button></p>
      <Called id={id} />
    </div>
  );
}

/** How a webhook is called: what is signed, and with what. */
function Called({ id }: { id: string }): VNode {
  const text = `ts=$(date +%s); body='{"order": 7}'
sig=$(printf '%s.%s' "$ts" "$body" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/.* //')
curl -H "x-palyra-timestamp: $ts" -H "x-palyra-signature: sha256=$sig" -d "$body" ${status.value?.url ?? location.origin}/v1/hooks/${id}`;
  return <Output label="example call" text={text} />;
}
