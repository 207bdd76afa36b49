// Beside a conversation: its run as a picture, what it cost, what the model read, and the proof. Beside a new one: what is set up.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import type { Conversation, ToolItem } from "../core/conversation";
import { ended } from "../core/conversation";
import { href } from "../core/router";
import { status } from "../core/store";
import * as palyra from "../core/verbs";
import { count, lasting, money, shortPath, visible } from "../core/words";
import { useLoaded } from "../ui/page";
import { Labels, Problem } from "../ui/parts";
import { RunPicture } from "../ui/waterfall";
import type { ModelReplied } from "../types";

const MOST_STEPS = 12;
const READS = /^(fs\.(read|list|search)|http\.fetch|browser\.(open|read|screenshot)|memory\.search|session\.search|artifact\.read|skill\.)/;

function toolsOf(conversation: Conversation, runId: string): ToolItem[] {
  return conversation.items.value.filter((each): each is ToolItem => each.kind === "tool" && each.runId === runId);
}

/** The model's turns of a run by number, each with the moment of its end. */
function turnsOf(conversation: Conversation, runId: string): { event: ModelReplied; end: number }[] {
  const found = new Map<number, { event: ModelReplied; end: number }>();
  for (const item of conversation.items.value) {
    if (item.runId !== runId) continue;
    const event = item.kind === "reply" ? item.event : item.kind === "tool" ? item.askedIn : undefined;
    if (event && !found.has(event.turn)) found.set(event.turn, { event, end: item.time });
  }
  return [...found.values()];
}

/** How long a run has waited for answers of a person. */
function waitedMs(tools: readonly ToolItem[], now: number): number {
  return tools.reduce((sum, each) => sum + (each.askedMs ? (each.answeredMs || (each.over ? each.askedMs : now)) - each.askedMs : 0), 0);
}

export function Inspector({ conversation, onClose }: { conversation: Conversation | undefined; onClose?: (() => void) | undefined }): VNode {
  return (
    <aside class="inspector" aria-label="Details">
      {conversation ? <Run conversation={conversation} onClose={onClose} /> : <Setup />}
    </aside>
  );
}

function Run({ conversation, onClose }: { conversation: Conversation; onClose?: (() => void) | undefined }): VNode {
  const run = conversation.run.value;
  const [now, setNow] = useState(Date.now());
  const going = !!run && !ended(run);
  useEffect(() => {
    if (!going) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [going]);
  const head = <div class="head"><h2>This run</h2>{onClose && <button type="button" class="quiet small" onClick={onClose}>Close</button>}</div>;
  if (!run) return <>{head}<p class="hint">Nothing has run in this session yet. Time, tokens, cost and proof of the next run appear here.</p></>;
  // A step that changes redraws this too.
  for (const each of conversation.items.value) if (each.runId === run.runId) void each.tick.value;
  const end = run.endedMs || Math.max(now, run.startedMs);
  const tools = toolsOf(conversation, run.runId);
  const waiting = waitedMs(tools, end);
  const total = Math.max(0, end - run.startedMs);
  const cached = turnsOf(conversation, run.runId).reduce((sum, { event }) => sum + (event.usage?.cached_tokens ?? 0), 0);
  const read = tools.filter((each) => READS.test(each.proposed.tool) && each.finished?.outcome === "ok");
  return (
    <>
      {head}
      <div class="kv">
        <div><b>{lasting(total)}</b><span>{lasting(Math.max(0, total - waiting))} working</span></div>
        <div title={`${count(run.input)} in, ${count(run.output)} out`}><b>{count(run.input + run.output)}</b><span>tokens{cached ? `, ${Math.round((cached / Math.max(1, run.input)) * 100)} % cached` : ""}</span></div>
        <div><b>{money(run.cost)}</b><span>cost</span></div>
        <div><b>{tools.length}</b><span>tool call{tools.length === 1 ? "" : "s"}</span></div>
      </div>
      <h2>Steps</h2>
      <RunPicture runId={run.runId} most={MOST_STEPS} bare />
      {read.length > 0 && (
        <>
          <h2>What the model read</h2>
          <ul class="reads">{read.map((each) => <li key={each.key}><Labels label={each.finished?.label} /><bdi class="mono">{visible(String(Object.values(each.proposed.arguments)[0] ?? each.proposed.tool))}</bdi></li>)}</ul>
        </>
      )}
      <Proof conversation={conversation} />
    </>
  );
}

function Proof({ conversation }: { conversation: Conversation }): VNode {
  const [said, setSaid] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const verify = () => {
    setBusy(true);
    setError("");
    void palyra.verifyJournal().then(
      (found) => (found.ok ? setSaid(`${count(found.entries)} entries verified. The chain is intact.`) : setError("The journal was changed after it was written. Open Journal for the first bad entry.")),
      (failure: unknown) => setError(wordsOf(failure)),
    ).finally(() => setBusy(false));
  };
  return (
    <>
      <h2>Proof</h2>
      <p class="hint"><a href={href("timeline", conversation.id)}>{count(conversation.length)} entries</a> in the journal</p>
      {said ? <p class="hint" role="status">{said}</p> : <button type="button" class="small" disabled={busy} onClick={verify}>{busy ? "Verifying…" : "Verify journal"}</button>}
      <Problem text={error} />
    </>
  );
}

/** What is set up, and the way to what is missing. */
function Setup(): VNode | null {
  const now = status.value;
  const channels = useLoaded(() => palyra.listChannels());
  if (!now) return null;
  const model = now.models.find((each) => each.default);
  const demo = model?.provider === "demo";
  const connected = channels.value?.channels.length ?? 0;
  return (
    <>
      <h2>Set-up</h2>
      <table class="setup"><tbody>
        <tr><th scope="row">Model</th><td>{model ? <><i class={`dot ${demo ? "warn" : "good"}`} aria-hidden="true" /> {visible(model.name)}{demo && <><br /><a href={href("settings")}>Add a model</a></>}</> : <a href={href("settings")}>Add a model</a>}</td></tr>
        <tr><th scope="row">Policy</th><td><a href={href("policies", "presets")}>{now.policy.preset}</a></td></tr>
        <tr><th scope="row">Folder</th><td class="mono breaks" title={now.workspace}>{visible(shortPath(now.workspace || "none"))}</td></tr>
        <tr><th scope="row">Channels</th><td>{connected ? <a href={href("channels")}>{connected} set up</a> : <a href={href("channels")}>Connect one</a>}</td></tr>
        <tr><th scope="row">Phone</th><td><a href={href("connections", "listening")}>Approve from your phone</a></td></tr>
        <tr><th scope="row">New here?</th><td><a href={href("tour")}>Take the tour</a></td></tr>
      </tbody></table>
    </>
  );
}
