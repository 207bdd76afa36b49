// A session as it is drawn: its entries folded into items, one after the other. Screens redraw an item only when that item changed.
import { batch, signal, type Signal } from "@preact/signals";
import type {
  ApprovalRequested,
  ApprovalResolved,
  Entry,
  AnyEvent,
  InputReceived,
  LiveEvent,
  ModelFailed,
  ModelReplied,
  Session,
  ToolDecided,
  ToolFinished,
  ToolProposed,
} from "../types";
import { count } from "./words";

interface Base {
  key: string;
  seq: number;
  time: number;
  runId: string;
  /** Changes when the item does. */
  tick: Signal<number>;
  /** No longer part of the conversation: the session was taken back to before it. */
  gone: boolean;
}
export interface UserItem extends Base {
  kind: "user";
  event: InputReceived;
  acceptedSeq: number;
  /** Its run has not begun. */
  queued: boolean;
}
export interface ReplyItem extends Base {
  kind: "reply";
  turn: number;
  text: string;
  reasoning: string;
  preparing: boolean;
  live: boolean;
  /** The connection is new: what was heard before is told anew, from the beginning. */
  stale: boolean;
  event: ModelReplied | undefined;
  /** It was broken off or failed: this is what was said until then. */
  incomplete: boolean;
}
export interface ToolItem extends Base {
  kind: "tool";
  callId: string;
  proposed: ToolProposed;
  decided?: ToolDecided;
  approval?: ApprovalRequested;
  resolved?: ApprovalResolved;
  startedMs: number;
  output: string;
  finished?: ToolFinished;
  undone: boolean;
  /** When a person was asked, and when they answered; 0: not. */
  askedMs: number;
  answeredMs: number;
  /** Its run has ended. */
  over: boolean;
  /** The turn that asked for it, with its tokens and cost; shared by all that it asked for. */
  askedIn: ModelReplied | undefined;
  /** Whether somebody opened or closed it. */
  opened: boolean | undefined;
}
export interface NoticeItem extends Base {
  kind: "notice";
  tone: "plain" | "warn" | "bad";
  text: string;
  link?: { session: string; words: string };
  retry?: boolean;
}
export type Item = UserItem | ReplyItem | ToolItem | NoticeItem;

export interface RunView {
  runId: string;
  state: "accepted" | "in_progress" | "waiting" | "done" | "failed" | "stopped";
  acceptedSeq: number;
  startedMs: number;
  endedMs: number;
  input: number;
  output: number;
  cost: number;
  context: number;
  budget: number;
  model: string;
  /** Since when a model is asked that has said nothing yet; 0: none is. */
  askedMs: number;
  /** How much of the prompt its server has read, in percent. */
  read: number | undefined;
  /** While no provider can answer: why, when the model is asked next, and when the run gives up. */
  wait?: RunWait;
}

export interface RunWait {
  cause: string;
  message: string;
  model: string;
  nextTryMs: number;
  deadlineMs: number;
}

/** Whether a run is over, however it ended. */
export function ended(run: RunView): boolean {
  return run.state === "done" || run.state === "failed" || run.state === "stopped";
}

const MOST_OUTPUT = 200_000;
/** So many entries are kept while somebody looks at the end; older ones are fetched again when they are looked for. */
const MOST_KEPT = 1_500;
const KEPT_AFTER = 500;

/** Words that stream in are drawn so often at most: what is between belongs to scrolling, typing and everything else on the machine. */
const PACE_MS = 50;

export class Conversation {
  readonly items = signal<Item[]>([]);
  readonly run = signal<RunView | undefined>(undefined);
  readonly session = signal<Session | undefined>(undefined);
  readonly ready = signal(false);
  /** The first entry that was loaded; what lies before it can be fetched. */
  readonly from = signal(0);
  /** Of a branch: the end of what it shares with the session that it continues. */
  readonly before = signal<Conversation | undefined>(undefined);
  cursor = 0;
  /** Whether somebody looks at something before the end: then nothing of it is let go. */
  lookingBack = false;
  private entries: Entry[] = [];
  private list: Item[] = [];
  private readonly byKey = new Map<string, Item>();
  private readonly runs = new Map<string, RunView>();
  private readonly askedIn = new Map<string, ModelReplied>();
  private readonly dirty = new Set<Item>();
  private structure = false;
  private runDirty = false;
  private scheduled = false;

