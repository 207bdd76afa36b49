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
        {state === "active" && <button type="button" disabled={busy} onClick={() => does(palyra.pauseSchedule, "It is paused.")}>Pause</button>}
        {state === "paused" && <button type="button" disabled={busy} onClick={() => does(palyra.resumeSchedule, "It fires again.")}>Resume</button>}
        {state !== "paused" && <button type="button" disabled={busy} onClick={() => does(palyra.runSchedule, "It fires now.")}>Run now</button>}
        <Sure words="Remove…" question="It is gone, with what it was allowed to do. Runs that are under way go on, and its conversations stay." yes="Remove it" disabled={busy} onYes={() => void attempt(async () => { await palyra.removeSchedule(id); go("schedules"); }, "It is removed.")} />
      </div>
      {once.value?.id === id && <Secret id={id} secret={once.value.secret} />}
      <Part id="says" title="What it says then"><blockquote class="says" tabIndex={0}><bdi>{visible(schedule.text)}</bdi></blockquote></Part>
      <Part id="coming" title="What comes">
        {state === "active" ? <Coming shown={found.value} /> : <p>{state === "paused" ? "It is paused: nothing comes until you resume it." : "It is over: what was to happen once has happened."}</p>}
        {schedule.trigger.on === "webhook" && !once.value && <Called id={id} />}
      </Part>
      <Part id="rules" title="What if, and what it may do"><Rules schedule={schedule} /></Part>
      <Part id="history" title="What came of it"><History firings={firings} /></Part>
    </Page>
  );
}

function Rules({ schedule }: { schedule: Schedule }): VNode {
  const quiet = schedule.quiet;
  return (
    <dl class="facts">
      <dt>time zone</dt><dd>{visible(schedule.zone ?? "UTC")}</dd>
      <dt>while the run before goes on</dt><dd>{saidOf(OVERLAPS, schedule.overlap ?? "skip")}</dd>
      <dt>times when nobody was there</dt><dd>{saidOf(MISSED, schedule.missed ?? "skip")}</dd>
      {quiet && <><dt>quiet hours</dt><dd>{quiet.from} to {quiet.to}; fires {saidOf(THEN, quiet.then ?? "later")}</dd></>}
      <dt>may do without asking</dt><dd>{(schedule.scopes ?? []).length ? <ul class="plain-list">{schedule.scopes!.map((each, at) => <li key={at}><bdi>{visible(scopeWords(each))}</bdi></li>)}</ul> : "nothing beyond what policy allows everybody"}</dd>
      <dt>what else would ask</dt><dd>{saidOf(ASKS, schedule.ask ?? "wait")}</dd>
      {schedule.model && <><dt>model</dt><dd class="mono">{visible(schedule.model)}</dd></>}
      {schedule.workspace && <><dt>works in</dt><dd class="mono breaks">{visible(schedule.workspace)}</dd></>}
      <dt>conversation</dt><dd>{schedule.fresh ? "a new one each time" : "one for all"}</dd>
    </dl>
  );
}

function History({ firings }: { firings: Firing[] }): VNode {
  if (!firings.length) return <p class="hint">It has not fired yet.</p>;
  return (
    <Table label="Firings" rows={firings} keyOf={(each) => String(each.due_ms)} columns={[
      { key: "due", words: "Due", draw: (each) => when(each.due_ms), by: (each) => each.due_ms },
      { key: "state", words: "How it went", draw: (each) => <Badge tone={FIRINGS[each.state][0]}>{FIRINGS[each.state][1]}</Badge>, by: (each) => each.state },
      { key: "note", words: "Note", draw: (each) => <bdi>{visible(each.note ?? "")}</bdi> },
      { key: "where", words: "Where", draw: (each) => (each.session_id ? <a href={href("chat", each.session_id)}>the conversation</a> : "–") },
    ]} />
  );
}

function Secret({ id, secret }: { id: string; secret: string }): VNode {
  return (
    <div class="once" role="status">
      <p>Calls are signed with this secret. It is shown this once: copy it now.</p>
      <p class="row"><code class="breaks">{secret}</code><Copy text={secret} what="Copy the secret" /><button type="button" class="quiet small" onClick={() => (once.value = undefined)}>I have it</button></p>
      <Called id={id} />
    </div>
  );
}

/** How a webhook is called: what is signed, and with what. */
function Called({ id }: { id: string }): VNode {
  const text = `ts=$(date +%s); body='{"order": 7}'
sig=$(printf '%s.%s' "$ts" "$body" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/.* //')
curl -H "x-palyra-timestamp: $ts" -H "x-palyra-signature: sha256=$sig" -d "$body" ${status.value?.url ?? location.origin}/v1/hooks/${id}`;
  return <Output label="how to call it" text={text} />;
}
