// One entry of a tape: what it says, why it is there, whether it is unchanged, and the ways back to it, each shown before it is taken.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { branch } from "../chat/verbs";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { prove, type Proof } from "../core/proof";
import { go, href } from "../core/router";
import type { Tape } from "../core/tape";
import { count, visible, when } from "../core/words";
import { why } from "../core/why";
import { Code, Diff } from "../ui/code";
import { Badge, Problem } from "../ui/parts";
import { Previewed, What } from "../chat/approval";
import type { ApprovalRequested, ApprovalResolved, Entry, ExplainedCall, Rewound, RunReplay, ToolFinished } from "../types";

const SAYS: Record<string, string> = {
  "run.accepted": "a run was accepted", "run.started": "the run began", "run.resumed": "the run went on", "run.clock_changed": "the clock changed", "run.completed": "the run was done",
  "run.failed": "the run failed", "run.cancelled": "the run was stopped", "input.received": "a message came", "input.assembled": "the model was shown this",
  "route.planned": "a model was chosen", "model.replied": "the model answered", "model.failed": "the model failed", "tool.proposed": "a step was proposed",
  "tool.decided": "the step was decided", "tool.started": "the step began", "tool.finished": "the step ended", "tool.undone": "the step was undone",
  "tool.handed_over": "steps were handed to the program that asked", "answer.refused": "the answer had another form than was wanted",
  "approval.requested": "you were asked", "approval.resolved": "the question was answered", "session.created": "the session began",
  "session.restored": "the session went back", "session.branched": "a branch began", "session.compacted": "older messages were condensed", "session.reset": "a new beginning",
  "session.changed": "the session was renamed or put away",
};
const REPLAY_WAIT_MS = 20_000;
/** What "why" may look at on either side of an entry. */
export const NEAR = 150;

export function says(kind: string): string {
  return SAYS[kind] ?? kind;
}

interface Given {
  entry: Entry;
  tape: Tape;
  choose: (seq: number) => void;
}

export function EntryDetail({ entry, tape, choose }: Given): VNode {
  tape.tick.value; // Its neighbours may come later.
  const { causes, effects } = why(entry, tape.between(entry.seq - NEAR, entry.seq + NEAR));
  return (
    <section aria-label={`Entry ${entry.seq}`}>
      <h2>{entry.seq}: {says(entry.kind)}</h2>
      <dl class="facts"><dt>when</dt><dd>{when(entry.time_ms)}</dd><dt>by</dt><dd><bdi>{visible(entry.principal)}</bdi></dd><dt>kind</dt><dd class="mono">{entry.kind}</dd></dl>
      <h3>Why</h3>
      <Links words="Because of" found={causes} choose={choose} none={entry.run_id ? "This began it." : "Somebody did this, outside of any run."} />
      <Links words="It led to" found={effects} choose={choose} none="Nothing further yet." />
      {entry.kind === "route.planned" && entry.run_id && <p><a href={href("usage", "run", entry.run_id)}>Who was asked in this run, and why</a></p>}
      <Asked entry={entry} tape={tape} />
      {entry.kind === "tool.decided" && <Decided callId={(entry.event as { call_id: string }).call_id} />}
      <Unchanged id={tape.id} entry={entry} />
      <Ways entry={entry} id={tape.id} choose={choose} />
      <Code text={visible(JSON.stringify(entry.event, null, 2))} language="json" />
    </section>
  );
}

/** What a question was about and what the answer let run: an edit is shown as edited at both. */
function Asked({ entry, tape }: { entry: Entry; tape: Tape }): VNode | null {
  if (entry.kind === "approval.resolved") {
    const { preview } = entry.event as ApprovalResolved;
    return preview ? <><h3>What ran</h3><p><Badge tone="warn">Edited</Badge> Approved with edited arguments.</p><What preview={preview} /></> : null;
  }
  if (entry.kind !== "approval.requested") return null;
  const request = entry.event as ApprovalRequested;
  const answer = tape.between(entry.seq, entry.seq + NEAR).find((each) => each.kind === "approval.resolved" && (each.event as ApprovalResolved).approval_id === request.approval_id);
  return <><h3>What was asked</h3><Previewed request={request} resolution={answer?.event as ApprovalResolved | undefined} /></>;
}

function Links({ words, found, choose, none }: { words: string; found: readonly Entry[]; choose: (seq: number) => void; none: string }): VNode {
  return (
    <p class="row">
      <span class="hint">{words}:</span>
      {found.length ? found.map((each) => <button type="button" class="small" onClick={() => choose(each.seq)}>{each.seq}: {says(each.kind)}</button>) : <span class="hint">{none}</span>}
    </p>
  );
}

/** How the policies in force would decide the same question. */
function Decided({ callId }: { callId: string }): VNode {
  const [found, setFound] = useState<ExplainedCall | undefined>();
  const [error, setError] = useState("");
  const look = () => void palyra.explainCall({ call_id: callId }).then(setFound, (failure: unknown) => setError(wordsOf(failure)));
  return (
    <div class="row">
      {found
        ? <span>Then: <Badge>{found.decided.verdict}</Badge> {visible(found.decided.reason)}. Now: <Badge>{found.now.verdict.type}</Badge> {visible(found.now.verdict.reason)}</span>
        : <button type="button" class="quiet small" onClick={look}>How would this be decided now?</button>}
      <Problem text={error} />
    </div>
  );
}