  constructor(readonly id: string) {}

  /** Begin with these entries. */
  load(entries: readonly Entry[]): void {
    this.fold([...entries]);
    this.flush();
    this.ready.value = true;
  }

  /** Entries from before those that are there. What is being said meanwhile goes on. */
  prepend(earlier: readonly Entry[]): void {
    const first = this.entries[0]?.seq ?? this.cursor + 1;
    const spoken = this.list.filter((item): item is ReplyItem => item.kind === "reply" && item.live);
    const outputs = new Map(this.list.flatMap((item) => (item.kind === "tool" && item.output ? [[item.key, item.output]] : [])));
    this.fold([...earlier.filter((entry) => entry.seq < first), ...this.entries]);
    for (const item of spoken) if (!this.byKey.has(item.key)) this.add(item);
    for (const [key, output] of outputs) {
      const item = this.byKey.get(key);
      if (item?.kind === "tool" && !item.finished) item.output = output;
    }
    this.flush();
  }

  /** How many entries the session has, as far as is known here. */
  get length(): number {
    return Math.max(this.cursor, this.session.value?.head_seq ?? 0);
  }

  private fold(entries: Entry[]): void {
    const cursor = this.cursor;
    this.entries = [];
    this.list = [];
    this.byKey.clear();
    this.runs.clear();
    this.askedIn.clear();
    this.cursor = Math.max(0, (entries[0]?.seq ?? 1) - 1);
    this.from.value = this.cursor + 1;
    for (const entry of entries) this.entry(entry);
    this.cursor = Math.max(this.cursor, entries.length ? 0 : cursor);
    this.structure = this.runDirty = true;
  }

  entry(entry: Entry): void {
    if (entry.seq <= this.cursor) return;
    this.cursor = entry.seq;
    this.entries.push(entry);
    this.apply(entry, entry.event as AnyEvent);
    this.schedule();
  }

  live(event: LiveEvent): void {
    if (event.kind === "model.delta") {
      const asked = this.runs.get(event.run_id);
      if (event.progress != null) {
        if (asked) asked.read = event.progress;
        this.runDirty = true;
        return this.schedule();
      }
      if (asked?.askedMs) {
        Object.assign(asked, { askedMs: 0, read: undefined });
        this.runDirty = true;
      }
      const reply = this.reply(event.run_id, event.turn);
      if (reply.event) return;
      if (event.whole || reply.stale) reply.text = reply.reasoning = "";
      reply.stale = reply.incomplete = false;
      reply.live = true;
      reply.text += event.text ?? "";
      reply.reasoning += event.reasoning ?? "";
      if (event.call) reply.preparing = true;
      this.dirty.add(reply);
    } else if (event.kind === "tool.progress") {
      const tool = this.byKey.get(event.call_id);
      if (tool?.kind !== "tool" || tool.finished) return;
      tool.output = (tool.output + event.text).slice(-MOST_OUTPUT);
      this.dirty.add(tool);
    } else if (event.kind === "run.retry_planned") {
      const run = this.runs.get(event.run_id);
      if (!run?.wait) return;
      run.wait = { ...run.wait, cause: event.cause, message: event.message, nextTryMs: event.next_try_ms };
      this.runDirty = true;
    }
    this.schedule();
  }

  resumed(): void {
    for (const item of this.list) if (item.kind === "reply" && item.live) item.stale = true;
  }

