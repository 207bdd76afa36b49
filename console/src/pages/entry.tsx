// One entry of a tape: an overview, why it is there, the proof that it is unchanged, its JSON, and the ways back to it.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { branch } from "../chat/verbs";
import { Previewed, What } from "../chat/approval";
import { mark, marks } from "../core/address";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { prove, type Proof } from "../core/proof";
import { go, href } from "../core/router";
import type { Tape } from "../core/tape";
import { ago, clock, count, lasting, money, visible, when } from "../core/words";
import { ledTo } from "../core/why";
import { Code, Copy, Diff } from "../ui/code";
import { Causes } from "../ui/causes";
import { short } from "../ui/figures";
import { Badge, Labels, Problem } from "../ui/parts";
import { says } from "../ui/says";
import { RunPicture } from "../ui/waterfall";
import { firstLine } from "../ui/waterfall/spans";
import type {
  AgentSpawned, ApprovalRequested, ApprovalResolved, Entry, ExplainedCall, InputAssembled, InputReceived, ModelReplied, Rewound, RunReplay, ToolDecided, ToolFinished, ToolProposed,
} from "../types";

import "./entry.css";

const REPLAY_WAIT_MS = 20_000;
/** What "why" may look at on either side of an entry. */
export const NEAR = 150;

interface Given {
  entry: Entry;
  tape: Tape;
  choose: (seq: number) => void;
}

type Tab = "overview" | "why" | "proof" | "json";
const TABS: readonly (readonly [Tab, string])[] = [["overview", "Overview"], ["why", "Why"], ["proof", "Proof"], ["json", "JSON"]];

