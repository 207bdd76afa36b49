// A run as spans of time, read off its tape entries: model calls, tool calls, waits, prompts and messages.
import type {
  AgentAnswered, AgentAsked, AgentSpawned, AnswerRefused, ApprovalRequested, ApprovalResolved, Entry, InputAssembled, InputReceived, Label, ModelFailed, ModelReplied, ModelUsed,
  RunAccepted, RunCancelled, RunCompleted, RunFailed, RunWaiting, SessionCompacted, ToolDecided, ToolFinished, ToolProposed,
} from "../../types";
import { visible } from "../../core/words";

export type Tone = "model" | "tool" | "wait" | "error" | "prompt" | "message";
export type Decision = "" | "allowed" | "approved" | "denied" | "expired" | "pending";

/** A stretch of a run's time. What most of them lack is kept once, for all: a long session has ten thousand. */
export class Span {
  declare gist: string;
  declare tool: string;
  declare decision: Decision;
  declare tokens: number;
  declare cached: number;
  declare microusd: number;
  declare labels: readonly string[];
  /** The run of a subagent that this span waits for. */
  declare child: string;
  readonly start: number;
  /** Milliseconds, a small number; less than none while it goes on. */
  private took: number;

  /** `seq`: the entry to open for it. `gist`: the first line of what it says. */
  constructor(public seq: number, public tone: Tone, public label: string, start: number, end: number, more: Partial<Span>) {
    this.start = Math.min(start, end);
    this.took = lengthOf(this.start, end);
    Object.assign(this, more);
  }

  /** Infinity while it goes on. */
  get end(): number {
    return this.took < 0 ? Infinity : this.start + this.took;
  }

  set end(time: number) {
    this.took = lengthOf(this.start, time);
  }
}

const NO_LABELS: readonly string[] = [];
Object.assign(Span.prototype, { gist: "", tool: "", decision: "", tokens: 0, cached: 0, microusd: 0, labels: NO_LABELS, child: "" });

function lengthOf(start: number, end: number): number {
  return end === Infinity ? -1 : Math.max(0, end - start);
}

export type RunEnd = "running" | "waiting" | "done" | "failed" | "stopped";

export interface RunSpans {
  id: string;
  tape: string;
  /** 1 for the first run of its session that was read. */
  number: number;
  start: number;
  end: number;
  state: RunEnd;
  /** The run that this one forks, if it does. */
  origin: string;
  spans: Span[];
}

export interface Totals {
  total: number;
  working: number;
  waiting: number;
  tokens: number;
  cached: number;
  microusd: number;
  models: number;
  tools: number;
}

interface Call {
  tool: string;
  subject: string;
  decision: Decision;
  span?: Span;
}

interface Reading {
  run: RunSpans;
  /** Made when there is one: most runs of a long session only talk. */
  calls?: Map<string, Call>;
  asked?: Map<string, Span>;
  /** A wait of the whole run: for a provider, a program, a subagent. */
  wait: Span | undefined;
  last: number;
  /** When the prompt began that the next model call is asked with. */
  prompted: number;
}

const SUBJECTS = ["path", "command", "url", "query", "task", "name", "title", "text"];
const LONGEST = 160;

export function firstLine(text: string): string {
  const end = text.search(/\r?\n/);
  if (end < 0 && text.length <= LONGEST) return visible(text);
  // A text of its own: a mere slice would keep the whole of a long reply in memory.
  return ` ${visible((end < 0 ? text : text.slice(0, end)).slice(0, LONGEST))}`.slice(1);
}

function subjectOf(given: Record<string, unknown> | undefined): string {
  const found = SUBJECTS.map((name) => given?.[name]).find((each) => typeof each === "string" && each);
  return firstLine(String(found ?? ""));
}

function labelsOf(label: Label | undefined): readonly string[] {
  if (!label) return NO_LABELS;
  const found: string[] = [];
  if (label.integrity === "untrusted") found.push("untrusted");
  if (label.confidentiality && label.confidentiality !== "public") found.push(label.confidentiality);
  return found;
}

function labelled(label: Label | undefined): Partial<Span> {
  const labels = labelsOf(label);
  return labels.length ? { labels } : {};
}

const DECIDED: Record<ApprovalResolved["decision"], Decision> = { allow: "approved", again: "approved", happened: "approved", skip: "denied", deny: "denied", expired: "expired", withdrawn: "denied" };
const BAD_OUTCOMES = new Set<ToolFinished["outcome"]>(["denied", "error", "timeout", "unknown"]);

/** Reads entries in their order and keeps the runs they belong to. Entries may come in several portions. */
export class RunReader {
  readonly runs: RunSpans[] = [];
  private readonly byId = new Map<string, RunSpans>();
  /** Of the runs that go on, and of those that broke off: there a tool may still finish. */
  private readonly reading = new Map<string, Reading>();
  private readonly names = new Map<string, string>();

