// What a conversation is made of, drawn: messages, replies, tool calls and notices.
import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Conversation, Item, NoticeItem, ReplyItem, ToolItem, UserItem } from "../core/conversation";
import { href, setQuery } from "../core/router";
import { pending, status } from "../core/store";
import { calm, clock, count, lasting, money, sentence, size, toolWords, visible, when } from "../core/words";
import { Code, Copy, Diff, Output, turned } from "../ui/code";
import { Markdown } from "../ui/markdown";
import { Badge, Labels, Problem } from "../ui/parts";
import { Download, useImage } from "../ui/stored";
import type { Attachment } from "../types";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { ApprovalCard, type Line, type Origin } from "./approval";
import { originAmong, type Said } from "./origins";
import { editing } from "./composing";
import { Together } from "./together";
import { askAgain, retry } from "./verbs";

/** `shared`: of the session that this one continues; it is read here, and acted upon there. */
export function Drawn({ item, conversation, shared = false }: { item: Item; conversation: Conversation; shared?: boolean }): VNode {
  // Redrawn when this changes, and only then. What is drawn inside has it too: the item is the same object before and after.
  const tick = item.tick.value;
  const inside =
    item.kind === "user" ? <User tick={tick} item={item} conversation={conversation} shared={shared} />
    : item.kind === "reply" ? <Reply tick={tick} item={item} />
    : item.kind === "tool" ? <Tool tick={tick} item={item} conversation={conversation} />
    : <Notice tick={tick} item={item} conversation={conversation} />;
  return <div class={`item${item.gone ? " gone" : ""}${shared ? " shared" : ""}`} data-seq={item.seq}>{inside}</div>;
}

function User({ item, conversation, shared }: { tick: number; item: UserItem; conversation: Conversation; shared: boolean }): VNode {
  const { event } = item;
  const [error, setError] = useState("");
  const takeBack = () => void palyra.cancel(item.runId).catch((failure: unknown) => setError(wordsOf(failure)));
  return (
    <article class="user" aria-label="You">
      <div class="bubble" dir="auto">{calm(event.text)}</div>
      <Attached attachments={event.attachments ?? []} sessionId={conversation.id} />
      {(event.references?.length ?? 0) > 0 && (
        <div class="row">{event.references!.map((each) => <Badge title={each.note}><bdi>@{each.kind}{each.target ? `:${visible(each.target)}` : ""}</bdi>{each.truncated ? " (part)" : ""}</Badge>)}</div>
      )}
      <div class="row tools">
        <time title={when(item.time)}>{clock(item.time, false)}</time>
        {event.mode === "steer" && <Badge>Steered</Badge>}
        {item.queued && <><Badge>Queued</Badge><button type="button" class="quiet small" onClick={takeBack}>Remove</button></>}
        <Problem text={error} />
        <Copy text={event.text} />
        {!shared && <button type="button" class="quiet small" onClick={() => (editing.value = { sessionId: conversation.id, at: item.acceptedSeq - 1, text: event.text })}>Edit in new branch</button>}
        {!shared && !item.queued && <AskAgain item={item} onError={setError} />}
      </div>
    </article>
  );
}

/** The same message to another model: both answers are then shown side by side. */
function AskAgain({ item, onError }: { item: UserItem; onError: (words: string) => void }): VNode | null {
  const models = status.value?.models ?? [];
  const [busy, setBusy] = useState(false);
  if (models.length < 2) return null;
  const ask = (model: string) => {
    setBusy(true);
    onError("");
    void askAgain(item.runId, model).then((beside) => setQuery({ beside }), (failure: unknown) => onError(wordsOf(failure))).finally(() => setBusy(false));
  };
  return (
    <select class="small" aria-label="Ask another model" disabled={busy} value="" onChange={(event) => ask(event.currentTarget.value)}>
      <option value="">Ask another model…</option>
      {models.map((each) => <option key={each.name} value={each.name}>{visible(each.name)}</option>)}
    </select>
  );
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);

