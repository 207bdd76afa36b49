// Machines that run tools for Palyra: who they are, what runs where, and how one more is enrolled.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { sessions } from "../core/store";
import { ago, visible, when } from "../core/words";
import { Code } from "../ui/code";
import { CheckField, TextField } from "../ui/form";
import { useChanged } from "../ui/fresh";
import { Part, useAttempt, useLoaded } from "../ui/page";
import { Badge, Empty, Problem } from "../ui/parts";
import { stateOf, WORKERS_AT } from "./words";
import type { Enrolment, RunningCall, WorkerShown } from "../types";

const NAME = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

export function Workers(): VNode {
  const found = useLoaded(() => palyra.listWorkers(), [], useChanged("workers"));
  const [all, setAll] = useState(false);
  if (!found.value) return <><Problem text={found.error} />{!found.error && <p role="status">Loading…</p>}</>;
  const { workers, port, hosts } = found.value;
  const gone = workers.some((each) => each.state === "revoked");
  const rows = workers.filter((each) => all || each.state !== "revoked");
  return (
    <>
      <Problem text={found.error} />
      {rows.length ? <ul class="cards side" aria-label="Workers">{rows.map((each) => <Card key={each.name} it={each} />)}</ul>
        : <Empty><h2>No workers yet</h2><p>A worker is another machine that runs tools for Palyra, such as a build server. It needs no open port.</p></Empty>}
      {gone && <CheckField label="Show revoked" checked={all} onChange={setAll} />}
      {port ? <Enrolling workers={workers} hosts={hosts} /> : <Closed onOpened={found.again} />}
    </>
  );
}

function Card({ it }: { it: WorkerShown }): VNode {
  const [tone, words] = stateOf(it);
  return (
    <li class="card">
      <div class="row"><a href={href("connections", "workers", it.name)}><strong>{visible(it.name)}</strong></a><Badge tone={tone}>{words}</Badge><span class="hint">{it.running.length} of {it.slots} busy</span></div>
      <p class="hint breaks"><bdi>{visible(it.platform || "unknown platform")}</bdi> · {it.connected ? "now" : it.seen_ms ? `last seen ${ago(it.seen_ms)}` : "never connected"}</p>
      <Running calls={it.running} />
    </li>
  );
}

/** What runs at a worker now, with the way to who asked for it. */
export function Running({ calls }: { calls: readonly RunningCall[] }): VNode | null {
  if (!calls.length) return null;
  return (
    <ul class="plain-list" aria-label="Running calls">
      {calls.map((each) => <li key={each.call_id}><code>{visible(each.tool)}</code> for <a href={href("chat", each.session_id)}><bdi>{titleOf(each.session_id)}</bdi></a> <span class="hint">since {when(each.since_ms)}{each.attempt > 1 ? `, attempt ${each.attempt}` : ""}</span></li>)}
    </ul>
  );
}

function titleOf(session: string): string {
  return visible(sessions.value.find((each) => each.session_id === session)?.title ?? "") || "a session";
}

function Enrolling({ workers, hosts }: { workers: readonly WorkerShown[]; hosts: readonly string[] }): VNode {
  const [name, setName] = useState("");
  // By which name this browser has reached Palyra, others can, too; unless that is this machine's own word for itself.
  const [host, setHost] = useState(() => (hosts.includes(location.hostname) ? location.hostname : (hosts[0] ?? location.hostname)));
  const [made, setMade] = useState<Enrolment | undefined>();
  const { error, busy, attempt } = useAttempt();
  const wrong = !name || NAME.test(name) ? "" : "Use lower-case letters, digits and dashes.";
  const odd = /^[\w.:[\]-]+$/.test(host) ? "" : "Enter a host name or address.";
  const enrol = () => attempt(async () => { setMade(await palyra.enrolWorker({ name })); setName(""); });
  const it = made && workers.find((each) => each.name === made.name && each.enrolled_ms && each.state !== "revoked");
  return (
    <Part id="enrol" title="Enrol a worker">
      {made && (
        <div class="once">
          <p>Run this on the machine <strong>{made.name}</strong>, where Palyra is installed. The code works once, until {when(made.expires_ms)}, and is shown only once.</p>
          <Code language="sh" plain text={`palyra worker enrol ${bracketed(host)}:${made.port} ${made.code} --authority ${made.authority}\npalyra worker run`} />
          <p class="row"><span role="status">{it?.connected ? `${made.name} is connected.` : it ? `${made.name} is enrolled. Start it to use it.` : `Waiting for the worker…`}</span><button type="button" class="quiet small" onClick={() => setMade(undefined)}>{"Done"}</button></p>
        </div>
      )}
      <form class="form" aria-label="Enrol" onSubmit={(event) => { event.preventDefault(); if (name && !wrong && !odd) void enrol(); }}>
        <TextField label="Name" mono value={name} onInput={setName} wrong={wrong} hint="Used in the console, in policies and by the agent, such as build-2." required />
        <TextField label="Address of this machine" mono value={host} onInput={setHost} wrong={odd} eager list={hosts} hint="The worker connects to it, so it must be reachable from there." required />
        <Problem text={error} />
        <button type="submit" class="main" disabled={busy || !name || Boolean(wrong) || Boolean(odd)}>Create code</button>
      </form>
    </Part>
  );
}

function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

function Closed({ onOpened }: { onOpened: () => void }): VNode {
  const [at, setAt] = useState(WORKERS_AT);
  const { error, busy, attempt } = useAttempt();
  const enable = () => attempt(async () => { await palyra.changeListeners({ workers: at.trim() }); onOpened(); }, "Enabled.");
  return (
    <Part id="enrol" title="Enrol a worker">
      <form class="form" aria-label="Listener" onSubmit={(event) => { event.preventDefault(); void enable(); }}>
        <p>The listener for workers is disabled. Workers connect to it, each with its own certificate.</p>
        <TextField label="Listen on" mono value={at} onInput={setAt} hint="An address of this machine and a port; 0.0.0.0: every network that it is in." />
        <Problem text={error} />
        <button type="submit" class="main" disabled={busy || !at.trim()}>Enable listener</button>
      </form>
    </Part>
  );
}