  /** A conversation that goes on for days must not grow with it. */
  private letGo(): void {
    if (this.entries.length <= MOST_KEPT || this.lookingBack) return;
    const spoken = this.list.filter((item): item is ReplyItem => item.kind === "reply" && item.live);
    this.fold(this.entries.slice(-KEPT_AFTER));
    for (const item of spoken) if (!this.byKey.has(item.key)) this.add(item);
  }

  // --- folding -------------------------------------------------------------------------------------------------------

  private apply(entry: Entry, event: AnyEvent): void {
    const run = entry.run_id ? this.runOf(entry) : undefined;
    switch (event.kind) {
      case "run.accepted":
        Object.assign(run!, { state: "accepted", model: event.model ?? "" });
        break;
      case "run.started":
        if (run) Object.assign(run, { state: "in_progress", startedMs: entry.time_ms, askedMs: entry.time_ms });
        this.unqueue(entry.run_id);
        break;
      case "run.waiting":
        if (run) {
          run.state = "waiting";
          run.wait = { cause: event.cause, message: event.message, model: `${event.provider}/${event.model}`, nextTryMs: event.next_try_ms, deadlineMs: event.deadline_ms };
        }
        break;
      case "run.resumed":
        if (run) {
          run.state = "in_progress";
          delete run.wait;
        }
        if (event.after === "crash") this.notice(entry, "plain", "Palyra restarted and continued from here.");
        break;
      case "run.completed":
        this.end(entry, "done");
        break;
      case "run.failed":
        this.end(entry, "failed");
        this.notice(entry, "bad", event.message, { retry: true });
        break;
      case "run.cancelled":
        this.end(entry, "stopped");
        this.notice(entry, "warn", event.reason && event.reason !== "cancelled" ? `Stopped: ${event.reason}` : "Stopped.", { retry: true });
        break;
      case "input.received":
        this.add({ ...this.base(entry, `in${entry.seq}`), kind: "user", event, acceptedSeq: run?.acceptedSeq ?? entry.seq, queued: run?.state === "accepted" });
        break;
      case "route.planned":
        // It may come behind the first words, so it does not begin a wait.
        if (run) run.model = `${event.provider}/${event.model}`;
        break;
      case "input.assembled":
        if (run) Object.assign(run, { context: event.tokens, budget: event.budget });
        break;
      case "model.replied":
        if (run) Object.assign(run, { askedMs: 0, read: undefined });
        this.replied(entry, event, run);
        break;
      case "model.failed":
        if (run) Object.assign(run, { askedMs: event.will_retry ? entry.time_ms : 0, read: undefined });
        this.broken(entry, event, run);
        this.failedOnce(entry, event);
        break;
      case "session.reset":
        this.notice(entry, "plain", "Context reset. The agent no longer sees the messages above.");
        break;
      case "session.branched":
        this.branched(entry, event.parent, event.child);
        break;
      case "session.compacted":
        this.notice(entry, "plain", `Context compacted: ${count(event.tokens_before ?? 0)} to ${count(event.tokens_after ?? 0)} tokens. The timeline keeps every message.`);
        break;
      case "session.uncompacted":
        this.notice(entry, "plain", "Compaction undone. The agent sees the older messages again.");
        break;
      case "session.restored":
        this.restored(entry, event.to_seq, event.conversation ?? true);
        break;
      case "session.ruled":
        this.notice(entry, "plain", event.removed ? `Rule removed: ${event.words}` : `Rule added: ${event.words}`);
        break;
      case "session.changed":
        this.retitle(event.title, event.archived, event.model);
        break;
      default:
        this.tool(entry, event, run);
    }
    this.runDirty = true;
  }

  /** The run of an entry. One that began before what is kept is seen from where that begins. */
  private runOf(entry: Entry): RunView {
    const runId = entry.run_id!;
    const known = this.runs.get(runId);
    if (known) return known;
    const made: RunView = {
      runId, state: "in_progress", acceptedSeq: entry.seq, startedMs: entry.time_ms, endedMs: 0,
      input: 0, output: 0, cost: 0, context: 0, budget: 0, model: "", askedMs: 0, read: undefined,
    };
    this.runs.set(runId, made);
    return made;
  }

