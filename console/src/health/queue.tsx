// Background tasks: how many of each kind wait, the tasks themselves, and what can be done about each.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { ago, count, visible, when } from "../core/words";
import { SelectField } from "../ui/form";
import { useChanged } from "../ui/fresh";
import { Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { KindCount, Task } from "../types";

type State = Task["state"];
type Verb = "pause" | "resume" | "retry" | "cancel";
const STATES: Record<State, readonly [string, string]> = {
  queued: ["", "Queued"], running: ["good", "Running"], paused: ["warn", "Paused"], failed: ["bad", "Failed"], expired: ["bad", "Expired"], cancelled: ["", "Cancelled"], done: ["good", "Done"],
};
const WHICH: readonly (readonly [State | "", string])[] = [["", "All states"], ...Object.entries(STATES).map(([state, [, words]]) => [state as State, words] as const)];
/** What may be done about a task, by where it is. */
const VERBS: Record<State, readonly Verb[]> = { queued: ["pause", "cancel"], running: ["cancel"], paused: ["resume", "cancel"], failed: ["retry"], expired: ["retry"], cancelled: ["retry"], done: [] };
const SAYS: Record<Exclude<Verb, "cancel">, string> = { pause: "Pause", resume: "Resume", retry: "Retry" };
const SAID: Record<Verb, string> = { pause: "Task paused.", resume: "Task resumed.", retry: "Task queued again.", cancel: "Task cancelled." };
const WORTH: readonly State[] = ["queued", "running", "paused", "failed", "expired"];
const COUNTED: readonly State[] = ["queued", "running", "paused", "failed", "done"];
const PAGE = 50;
const MOST = 500;

export function Queue(): VNode {
  const fresh = useChanged("tasks");
  const [state, setState] = useState<State | "">("");
  const [kind, setKind] = useState("");
  const [most, setMost] = useState(PAGE);
  const kinds = useLoaded(() => palyra.listTaskKinds(), [], fresh);
  const tasks = useLoaded(() => palyra.listTasks({ limit: most, state, kind }), [state, kind, most], fresh);
  const { error, busy, attempt } = useAttempt();
  const again = () => { kinds.again(); tasks.again(); };
  const change = (task: Task, verb: Verb) => void attempt(async () => { await palyra.changeTask(task.task_id, { verb }).finally(again); }, SAID[verb]);
  const hold = (it: KindCount) => void attempt(async () => { await palyra.changeTaskKind(it.kind, { paused: !it.paused }).finally(again); }, it.paused ? "Kind resumed." : "Kind paused.");
  const all = kinds.value?.kinds ?? [];
  const shown = tasks.value?.tasks ?? [];
  return (
    <section class="box" aria-labelledby="part-queue"><h2 id="part-queue">Background tasks</h2>
      <Problem text={error || kinds.error || tasks.error} />
      {all.length > 0 && <Kinds label="Kinds of tasks" rows={all.filter(matters)} busy={busy} onHold={hold} />}
      {kinds.value && !all.some(matters) && <p class="hint">No tasks are queued, running or failed.</p>}
      {all.length > 0 && !all.every(matters) && <details><summary>Idle kinds</summary><Kinds label="Idle kinds" rows={all.filter((each) => !matters(each))} busy={busy} onHold={hold} /></details>}
      <div class="row fields">
        <SelectField label="State" value={state} options={WHICH} onChoose={(each) => { setState(each); setMost(PAGE); }} />
        <SelectField label="Kind" value={kind} options={[["", "All kinds"], ...all.map((each) => [each.kind, visible(each.kind)] as const)]} onChoose={(each) => { setKind(each); setMost(PAGE); }} />
      </div>
      {tasks.value && !shown.length && <p class="hint">No tasks.</p>}
      {shown.length > 0 && <Table label="Tasks" rows={shown} keyOf={(row) => row.task_id} columns={[
        { key: "kind", words: "Kind", draw: (row) => <span class="mono">{visible(row.kind)}</span> },
        { key: "state", words: "State", draw: (row) => <Badge tone={STATES[row.state][0]}>{STATES[row.state][1]}</Badge> },
        { key: "when", words: "Updated", draw: (row) => ago(row.ended_ms || row.started_ms || row.created_ms || 0) },
        { key: "tries", words: "Attempts", numeric: true, draw: (row) => count(row.attempts ?? 0) },
        { key: "what", words: "Details", draw: (row) => <What it={row} /> },
        { key: "act", words: "", draw: (row) => <Ways it={row} busy={busy} onDo={(verb) => change(row, verb)} /> },
      ]} />}
      {tasks.value?.next && most < MOST && <button type="button" onClick={() => setMost(Math.min(MOST, most + PAGE))}>Load older</button>}
    </section>
  );
}

/** Whether somebody may want to know of it. */
function matters({ states, paused }: KindCount): boolean {
  return paused || WORTH.some((state) => states[state]);
}

function Kinds({ label, rows, busy, onHold }: { label: string; rows: readonly KindCount[]; busy: boolean; onHold: (it: KindCount) => void }): VNode | null {
  if (!rows.length) return null;
  return <Table label={label} rows={rows} keyOf={(row) => row.kind} columns={[
    { key: "kind", words: "Kind", draw: (row) => <><span class="mono breaks">{visible(row.kind)}</span> {row.paused && <Badge tone="warn">Paused</Badge>}</> },
    ...COUNTED.map((each) => ({ key: each, words: STATES[each][1], numeric: true, draw: (row: KindCount) => count(row.states[each] ?? 0) })),
    { key: "oldest", words: "Oldest due", draw: (row) => (row.oldest_ready_ms ? ago(row.oldest_ready_ms) : "–") },
    { key: "act", words: "", draw: (row) => <button type="button" class="small" disabled={busy} aria-label={`${row.paused ? "Resume" : "Pause"} ${visible(row.kind)}`} onClick={() => onHold(row)}>{row.paused ? "Resume" : "Pause"}</button> },
  ]} />;
}

function What({ it }: { it: Task }): VNode {
  const due = it.state === "queued" && (it.ready_ms ?? 0) > Date.now();
  return (
    <>
      {it.error && <p class="breaks">{visible(it.error)}</p>}
      {due && <p class="hint">starts after {when(it.ready_ms!)}</p>}
      <details>
        <summary>Details</summary>
        <dl class="facts">
          <dt>id</dt><dd class="mono breaks">{it.task_id}</dd>
          {it.key && <><dt>key</dt><dd class="mono breaks">{visible(it.key)}</dd></>}
          <dt>created</dt><dd>{when(it.created_ms ?? 0)}{it.principal ? <> for <bdi>{visible(it.principal)}</bdi></> : ""}</dd>
          {it.heartbeat_ms ? <><dt>heartbeat</dt><dd>{when(it.heartbeat_ms)}</dd></> : null}
          {it.expires_ms ? <><dt>expires</dt><dd>{when(it.expires_ms)}</dd></> : null}
          {it.session_id && <><dt>session</dt><dd><a href={href("chat", it.session_id)}>Open session</a></dd></>}
          {it.schedule_id && <><dt>schedule</dt><dd><a href={href("schedules", it.schedule_id)}>Open schedule</a></dd></>}
        </dl>
        {it.payload && Object.keys(it.payload).length > 0 && <pre class="breaks">{visible(JSON.stringify(it.payload, null, 2))}</pre>}
      </details>
    </>
  );
}

function Ways({ it, busy, onDo }: { it: Task; busy: boolean; onDo: (verb: Verb) => void }): VNode {
  return (
    <div class="row">
      {VERBS[it.state].map((verb) => verb === "cancel"
        ? <Sure key={verb} words="Cancel…" question={it.state === "running" ? "Palyra stops the task now." : "Palyra never starts the task."} yes="Cancel task" disabled={busy} onYes={() => onDo("cancel")} />
        : <button key={verb} type="button" class="small" disabled={busy} onClick={() => onDo(verb)}>{SAYS[verb]}</button>)}
    </div>
  );
}