function Unchanged({ id, entry }: { id: string; entry: Entry }): VNode {
  const [proof, setProof] = useState<Proof | undefined>();
  const [error, setError] = useState("");
  const check = () => void prove(id, entry.seq).then(setProof, (failure: unknown) => setError(wordsOf(failure)));
  return (
    <>
      <h3>Hash</h3>
      <p class="mono breaks">{entry.hash}</p>
      {proof ? (
        <div role="status">
          <p><Badge tone={proof.fits ? "good" : "bad"}>{proof.fits ? "unchanged" : "changed"}</Badge> {proof.fits
            ? "This browser made the hash anew from the entry and the hash before it, and found the same. That holds the entry, and by the same chain every one before it."
            : "The hash that this browser finds is another one: the entry, or the one before it, was changed after it was written. Check the whole journal."}</p>
          <dl class="facts"><dt>hash before</dt><dd class="mono breaks">{proof.before}</dd><dt>found here</dt><dd class="mono breaks">{proof.computed}</dd></dl>
        </div>
      ) : <button type="button" class="small" onClick={check}>Check that it is unchanged</button>}
      <Problem text={error} />
    </>
  );
}

interface Shown {
  yes: string;
  act: () => Promise<void>;
  words: ComponentChildren;
  diff: string;
}

/** Going back, branching, undoing and running again. Each says what it would do, and does it after a second click. */
function Ways({ entry, id, choose }: { entry: Entry; id: string; choose: (seq: number) => void }): VNode {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [shown, setShown] = useState<Shown | undefined>();
  const [told, setTold] = useState<VNode | string>("");
  const callId = (entry.event as { call_id?: string }).call_id;
  const changed = entry.kind === "tool.finished" && ((entry.event as ToolFinished).changes?.length ?? 0) > 0;
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
      yes: "Go back now", diff: found.diff ?? "",
      words: <><p>Files that this session changed since are put back, and what came after no longer counts. The timeline keeps all of it.</p><Lasting found={found.lasting} />
        {(found.conflicts?.length ?? 0) > 0 && <p>Somebody else changed these since: {found.conflicts!.map((each) => visible(each.path)).join(", ")}.</p>}</>,
      act: async () => { await palyra.rewindSession(id, { to: entry.seq }); go("chat", id); },
    });
  });
  const undo = () => attempt(async () => {
    const found = await palyra.undo(id, { call_id: callId, dry_run: true });
    setShown({
      yes: "Undo this now", diff: found.diff ?? "", words: <p>The files of this step are put back; everything else stays.</p>,
      act: async () => { await palyra.undo(id, { call_id: callId }); setTold("Undone. The undo is an entry of its own, at the end."); },
    });
  });
  const fork = () => attempt(async () => {
    const then = await palyra.sessionAt(id, entry.seq, { turns: 1 });
    setShown({
      yes: "Run it again now", diff: "",
      words: <><p>A branch begins that shares everything up to this entry, and the model is asked from here, live: what it does there is real and asks you as always. {then.turns.length + then.left_out} turns had been taken then.</p>
        {then.changed.length > 0 && <p>Files changed since, and not put back by this: {then.changed.map((each) => visible(each.path)).join(", ")}.</p>}</>,
      act: async () => go("chat", (await palyra.forkRun(entry.run_id!, { at: entry.seq })).session_id),
    });
  });
  const replay = () => attempt(async () => {
    await palyra.replayRun(entry.run_id!);
    let found: RunReplay;
    do found = await palyra.getReplay(entry.run_id!, { wait_ms: REPLAY_WAIT_MS });
    while (found.state === "running");
    setTold(<Replayed found={found} choose={choose} />);
  });
  return (
    <>
      <h3>Go on from here</h3>
      <div class="row">
        <button type="button" disabled={busy} onClick={() => void attempt(async () => go("chat", (await branch(id, entry.seq)).session_id))}>Continue from here in a branch</button>
        <button type="button" class="quiet" disabled={busy} onClick={() => void rewind()}>Go back to here…</button>
        {changed && <button type="button" class="quiet" disabled={busy} onClick={() => void undo()}>Undo this step…</button>}
        {entry.run_id && <button type="button" class="quiet" disabled={busy} onClick={() => void replay()}>Replay this run</button>}
        {entry.run_id && <button type="button" class="quiet" disabled={busy} onClick={() => void fork()}>Run again from here…</button>}
      </div>
      <Problem text={error} />
      <div role="status">{told}</div>
      {shown && (
        <div class="problem plain">
          {shown.words}
          {shown.diff && <Diff text={visible(shown.diff)} />}
          <div class="row">
            <button type="button" class="no" disabled={busy} onClick={() => void attempt(async () => { await shown.act(); setShown(undefined); })}>{shown.yes}</button>
            <button type="button" class="quiet" onClick={() => setShown(undefined)}>Leave it</button>
          </div>
        </div>
      )}
    </>
  );
}

function Lasting({ found }: { found: Rewound["lasting"] }): VNode | null {
  return found?.length ? <p>This cannot be taken back: {found.map((each) => visible(each.tool)).join(", ")}.</p> : null;
}

function Replayed({ found, choose }: { found: RunReplay; choose: (seq: number) => void }): VNode {
  const { replayed } = found;
  if (!replayed) return <p><Badge tone="bad">not replayed</Badge> {visible(found.problem ?? "")}</p>;
  if (replayed.identical) return <p><Badge tone="good">the same</Badge> The loop ran again over {count(replayed.entries)} entries, without any effect, and did the same.</p>;
  const seq = replayed.difference?.seq ?? 0;
  return <p><Badge tone="bad">different</Badge> It differs at <button type="button" class="quiet small" onClick={() => choose(seq)}>entry {seq}</button> {visible(replayed.difference?.hint ?? "")}</p>;
}