export function isPicture(file: Pick<Attachment, "media_type">): boolean {
  return PICTURES.has(file.media_type);
}

/** A stored picture, small; a click shows it as large as the window. */
export function Picture({ file, sessionId }: { file: Pick<Attachment, "artifact" | "name" | "width" | "height">; sessionId: string }): VNode {
  const box = useRef<HTMLDialogElement>(null);
  const source = useImage(palyra.getArtifactPath(sessionId, file.artifact));
  const name = visible(file.name || "picture");
  return (
    <>
      <button type="button" class="plain thumb" aria-label={`Show ${name}`} onClick={() => box.current?.showModal()}>
        <img src={source || undefined} alt={name} decoding="async" width={file.width || undefined} height={file.height || undefined} />
      </button>
      <dialog ref={box} class="lightbox" aria-label={name} onClick={() => box.current?.close()}>
        {source && <img src={source} alt={name} />}
        <p class="row"><bdi>{name}</bdi><button type="button" class="small">Close</button></p>
      </dialog>
    </>
  );
}

/** The type of a file in a few letters. */
function typeOf(file: Pick<Attachment, "media_type" | "name">): string {
  return (/\.(\w{1,5})$/.exec(file.name ?? "")?.[1] ?? file.media_type.split("/")[1] ?? "file").slice(0, 5);
}

export function Attached({ attachments, sessionId }: { attachments: readonly Attachment[]; sessionId: string }): VNode | null {
  if (!attachments.length) return null;
  return (
    <ul class="attached">
      {attachments.map((each) => (
        <li>
          {isPicture(each) ? <Picture file={each} sessionId={sessionId} /> : <span class="type" title={each.media_type}>{typeOf(each)}</span>}
          <Download path={palyra.getArtifactPath(sessionId, each.artifact)} name={each.name || "file"}><bdi>{visible(each.name || "file")}</bdi></Download>
          <span class="hint">{size(each.size ?? 0)}{each.width ? `, ${each.width} × ${each.height}` : ""}</span>
        </li>
      ))}
    </ul>
  );
}

function Reply({ item }: { tick: number; item: ReplyItem }): VNode {
  const used = item.event?.usage;
  return (
    <article class="reply" aria-label="Palyra" aria-busy={item.live}>
      {item.reasoning && (
        <details class="reasoning">
          <summary>{item.live && !item.text ? "Thinking…" : "Reasoning"}</summary>
          <Markdown text={item.reasoning} live={item.live} />
        </details>
      )}
      <Markdown text={item.text} live={item.live} />
      {item.live && <p class="working" aria-hidden="true">{item.preparing ? "Preparing a tool call" : ""}<i /><i /><i /></p>}
      {item.incomplete && <div class="row"><Badge tone="warn" title="The reply stopped or failed before it was complete">Incomplete</Badge></div>}
      {item.event && (
        <div class="row tools">
          <time title={when(item.time)}>{item.event.model}</time>
          {used && <span title="Tokens read and written">{count(used.input_tokens ?? 0)} in, {count(used.output_tokens ?? 0)} out</span>}
          {!!item.event.cost_microusd && <span>{money(item.event.cost_microusd)}</span>}
          <Copy text={item.text} />
        </div>
      )}
    </article>
  );
}

const OUTCOMES: Record<string, string> = {
  ok: "Done", error: "Failed", denied: "Denied", cancelled: "Stopped", interrupted: "Interrupted",
  timeout: "Timed out", unknown: "Unknown", skipped: "Skipped",
};

/** `over`: its run has ended, so what has not finished never will. */
function stateOf(item: ToolItem, over: boolean): [string, string] {
  if (item.undone) return ["Undone", "warn"];
  if (item.finished) return [OUTCOMES[item.finished.outcome] ?? item.finished.outcome, item.finished.outcome === "ok" ? "good" : "bad"];
  if (item.approval && !item.resolved && !over) return ["Needs approval", "warn"];
  if (over) return [item.startedMs ? "Interrupted" : "Not run", "warn"];
  if (item.startedMs) return ["Running", "info"];
  return ["Next", ""];
}