  /** A name that many entries have, kept once: each brings a copy of its own. */
  once(name: string): string {
    const known = this.names.get(name);
    if (known === undefined) this.names.set(name, name);
    return known ?? name;
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) if (entry.run_id) this.read(entry, this.of(entry));
  }

  /** The tool and the decision that an entry is about, as far as they are known. */
  about(entry: Entry): { tool: string; decision: Decision } {
    const event = entry.event as { call_id?: string; tool?: string };
    const call = this.reading.get(entry.run_id ?? "")?.calls?.get(event.call_id ?? "");
    return { tool: call?.tool ?? event.tool ?? "", decision: call?.decision ?? "" };
  }

  private of(entry: Entry): Reading {
    const id = entry.run_id!;
    let run = this.byId.get(id);
    if (!run) {
      run = { id, tape: this.once(entry.tape), number: this.runs.length + 1, start: entry.time_ms, end: entry.time_ms, state: "running", origin: "", spans: [] };
      this.byId.set(id, run);
      this.runs.push(run);
    }
    let found = this.reading.get(id);
    if (!found) this.reading.set(id, (found = { run, wait: undefined, last: run.end, prompted: 0 }));
    return found;
  }

  private read(entry: Entry, at: Reading): void {
    const { run } = at;
    const now = entry.time_ms;
    const span = (tone: Tone, label: string, start: number, end: number, more: Partial<Span> = {}): Span => {
      const made = new Span(entry.seq, tone, label, start, end, more);
      run.spans.push(made);
      run.start = Math.min(run.start, made.start);
      return made;
    };
    const call = (id: string): Call => {
      at.calls ??= new Map<string, Call>();
      let found = at.calls.get(id);
      if (!found) at.calls.set(id, (found = { tool: "", subject: "", decision: "" }));
      return found;
    };
    const named = (each: Call) => (each.subject ? `${each.tool} ${each.subject}` : each.tool || "Tool call");
    const ended = (state: RunEnd) => {
      run.state = state;
      for (const each of run.spans) if (each.end === Infinity) each.end = now;
    };
    switch (entry.kind) {
      case "run.accepted":
        run.origin = (entry.event as RunAccepted).forked_run_id ?? "";
        break;
      case "run.resumed":
        if (at.wait) at.wait.end = now;
        at.wait = undefined;
        run.state = "running";
        break;
      case "run.waiting": {
        const event = entry.event as RunWaiting;
        at.wait = span("wait", "Waiting for provider", now, Infinity, { gist: firstLine(event.message) });
        run.state = "waiting";
        break;
      }
      case "input.received":
        span("message", "Message", now, now, { gist: firstLine((entry.event as InputReceived).text), ...labelled((entry.event as InputReceived).label) });
        break;
      case "input.assembled": {
        const { tokens } = entry.event as InputAssembled;
        at.prompted = at.last;
        span("prompt", tokens ? `Prompt · ${tokens.toLocaleString("en-US")} tok` : "Prompt", at.last, now);
        break;
      }
      case "model.replied": {
        const event = entry.event as ModelReplied;
        const calls = event.calls ?? [];
        span("model", this.once(`Model · ${visible(event.model)}`), Math.max(at.prompted, now - (event.duration_ms ?? 0)), now, {
          gist: firstLine(event.text || calls.map((each) => each.tool).join(", ")), ...spentBy(event),
        });
        break;
      }
      case "model.failed": {
        const event = entry.event as ModelFailed;
        span("error", `Model · ${event.failure.replaceAll("_", " ")}`, now - (event.duration_ms ?? 0), now, { gist: firstLine(event.message), ...spentBy(event) });
        if (event.will_retry && event.wait_ms) span("wait", "Waiting for provider", now, now + event.wait_ms, { gist: "Retry after a pause" });
        break;
      }
      case "model.used": {
        const event = entry.event as ModelUsed;
        span("model", `Model · ${event.purpose || event.task}`, now - (event.duration_ms ?? 0), now, spentBy(event));
        break;
      }
      case "session.compacted": {
        const event = entry.event as SessionCompacted & { duration_ms?: number };
        span("model", "Compaction", now - (event.duration_ms ?? 0), now);
        break;
      }
      case "tool.proposed": {
        const event = entry.event as ToolProposed;
        (at.calls ??= new Map<string, Call>()).set(event.call_id, { tool: visible(event.tool), subject: subjectOf(event.arguments as Record<string, unknown>), decision: "" });
        break;
      }
      case "tool.decided": {
        const event = entry.event as ToolDecided;
        call(event.call_id).decision = event.verdict === "allow" ? "allowed" : event.verdict === "deny" ? "denied" : "pending";
        break;
      }
      case "approval.requested":
      case "agent.asked": {
        const request = entry.kind === "agent.asked" ? (entry.event as AgentAsked).request : (entry.event as ApprovalRequested);
        const about = entry.kind === "agent.asked" ? visible(request.tool) : named(call(request.call_id));
        (at.asked ??= new Map<string, Span>()).set(request.approval_id, span("wait", request.about === "budget" ? "Waiting for you · budget" : `Waiting for you · ${about}`, now, Infinity, {
          tool: visible(request.tool), decision: "pending", gist: firstLine(request.why), labels: labelsOf(request.label),
        }));
        run.state = "waiting";
        break;
      }
      case "approval.resolved":
      case "agent.answered": {
        const answer = entry.kind === "agent.answered" ? (entry.event as AgentAnswered).answer : (entry.event as ApprovalResolved);
        const waited = at.asked?.get(answer.approval_id);
        const decision = DECIDED[answer.decision];
        if (waited) Object.assign(waited, { end: now, decision });
        if (entry.kind === "approval.resolved") call(answer.call_id).decision = decision;
        run.state = "running";
        break;
      }
      case "tool.started": {
        const each = call((entry.event as { call_id: string }).call_id);
        each.span = span("tool", named(each), now, Infinity, { tool: each.tool, decision: each.decision });
        break;
      }
      case "agent.spawned": {
        const event = entry.event as AgentSpawned;
        const each = call(event.call_id);
        each.span ??= span("wait", "", now, Infinity, { tool: each.tool, decision: each.decision });
        Object.assign(each.span, { tone: "wait", label: "Waiting for subagent", gist: each.subject, child: event.run_id });
        break;
      }
      case "tool.handed_over":
        at.wait = span("wait", "Waiting for client", now, Infinity);
        run.state = "waiting";
        break;
      case "tool.finished": {
        const event = entry.event as ToolFinished;
        const each = call(event.call_id);
        const made = each.span ?? span("tool", named(each), now - (event.duration_ms ?? 0), now, { tool: each.tool });
        const agent = event.agent;
        Object.assign(made, {
          seq: entry.seq, end: now, decision: event.outcome === "denied" ? (each.decision === "expired" ? "expired" : "denied") : each.decision, gist: made.child ? made.gist : firstLine(event.text ?? ""), labels: labelsOf(event.label),
          ...(agent ? { tokens: (agent.input_tokens ?? 0) + (agent.output_tokens ?? 0), microusd: agent.cost_microusd ?? 0 } : {}),
        });
        if (BAD_OUTCOMES.has(event.outcome)) made.tone = "error";
        break;
      }
      case "answer.refused":
        span("error", "Reply rejected", now, now, { gist: firstLine((entry.event as AnswerRefused).problem) });
        break;
      case "run.completed": {
        // The answer is the last reply: both then have one text.
        const gist = firstLine((entry.event as RunCompleted).text);
        span("message", "Answer", now, now, { gist: run.spans.find((each) => each.gist === gist)?.gist ?? gist });
        ended("done");
        break;
      }
      case "run.failed": {
        const event = entry.event as RunFailed;
        span("error", `Failed · ${visible(event.reason).replaceAll("_", " ")}`, now, now, { gist: firstLine(event.message) });
        ended("failed");
        break;
      }
      case "run.cancelled":
        span("error", "Stopped", now, now, { gist: firstLine((entry.event as RunCancelled).reason ?? "") });
        ended("stopped");
        break;
    }
    at.last = now;
    run.end = Math.max(run.end, now);
    if (run.state === "done") {
      this.reading.delete(run.id);
      // No longer than it is: a list that grew has room for many more.
      run.spans = run.spans.slice();
    }
  }
}