export function EntryDetail({ entry, tape, choose }: Given): VNode {
  tape.tick.value; // Its neighbours may come later.
  const tab = (TABS.find(([each]) => each === marks.value.tab)?.[0] ?? "overview") as Tab;
  const near = tape.between(entry.seq - NEAR, entry.seq + NEAR);
  const call = callOf(entry, near);
  const open = (each: Tab) => mark({ tab: each === "overview" ? "" : each });
  const walk = (event: KeyboardEvent) => {
    const at = TABS.findIndex(([each]) => each === tab);
    const next = { ArrowRight: (at + 1) % TABS.length, ArrowLeft: (at + TABS.length - 1) % TABS.length, Home: 0, End: TABS.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const list = event.currentTarget as HTMLElement;
    open(TABS[next]![0]);
    requestAnimationFrame(() => list.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
  };
  return (
    <section aria-label={`Entry ${entry.seq}`}>
      <div class="tabs" role="tablist" aria-label="Entry" onKeyDown={walk}>
        {TABS.map(([each, words]) => <button key={each} type="button" role="tab" id={`tab-${each}`} aria-selected={each === tab} aria-controls="tab-panel" tabIndex={each === tab ? 0 : -1} onClick={() => open(each)}>{words}</button>)}
      </div>
      <h2>{says(entry.kind)}{call.proposed && <> <code class="breaks"><bdi>{callName(call.proposed)}</bdi></code></>}</h2>
      <p class="hint">Entry {entry.seq} · <span title={when(entry.time_ms)}>{clock(entry.time_ms)} · {ago(entry.time_ms)}</span>{call.finished?.outcome && call.finished.outcome !== "ok" && <> <Badge tone="bad">{call.finished.outcome}</Badge></>}</p>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "overview" ? <OverviewTab entry={entry} tape={tape} call={call} /> : tab === "why" ? <WhyTab entry={entry} near={near} call={call} choose={choose} />
          : tab === "proof" ? <ProofTab id={tape.id} entry={entry} />
          : <><div class="row"><span class="mono hint">{entry.kind}</span><Copy text={() => JSON.stringify(entry, null, 2)} what="Copy JSON" /></div><Code text={visible(JSON.stringify(entry.event, null, 2))} language="json" /></>}
      </div>
      <Ways entry={entry} id={tape.id} call={call} choose={choose} />
    </section>
  );
}

/** What is known of the tool call that an entry is about. */
interface CallFacts {
  id: string;
  proposed?: ToolProposed;
  decided?: ToolDecided;
  asked?: Entry;
  answered?: Entry;
  finished?: ToolFinished;
  spawned?: AgentSpawned;
}

function callOf(entry: Entry, near: readonly Entry[]): CallFacts {
  const id = (entry.event as { call_id?: string }).call_id ?? "";
  const found: CallFacts = { id };
  if (!id) return found;
  for (const each of near) {
    if ((each.event as { call_id?: string }).call_id !== id) continue;
    if (each.kind === "tool.proposed") found.proposed = each.event as ToolProposed;
    if (each.kind === "tool.decided") found.decided = each.event as ToolDecided;
    if (each.kind === "approval.requested") found.asked = each;
    if (each.kind === "approval.resolved") found.answered = each;
    if (each.kind === "tool.finished") found.finished = each.event as ToolFinished;
    if (each.kind === "agent.spawned") found.spawned = each.event as AgentSpawned;
  }
  return found;
}

function callName({ tool, arguments: given }: ToolProposed): string {
  const subject = ["path", "command", "url", "query"].map((name) => (given as Record<string, unknown>)[name]).find((each) => typeof each === "string");
  return visible(subject ? `${tool} ${firstLine(String(subject))}` : tool);
}

function OverviewTab({ entry, tape, call }: { entry: Entry; tape: Tape; call: CallFacts }): VNode {
  const event = entry.event as unknown as Partial<Omit<ModelReplied, "kind"> & Omit<InputAssembled, "kind"> & Omit<ToolFinished, "kind">>;
  const usage = event.usage;
  const said = entry.kind === "approval.requested" || entry.kind === "approval.resolved" ? "" : String((entry.event as { text?: string; message?: string; reason?: string }).text ?? (entry.event as { message?: string }).message ?? (entry.event as { reason?: string }).reason ?? "");
  const facts: [string, ComponentChildren][] = [];
  if (event.model) facts.push(["Model", <bdi>{visible(`${event.provider}/${event.model}`)}</bdi>]);
  if (event.duration_ms) facts.push(["Took", lasting(event.duration_ms)]);
  if (event.first_delta_ms) facts.push(["First token after", lasting(event.first_delta_ms)]);
  if (usage?.input_tokens || usage?.output_tokens) facts.push(["Tokens", `${short(usage.input_tokens ?? 0)} in${usage.cached_tokens ? ` (${Math.round((usage.cached_tokens / Math.max(1, usage.input_tokens ?? 1)) * 100)} % cached)` : ""}, ${short(usage.output_tokens ?? 0)} out`]);
  if (event.cost_microusd) facts.push(["Cost", money(event.cost_microusd)]);
  if (entry.kind === "input.assembled") facts.push(["Prompt", `${short(event.tokens ?? 0)} of ${short(event.budget ?? 0)} tokens`]);
  if (event.outcome) facts.push(["Outcome", event.outcome]);
  if (event.changes?.length) facts.push(["Changed", event.changes.map((each) => `${visible(each.path)} (${each.change})`).join(", ")]);
  if (event.attestation) facts.push(["Ran in", `${visible(event.attestation.tier)} · ${visible(event.attestation.executor)}`]);
  facts.push(["By", <bdi>{visible(entry.principal)}</bdi>]);
  const label = (entry.event as { label?: InputReceived["label"] }).label;
  return (
    <>
      <dl class="facts">{facts.map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
      {label && <p class="row"><Labels label={label} /></p>}
      <Asked entry={entry} tape={tape} />
      {said && <pre class="said" tabIndex={0}><bdi>{visible(said)}</bdi></pre>}
      {entry.kind === "input.assembled" && (event.parts?.length ?? 0) > 0 && <Parts parts={event.parts!} />}
      {entry.kind === "route.planned" && entry.run_id && <p><a href={href("usage", "run", entry.run_id)}>See why this model was selected</a></p>}
      {call.spawned && <><h3>Subagent</h3><RunPicture runId={call.spawned.run_id} /></>}
    </>
  );
}

/** What a prompt is made of, as bars. */
function Parts({ parts }: { parts: InputAssembled["parts"] }): VNode {
  const most = Math.max(1, ...parts.map((each) => each.tokens));
  return (
    <ul class="hbars" aria-label="Prompt parts">
      {parts.map((each, at) => <li key={at}><span>{visible(each.source)}</span><i style={{ width: `${(each.tokens / most) * 100}%` }} aria-hidden="true" /><span class="wf-time">{short(each.tokens)} tok</span></li>)}
    </ul>
  );
}

function WhyTab({ entry, near, call, choose }: { entry: Entry; near: readonly Entry[]; call: CallFacts; choose: (seq: number) => void }): VNode {
  const changes = call.finished?.changes ?? [];
  return (
    <>
      <dl class="facts why-facts">
        {changes.length > 0 && <><dt>Effect</dt><dd>{changes.length === 1 ? `1 file ${changes[0]!.change}` : `${changes.length} files changed`}: {changes.map((each) => visible(each.path)).join(", ")}; can be undone</dd></>}
        <dt>Led to</dt><dd><Links found={ledTo(entry, near)} choose={choose} none="Nothing yet" /></dd>
        {call.decided && <><dt>Policy now</dt><dd><Decided callId={call.id} /></dd></>}
      </dl>
      <h3>Caused by</h3>
      <Causes key={entry.seq} about={`${entry.tape}:${entry.seq}`} inner tape={entry.tape} choose={choose} />
    </>
  );
}

/** What a question was about and what the answer let run: an edit is shown as edited at both. */
function Asked({ entry, tape }: { entry: Entry; tape: Tape }): VNode | null {
  if (entry.kind === "approval.resolved") {
    const { preview } = entry.event as ApprovalResolved;
    return preview ? <><h3>Approved call</h3><p><Badge tone="warn">Edited</Badge> Approved with edited arguments.</p><What preview={preview} /></> : null;
  }
  if (entry.kind !== "approval.requested") return null;
  const request = entry.event as ApprovalRequested;
  const answer = tape.between(entry.seq, entry.seq + NEAR).find((each) => each.kind === "approval.resolved" && (each.event as ApprovalResolved).approval_id === request.approval_id);
  return <><Previewed request={request} resolution={answer?.event as ApprovalResolved | undefined} /></>;
}

function Links({ found, choose, none }: { found: readonly Entry[]; choose: (seq: number) => void; none: string }): VNode {
  return <span class="row">{found.length ? found.map((each) => <button type="button" key={each.seq} class="small" onClick={() => choose(each.seq)}>{says(each.kind)} · {each.seq}</button>) : <span class="hint">{none}</span>}</span>;
}

/** How the policies in force would decide the same question. */
function Decided({ callId }: { callId: string }): VNode {
  const [found, setFound] = useState<ExplainedCall | undefined>();
  const [error, setError] = useState("");
  const look = () => void palyra.explainCall({ call_id: callId }).then(setFound, (failure: unknown) => setError(wordsOf(failure)));
  return (
    <div class="row">
      {found
        ? <span>Then: <Badge>{found.decided.verdict}</Badge> Now: <Badge>{found.now.verdict.type}</Badge> {visible(found.now.verdict.reason)}</span>
        : <button type="button" class="small" onClick={look}>Check against current policy</button>}
      <Problem text={error} />
    </div>
  );
}

function ProofTab({ id, entry }: { id: string; entry: Entry }): VNode {
  const [proof, setProof] = useState<Proof | undefined>();
  const [error, setError] = useState("");
  const check = () => void prove(id, entry.seq).then(setProof, (failure: unknown) => setError(wordsOf(failure)));
  return (
    <>
      <dl class="facts"><dt>Hash</dt><dd class="mono breaks">{entry.hash}</dd>
        {proof && <><dt>Previous hash</dt><dd class="mono breaks">{proof.before}</dd><dt>Computed here</dt><dd class="mono breaks">{proof.computed}</dd></>}
        <dt>Journal position</dt><dd>{count(entry.position)}</dd></dl>
      {proof ? (
        <p role="status"><Badge tone={proof.fits ? "good" : "bad"}>{proof.fits ? "Verified" : "Changed"}</Badge> {proof.fits
          ? "Your browser recomputed this hash from the entry and the previous hash. The chain covers every earlier entry too."
          : "The hash does not match: this entry or the one before it was changed after it was written. Verify the whole journal."}</p>
      ) : <button type="button" class="small" onClick={check}>Verify entry</button>}
      <Problem text={error} />
    </>
  );
}

interface Step {
  yes: string;
  act: () => Promise<void>;
}

interface Shown extends Step {
  /** Another thing that can be done instead. */
  also?: Step;
  words: ComponentChildren;
  diff: string;
}

/** Undo, rewind, fork and replay. Each shows what it would change, and does it after a second click. */
function Ways({ entry, id, call, choose }: { entry: Entry; id: string; call: CallFacts; choose: (seq: number) => void }): VNode {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [shown, setShown] = useState<Shown | undefined>();
  const [told, setTold] = useState<VNode | string>("");
  const attempt = async (work: () => Promise<void>) => {
    setError("");
    setTold("");
    setBusy(true);
    try {
      await work();
    } catch (failure) {
      setError(wordsOf(failure));
    }
    setBusy(false);
  };
  const rewind = () => attempt(async () => {
    const found = await palyra.rewindSession(id, { to: entry.seq, preview: true });
    setShown({
      yes: "Rewind session", diff: found.diff ?? "",
      words: <><p>Palyra restores the files that this session changed after this entry, and the conversation continues from here. The timeline keeps every entry.</p><Lasting found={found.lasting} />
        {(found.conflicts?.length ?? 0) > 0 && <p>Changed by others since: {found.conflicts!.map((each) => visible(each.path)).join(", ")}.</p>}</>,
      act: async () => { await palyra.rewindSession(id, { to: entry.seq }); go("chat", id); },
    });
  });
  const undo = () => attempt(async () => {
    const found = await palyra.undo(id, { call_id: call.id, dry_run: true });
    setShown({
      yes: "Undo changes", diff: found.diff ?? "", words: <p>Palyra restores the files that this call changed. Nothing else changes.</p>,
      act: async () => { await palyra.undo(id, { call_id: call.id }); setTold("Undone. The undo is recorded as a new entry."); },
    });
  });
  const fork = () => attempt(async () => {
    const then = await palyra.sessionAt(id, entry.seq, { turns: 1 });
    const changed = then.changed.length > 0 && <p>Not restored by a fork: {then.changed.map((each) => visible(each.path)).join(", ")}.</p>;
    const alone = { yes: "Branch session", act: async () => go("chat", (await branch(id, entry.seq)).session_id) };
    setShown(entry.run_id ? {
      yes: "Fork and run", diff: "", also: alone,
      words: <><p>A new session shares everything up to this entry. <strong>Fork and run</strong> asks the model again from here; its actions are real and need approval as usual. <strong>Branch session</strong> waits for your message.</p>{changed}</>,
      act: async () => go("chat", (await palyra.forkRun(entry.run_id!, { at: entry.seq })).session_id),
    } : { ...alone, diff: "", words: <><p>A new session shares everything up to this entry and waits for your message.</p>{changed}</> });
  });
  const replay = () => attempt(async () => {
    await palyra.replayRun(entry.run_id!);
    let found: RunReplay;
    do found = await palyra.getReplay(entry.run_id!, { wait_ms: REPLAY_WAIT_MS });
    while (found.state === "running");
    setTold(<Replayed found={found} choose={choose} />);
  });
  return (
    <div class="ways">
      <div class="row">
        {(call.finished?.changes?.length ?? 0) > 0 && <button type="button" disabled={busy} onClick={() => void undo()}>Undo…</button>}
        <button type="button" disabled={busy} onClick={() => void rewind()}>Rewind to here…</button>
        <button type="button" disabled={busy} onClick={() => void fork()}>Fork…</button>
        {entry.run_id && <button type="button" disabled={busy} title="Run the loop again over the recorded entries, without effects" onClick={() => void replay()}>Replay run</button>}
      </div>
      <Problem text={error} />
      <div role="status">{told}</div>
      {shown && (
        <div class="problem plain" role="group" aria-label={shown.yes}>
          {shown.words}
          {shown.diff && <Diff text={visible(shown.diff)} />}
          <div class="row">
            {[shown, ...(shown.also ? [shown.also] : [])].map((each) => <button type="button" key={each.yes} class="no" disabled={busy} onClick={() => void attempt(async () => { await each.act(); setShown(undefined); })}>{each.yes}</button>)}
            <button type="button" class="quiet" onClick={() => setShown(undefined)}>Cancel</button>
          </div>
        </div>
      )}
    </div>
  );
}

function Lasting({ found }: { found: Rewound["lasting"] }): VNode | null {
  return found?.length ? <p>Cannot be undone: {found.map((each) => visible(each.tool)).join(", ")}.</p> : null;
}

function Replayed({ found, choose }: { found: RunReplay; choose: (seq: number) => void }): VNode {
  const { replayed } = found;
  if (!replayed) return <p><Badge tone="bad">Replay failed</Badge> {visible(found.problem ?? "")}</p>;
  if (replayed.identical) return <p><Badge tone="good">Identical</Badge> Replayed {count(replayed.entries)} entries without effects; every step matches.</p>;
  const seq = replayed.difference?.seq ?? 0;
  return <p><Badge tone="bad">Different</Badge> The replay differs at <button type="button" class="link" onClick={() => choose(seq)}>entry {seq}</button>. {visible(replayed.difference?.hint ?? "")}</p>;
}