const MARKS: Record<string, string> = { good: "✓", bad: "✕", warn: "!" };

function originIn(conversation: Conversation, item: ToolItem): Origin {
  const items = conversation.items.peek();
  const before = items.slice(0, Math.max(0, items.indexOf(item))).flatMap((each): Said[] =>
    each.kind === "user" ? [{ text: each.event.text }] : each.kind === "tool" && each.finished?.text ? [{ text: each.finished.text, name: summary(each) || each.proposed.tool }] : []);
  return originAmong(before, conversation.from.peek() <= 1 && !conversation.before.peek());
}

function summary(item: ToolItem): string {
  const values = Object.values(item.proposed.arguments).filter((each) => typeof each === "string" || typeof each === "number");
  return visible(String(values[0] ?? "")).split("\n")[0]!.slice(0, 120);
}

function waits(item: ToolItem): boolean {
  return Boolean(item.approval && !item.resolved && !item.finished && !item.over);
}

/** The calls that one question asks about, in their order: those of its turn that still wait. */
function askedWith(item: ToolItem, conversation: Conversation): readonly ToolItem[] {
  const group = item.approval?.group;
  if (!group || !waits(item)) return [item];
  // Drawn again when one of the others is answered: each is read with its tick.
  return conversation.items.value.filter((each): each is ToolItem => each.kind === "tool" && each.approval?.group === group && (each.tick.value, waits(each)));
}

function lineOf(item: ToolItem, conversation: Conversation): Line {
  return { request: item.approval!, proposed: item.proposed, origin: originIn(conversation, item) };
}

function Tool({ tick, item, conversation }: { tick: number; item: ToolItem; conversation: Conversation }): VNode {
  const over = item.over;
  const [words, tone] = stateOf(item, over);
  const { finished, approval } = item;
  const asks = waits(item);
  const together = askedWith(item, conversation);
  const first = pending.value.find((each) => each.session_id === conversation.id)?.approval_id;
  const tier = finished?.attestation?.tier;
  const did = item.resolved?.preview ?? approval?.preview;
  // The first of them has the question for all.
  if (asks && together[0] !== item) return <></>;
  return (
    <article class="tool" aria-label={`Tool call: ${toolWords(item.proposed.tool)}`}>
      {asks && (together.length > 1
        ? <Together lines={together.map((each) => lineOf(each, conversation))} keys={together.some((each) => each.approval!.approval_id === first)} />
        : <ApprovalCard key={approval!.approval_id} {...lineOf(item, conversation)} keys={first === approval!.approval_id} />)}
      {!asks && <details open={item.opened ?? (!!item.startedMs && !finished && !!item.output)}>
        <summary onClick={(event) => (item.opened = !(event.currentTarget.parentElement as HTMLDetailsElement).open)}>
          <span class={`mark ${tone}`} aria-hidden="true">{MARKS[tone] ?? "›"}</span>
          <span class="tool-name" title={item.proposed.tool}>{sentence(toolWords(item.proposed.tool))}</span>
          <bdi class="tool-what mono">{summary(item)}</bdi>
          {!!finished?.duration_ms && <span class="tool-took">{lasting(finished.duration_ms)}</span>}
          <Badge tone={tone}>{words}</Badge>
        </summary>
        <div class="row facts">
          <span class="mono">{item.proposed.tool}</span>
          {!!finished?.duration_ms && <span>{lasting(finished.duration_ms)}</span>}
          {tier && tier !== "none" && <span title="How strictly it was kept apart from the rest of the machine; C is the strictest">sandbox {tier}</span>}
          <Labels label={finished?.label} />
          <Cost item={item} />
          {item.decided && <span>{visible(item.decided.reason)}</span>}
          {item.resolved && <span>{item.resolved.decision === "allow" ? "Approved by you" : item.resolved.decision === "deny" ? "Denied by you" : item.resolved.decision}</span>}
        </div>
        <Code text={visible(JSON.stringify(item.proposed.arguments, null, 2))} language="json" />
        {item.resolved?.preview && <p><Badge tone="warn">Edited</Badge> Approved with edited arguments; this is what ran.</p>}
        {did?.kind === "diff" && !asks && <Diff text={visible(did.body ?? "")} />}
        {!finished && item.output && <Output text={visible(item.output)} label="output so far" />}
        {finished?.text && <Output text={visible(finished.text)} label="result" />}
        <Attached attachments={finished?.images ?? []} sessionId={conversation.id} />
        {finished?.artifact && <p><Download path={palyra.getArtifactPath(conversation.id, finished.artifact)} name="result.txt">Download full result ({size(finished.size ?? 0)})</Download></p>}
        {(finished?.changes?.length ?? 0) > 0 && <Changes tick={tick} item={item} conversation={conversation} />}
      </details>}
    </article>
  );
}