function spentBy(event: ModelReplied | ModelFailed | ModelUsed): Partial<Span> {
  const { input_tokens = 0, output_tokens = 0, cached_tokens = 0 } = event.usage ?? {};
  const spent = { tokens: input_tokens + output_tokens, cached: cached_tokens, microusd: event.cost_microusd ?? 0 };
  return spent.tokens || spent.microusd ? spent : {};
}

/** Where a run ends in the picture: now, while it goes on. */
export function endOf(run: RunSpans, now: number): number {
  return run.state === "running" || run.state === "waiting" ? Math.max(run.end, now) : run.end;
}

/** Sums of a run. Time that two spans share counts once; work counts before waiting. */
export function totalsOf(run: RunSpans, now: number): Totals {
  const until = endOf(run, now);
  const found: Totals = { total: until - run.start, working: 0, waiting: 0, tokens: 0, cached: 0, microusd: 0, models: 0, tools: 0 };
  const work: [number, number][] = [];
  const all: [number, number][] = [];
  for (const each of run.spans) {
    const piece: [number, number] = [each.start, Math.min(each.end, until)];
    if (each.tone !== "wait") work.push(piece);
    all.push(piece);
    found.tokens += each.tokens;
    found.cached += each.cached;
    found.microusd += each.microusd;
    if (each.tone === "model") found.models++;
    if (each.tool && (each.tone === "tool" || each.child || (each.tone === "error" && each.tool))) found.tools++;
  }
  found.working = covered(work);
  found.waiting = covered(all) - found.working;
  return found;
}

function covered(pieces: [number, number][]): number {
  let sum = 0;
  let until = -Infinity;
  for (const [start, end] of pieces.sort((a, b) => a[0] - b[0])) {
    if (end <= until) continue;
    sum += end - Math.max(start, until);
    until = end;
  }
  return sum;
}

/** The runs of some entries, in their order. */
export function runsOf(entries: readonly Entry[]): RunSpans[] {
  const reader = new RunReader();
  reader.add(entries);
  return reader.runs;
}