  private tool(entry: Entry, event: AnyEvent, run: RunView | undefined): void {
    if (event.kind === "tool.proposed") {
      this.add({
        ...this.base(entry, event.call_id), kind: "tool", callId: event.call_id, proposed: event,
        startedMs: 0, output: "", undone: false, askedMs: 0, answeredMs: 0, over: false, askedIn: this.askedIn.get(event.call_id), opened: undefined,
      });
      this.askedIn.delete(event.call_id);
      return;
    }
    if (event.kind === "approval.requested" && run) run.state = "waiting";
    const item = "call_id" in event && event.call_id ? this.byKey.get(event.call_id) : undefined;
    if (item?.kind !== "tool") return;
    this.dirty.add(item);
    if (event.kind === "tool.decided") item.decided = event;
    else if (event.kind === "tool.started") item.startedMs = entry.time_ms;
    else if (event.kind === "tool.finished") {
      item.finished = event;
      if (run) run.askedMs = entry.time_ms;
    }
    else if (event.kind === "tool.undone") item.undone = true;
    else if (event.kind === "approval.requested") {
      item.approval = event;
      Object.assign(item, { askedMs: entry.time_ms, answeredMs: 0 });
      delete item.resolved;
    } else if (event.kind === "approval.resolved") {
      item.resolved = event;
      item.answeredMs = entry.time_ms;
      if (event.arguments) item.proposed = { ...item.proposed, arguments: event.arguments };
    }
  }

  private replied(entry: Entry, event: ModelReplied, run: RunView | undefined): void {
    if (run) {
      run.input += event.usage?.input_tokens ?? 0;
      run.output += event.usage?.output_tokens ?? 0;
      run.cost += event.cost_microusd ?? 0;
      run.model ||= `${event.provider}/${event.model}`;
    }
    for (const call of event.calls ?? []) this.askedIn.set(call.id, event);
    const key = `re${entry.run_id}/${event.turn}`;
    if (!event.text && !event.reasoning) return this.drop(key);
    const item = this.reply(entry.run_id ?? "", event.turn, entry);
    Object.assign(item, {
      text: event.text ?? "", reasoning: event.reasoning ?? "", live: false, stale: false, preparing: false,
      event, seq: entry.seq, time: entry.time_ms, incomplete: event.stop === "interrupted",
    });
    this.dirty.add(item);
  }

  /** A failed call: what it had said stays until another try says something. */
  private broken(entry: Entry, event: ModelFailed, run: RunView | undefined): void {
    if (run) {
      run.input += event.usage?.input_tokens ?? 0;
      run.output += event.usage?.output_tokens ?? 0;
      run.cost += event.cost_microusd ?? 0;
    }
    if (!event.text && !event.reasoning) return this.drop(`re${entry.run_id}/${event.turn}`);
    const item = this.reply(entry.run_id ?? "", event.turn, entry);
    Object.assign(item, {
      text: event.text ?? "", reasoning: event.reasoning ?? "", live: false, stale: true, preparing: false,
      seq: entry.seq, time: entry.time_ms, incomplete: true,
    });
    this.dirty.add(item);
  }

  /** One notice for a turn, however often it is tried. */
  private failedOnce(entry: Entry, event: ModelFailed): void {
    const key = `mf${entry.run_id}/${event.turn}`;
    this.drop(key);
    if (event.will_retry) this.add({ ...this.base(entry, key), kind: "notice", tone: "warn", text: `The model call failed (${event.message}). Retrying.` });
  }

  private reply(runId: string, turn: number, entry?: Entry): ReplyItem {
    const key = `re${runId}/${turn}`;
    const found = this.byKey.get(key);
    if (found?.kind === "reply") return found;
    const made: ReplyItem = {
      key, seq: entry?.seq ?? this.cursor, time: entry?.time_ms ?? Date.now(), runId, tick: signal(0), gone: false,
      kind: "reply", turn, text: "", reasoning: "", preparing: false, live: true, stale: false, event: undefined, incomplete: false,
    };
    this.add(made);
    return made;
  }