/** What it cost to ask for this step, shared with the others of the same turn, and what another agent spent on it. */
function Cost({ item }: { item: ToolItem }): VNode | null {
  const used = item.askedIn?.usage;
  const spent = item.finished?.agent?.cost_microusd ?? 0;
  const cost = (item.askedIn?.cost_microusd ?? 0) + spent;
  if (!used && !cost) return null;
  const others = (item.askedIn?.calls?.length ?? 1) - 1;
  return (
    <span title={`The turn of the model that asked for this${others ? ` and ${others} more` : ""}${spent ? ", and what another agent spent on it" : ""}`}>
      {used ? `${count(used.input_tokens ?? 0)} in, ${count(used.output_tokens ?? 0)} out` : ""}{cost ? `${used ? ", " : ""}${money(cost)}` : ""}
    </span>
  );
}

interface UndoPreview { diff?: string; changes?: { path: string; change: string }[] }

function Changes({ item, conversation }: { tick: number; item: ToolItem; conversation: Conversation }): VNode {
  const [preview, setPreview] = useState<UndoPreview | undefined>();
  const [did, setDid] = useState("");
  const [error, setError] = useState("");
  const look = () => {
    setError("");
    void palyra.undo(conversation.id, { call_id: item.callId, dry_run: true })
      .then((found) => setDid(turned(found.diff ?? "")), (failure: unknown) => setError(wordsOf(failure)));
  };
  const undo = async (dry: boolean) => {
    setError("");
    try {
      const found = await palyra.undo(conversation.id, { call_id: item.callId, dry_run: dry });
      setPreview(dry ? found : undefined);
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  return (
    <>
      <ul class="changes">{item.finished!.changes!.map((each) => <li><Badge>{each.change}</Badge> <bdi class="mono">{visible(each.path)}</bdi></li>)}</ul>
      <Problem text={error} />
      {did && <Diff text={visible(did)} />}
      {!did && !item.undone && (item.resolved?.preview ?? item.approval?.preview)?.kind !== "diff" && <button type="button" class="quiet" onClick={look}>Show changes</button>}
      {preview?.diff && <Diff text={visible(preview.diff)} />}
      {!item.undone && item.proposed.effect === "reversible" && (preview
        ? <div class="row"><button type="button" onClick={() => void undo(false)}>Undo now</button><button type="button" class="quiet" onClick={() => setPreview(undefined)}>Cancel</button></div>
        : <button type="button" class="quiet" onClick={() => void undo(true)}>Undo…</button>)}
    </>
  );
}

function Notice({ item, conversation }: { tick: number; item: NoticeItem; conversation: Conversation }): VNode {
  return (
    <div class={`notice ${item.tone}`}>
      <bdi>{visible(item.text)}</bdi>
      {item.link && <a href={href("chat", item.link.session)}>{item.link.words}</a>}
      {item.retry && conversation.items.value.at(-1) === item && <button type="button" class="quiet small" onClick={() => void retry(conversation)}>Try again</button>}
    </div>
  );
}
