// A whole session in outline: its runs as spans and a line for each entry, so that thousands of entries can be drawn, filtered and searched.
import { signal } from "@preact/signals";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import type { Entry, SessionBranched } from "../types";
import { firstLine, RunReader, type Decision, type RunSpans, type Tone } from "../ui/waterfall/spans";

const PAGE = 500;
const AT_ONCE = 4;
/** Of a longer session the newest entries are read; earlier ones when somebody asks for them. */
const MOST = 20_000;
const LONGEST_TEXT = 400;
const DIGEST = /^[0-9a-f]{64}$/;

export type Kind = Tone | "other";

/** What is kept of each entry, field by field: ten thousand objects would take twice the memory. */
class Lines {
  readonly seqs: number[] = [];
  readonly times: number[] = [];
  readonly tools: string[] = [];
  /** The tool calls they are about: what is decided about one may come later. */
  readonly calls: string[] = [];
  /** What a search looks at: the kinds of the entries, and their words in small letters. */
  readonly names: string[] = [];
  readonly texts: string[] = [];

  add(seq: number, time: number, tool: string, call: string, name: string, text: string): void {
    this.seqs.push(seq);
    this.times.push(time);
    this.tools.push(tool);
    this.calls.push(call);
    this.names.push(name);
    this.texts.push(text);
  }
}

export class Outline {
  /** Changes when entries were read. */
  readonly tick = signal(0);
  readonly error = signal("");
  /** How many entries are to be read, and the first of them. */
  readonly total = signal(0);
  readonly first = signal(1);
  readonly done = signal(false);
  lines = new Lines();
  /** Sessions that continue this one. */
  readonly branches = new Set<string>();
  private reader = new RunReader();
  private reply: { said: unknown; text: string } = { said: undefined, text: "" };
  private decisions = new Map<string, Decision>();
  private busy: Promise<void> | undefined;
  private wanted = 0;

  constructor(readonly id: string) {}

  get runs(): readonly RunSpans[] {
    return this.reader.runs;
  }

  /** The decision about the call that a line is about. */
  decisionAt(line: number): Decision {
    return this.decisions.get(this.lines.calls[line]!) ?? "";
  }

  /** Read up to this entry. */
  grow(head: number): void {
    if (!head || head <= this.wanted) return;
    if (!this.wanted) this.first.value = Math.max(1, head - MOST + 1);
    this.wanted = head;
    this.total.value = head - this.first.peek() + 1;
    this.busy ??= this.read().finally(() => (this.busy = undefined));
  }

  /** Read everything from an earlier entry on. */
  earlier(): void {
    this.first.value = Math.max(1, this.first.peek() - MOST);
    this.lines = new Lines();
    this.reader = new RunReader();
    this.decisions = new Map();
    const head = this.wanted;
    this.wanted = head - 1;
    this.done.value = false;
    this.grow(head);
  }

  private async read(): Promise<void> {
    try {
      for (let after = this.lines.seqs.at(-1) ?? this.first.peek() - 1; after < this.wanted; after = this.lines.seqs.at(-1) ?? after) {
        const starts = Array.from({ length: AT_ONCE }, (_, at) => after + at * PAGE).filter((start) => start < this.wanted);
        const pages = await Promise.all(starts.map((start) => palyra.listEntries(this.id, { after: start, limit: PAGE })));
        const last = after;
        const found = pages.flatMap(({ entries }) => entries).filter(({ seq }) => seq > last);
        if (!found.length) break;
        this.add(found);
      }
      this.error.value = "";
      this.done.value = true;
    } catch (failure) {
      this.error.value = wordsOf(failure);
    }
    this.tick.value++;
  }

  /** An answer repeats the model's reply: both lines then have one text. */
  private textOf(entry: Entry): string {
    const said = (entry.event as { text?: unknown }).text;
    if (entry.kind === "run.completed" && said && said === this.reply.said) return this.reply.text;
    const text = wordsIn(entry);
    if (entry.kind === "model.replied") this.reply = { said, text };
    return text;
  }

  private add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.reader.add([entry]);
      if (entry.kind === "session.branched" && (entry.event as SessionBranched).child !== this.id) this.branches.add((entry.event as SessionBranched).child);
      const { tool, decision } = this.reader.about(entry);
      const call = (entry.event as { call_id?: string }).call_id ?? "";
      if (call && decision) this.decisions.set(call, decision);
      const { reader } = this;
      this.lines.add(entry.seq, entry.time_ms, reader.once(tool), reader.once(call), reader.once(entry.kind), this.textOf(entry));
    }
    for (const run of this.runs) run.spans.sort((a, b) => a.start - b.start || a.seq - b.seq);
  }
}

export function kindOf(kind: string): Kind {
  if (kind === "input.received" || kind === "run.completed") return "message";
  if (kind === "input.assembled") return "prompt";
  if (kind.endsWith(".failed") || kind === "run.cancelled" || kind === "answer.refused") return "error";
  if (kind.startsWith("approval.") || kind === "run.waiting" || kind === "agent.asked" || kind === "agent.answered") return "wait";
  if (kind.startsWith("model.") || kind === "route.planned") return "model";
  if (kind.startsWith("tool.") || kind.startsWith("agent.")) return "tool";
  return "other";
}

/** The words of an entry, without the names of its fields. */
function wordsIn(entry: Entry): string {
  let said = "";
  const add = (value: unknown): void => {
    const room = LONGEST_TEXT - said.length - 1;
    if (room <= 0) return;
    // Nobody searches for a digest here, and most of some entries is digests.
    if (typeof value === "string" && DIGEST.test(value)) return;
    if (typeof value === "string") said += ` ${value.slice(0, room)}`;
    else if (Array.isArray(value)) value.forEach(add);
    else if (value && typeof value === "object") Object.values(value).forEach(add);
  };
  for (const [name, value] of Object.entries(entry.event)) if (name !== "kind") add(value);
  // Not cut afterwards: a part of a text keeps all of it in memory.
  return said.toLowerCase();
}

export function gistOf(entry: Entry): string {
  const event = entry.event as unknown as Record<string, unknown>;
  const found = [event.tool, event.text, event.message, event.reason, event.outcome, event.decision, event.title, event.model].find((each) => typeof each === "string" && each);
  return firstLine(String(found ?? ""));
}