  private end(entry: Entry, state: "done" | "failed" | "stopped"): void {
    const run = this.runs.get(entry.run_id ?? "");
    if (run) {
      Object.assign(run, { state, endedMs: entry.time_ms });
      delete run.wait;
    }
    this.unqueue(entry.run_id);
    for (const item of this.list.slice(-200)) {
      if (item.runId !== entry.run_id) continue;
      if (item.kind === "reply" && item.live) this.close(item);
      if (item.kind === "tool" && !item.finished) {
        item.over = true;
        this.dirty.add(item);
      }
    }
  }

  private unqueue(runId: string | undefined): void {
    for (const item of this.list.slice(-200))
      if (item.kind === "user" && item.queued && item.runId === runId) {
        item.queued = false;
        this.dirty.add(item);
      }
  }

  /** What was streamed and never finished, because the run was stopped. */
  private close(item: ReplyItem): void {
    if (!item.text && !item.reasoning) return this.drop(item.key);
    item.live = item.preparing = false;
    this.dirty.add(item);
  }

  private branched(entry: Entry, parent: string, child: string): void {
    if (child === this.id) this.notice(entry, "plain", "Branched from another session.", { link: { session: parent, words: "Open session" } });
    else this.notice(entry, "plain", "A branch continues from here.", { link: { session: child, words: "Open session" } });
  }

  private restored(entry: Entry, to: number, conversation: boolean): void {
    if (conversation)
      for (const item of this.list)
        if (item.seq > to) {
          item.gone = true;
          this.dirty.add(item);
        }
    this.notice(entry, "plain", conversation ? `Rewound to entry ${to}. Later messages are no longer in the context.` : `Files restored to entry ${to}.`);
  }

  private retitle(title: string | null | undefined, archived: boolean | null | undefined, model: string | null | undefined): void {
    const session = this.session.value;
    if (!session) return;
    this.session.value = { ...session, ...(title == null ? {} : { title }), ...(archived == null ? {} : { archived }), ...(model == null ? {} : { model }) };
  }

  private notice(entry: Entry, tone: NoticeItem["tone"], text: string, more: Partial<NoticeItem> = {}): void {
    this.add({ ...this.base(entry, `no${entry.seq}`), kind: "notice", tone, text, ...more });
  }

  private base(entry: Entry, key: string): Base {
    return { key, seq: entry.seq, time: entry.time_ms, runId: entry.run_id ?? "", tick: signal(0), gone: false };
  }

  private add(item: Item): void {
    this.list.push(item);
    this.byKey.set(item.key, item);
    this.structure = true;
  }

  private drop(key: string): void {
    const item = this.byKey.get(key);
    if (!item) return;
    this.byKey.delete(key);
    this.list = this.list.filter((each) => each !== item);
    this.structure = true;
  }

  // --- telling the screen, at most once a frame ------------------------------------------------------------------------

  private drawnAt = 0;

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    if (document.hidden) setTimeout(() => this.flush(), 100);
    else setTimeout(() => requestAnimationFrame(() => this.flush()), Math.max(0, this.drawnAt + PACE_MS - performance.now()));
  }

  private flush(): void {
    this.scheduled = false;
    this.drawnAt = performance.now();
    this.letGo();
    batch(() => {
      if (this.structure) this.items.value = [...this.list];
      for (const item of this.dirty) item.tick.value++;
      if (this.runDirty) {
        const open = [...this.runs.values()].filter((run) => !ended(run));
        const shown = open.find((run) => run.state !== "accepted") ?? open[0] ?? [...this.runs.values()].at(-1);
        this.run.value = shown && { ...shown };
      }
    });
    this.dirty.clear();
    this.structure = this.runDirty = false;
  }
}
