// The rows of the waterfall: every run in the window with its steps, each on the run's own time axis. Only what is in view is drawn.
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { lasting, money } from "../core/words";
import { clock, day, short } from "../ui/figures";
import { Bar, goesOn, spanTime, spanWords, TONES } from "../ui/waterfall";
import { endOf, totalsOf, type RunEnd, type RunSpans, type Span } from "../ui/waterfall/spans";
import { Badge } from "../ui/parts";
import type { TimeWindow } from "./overview";

export interface Group {
  run: RunSpans;
  from: number;
  to: number;
  spans: readonly Span[];
}

interface Row {
  group: Group;
  span: Span | undefined;
  top: number;
}

const RUN = 46;
const STEP = 24;
const SPARE = 8;
const STATES: Record<RunEnd, readonly [string, string]> = { running: ["", "Running"], waiting: ["warn", "Waiting"], done: ["good", "Done"], failed: ["bad", "Failed"], stopped: ["warn", "Stopped"] };

/** The runs and steps in a window that a filter lets through. */
export function groupsOf(runs: readonly RunSpans[], view: TimeWindow, now: number, lets: ((span: Span) => boolean) | undefined): Group[] {
  const found: Group[] = [];
  for (const run of runs) {
    const end = endOf(run, now);
    if (end < view.from || run.start > view.to) continue;
    const from = Math.max(run.start, view.from);
    const to = Math.min(end, view.to);
    const shows = (each: Span) => each.start <= to && each.end >= from && (!lets || lets(each));
    // Most runs lie in the window as a whole: those need no list of their own.
    const spans = run.spans.every(shows) ? run.spans : run.spans.filter(shows);
    if (spans.length || !lets) found.push({ run, from, to, spans });
  }
  return found;
}

/** Where rows lie: each run's own, and below it one for each step. A row is made when it is looked at. */
class Rows {
  /** The number of each run's own row. */
  private readonly starts: number[] = [];
  readonly length: number;

  constructor(private readonly groups: readonly Group[]) {
    let next = 0;
    for (const group of groups) {
      this.starts.push(next);
      next += 1 + group.spans.length;
    }
    this.length = next;
  }

  get height(): number {
    return this.length * STEP + this.groups.length * (RUN - STEP);
  }

  at(index: number): Row | undefined {
    if (index < 0 || index >= this.length) return undefined;
    const which = this.last((start) => start <= index);
    const below = index - this.starts[which]!;
    const group = this.groups[which]!;
    return { group, span: below ? group.spans[below - 1] : undefined, top: this.topOf(which) + (below ? RUN + (below - 1) * STEP : 0) };
  }

  /** The row at a height. */
  indexAt(top: number): number {
    if (!this.length) return 0;
    const which = this.last((_, at) => this.topOf(at) <= top);
    const below = Math.ceil(Math.max(0, top - this.topOf(which) - RUN + 1) / STEP);
    return this.starts[which]! + Math.min(this.groups[which]!.spans.length, below);
  }

  /** The row of a step, or -1. */
  indexOf(seq: number): number {
    for (const [which, { spans }] of this.groups.entries()) {
      const at = spans.findIndex((each) => each.seq === seq);
      if (at >= 0) return this.starts[which]! + 1 + at;
    }
    return -1;
  }

  private topOf(which: number): number {
    return this.starts[which]! * STEP + which * (RUN - STEP);
  }

  /** The last run that this holds for, by halving. */
  private last(holds: (start: number, at: number) => boolean): number {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(this.starts[middle]!, middle)) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

export function Steps({ groups, now, chosen, label, onChoose, onRun }: {
  groups: readonly Group[];
  now: number;
  chosen: number;
  label: string;
  onChoose: (seq: number) => void;
  onRun: (run: RunSpans) => void;
}): VNode {
  const pane = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState({ top: 0, height: 600 });
  const [over, setOver] = useState<Row | undefined>();
  const rows = new Rows(groups);
  const { height } = rows;
  useLayoutEffect(() => {
    const box = pane.current!;
    const watching = new ResizeObserver(() => setAt({ top: box.scrollTop, height: box.clientHeight }));
    watching.observe(box);
    return () => watching.disconnect();
  }, []);
  // A window that was made smaller may end above what was in view.
  const top = Math.min(at.top, Math.max(0, height - at.height));
  const first = Math.max(0, rows.indexAt(top) - SPARE);
  const last = Math.min(rows.length, rows.indexAt(top + at.height) + 1 + SPARE);
  const here = chosen ? rows.indexOf(chosen) : -1;
  useLayoutEffect(() => {
    const row = rows.at(here);
    const box = pane.current!;
    if (row && (row.top < box.scrollTop || row.top + STEP > box.scrollTop + box.clientHeight)) box.scrollTop = Math.max(0, row.top - box.clientHeight / 2);
  }, [chosen, here >= 0]);
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -rows.length, End: rows.length }[event.key];
    if (!step || !rows.length) return;
    event.preventDefault();
    const toward = step > 0 ? 1 : -1;
    let next = Math.min(rows.length - 1, Math.max(0, here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step));
    const headAt = (index: number) => { const row = rows.at(index); return Boolean(row && !row.span); };
    while (headAt(next)) next += toward;
    if (!rows.at(next)) for (next = here < 0 ? 0 : here; headAt(next); next++);
    const found = rows.at(next)?.span;
    if (found) onChoose(found.seq);
  };
  return (
    <div class="steps" ref={pane} style={{ "--rows": `${height + 8}px` }} tabIndex={0} role="listbox" aria-label={label} aria-activedescendant={here >= 0 ? `step-${chosen}` : undefined}
      onScroll={(event) => setAt({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })} onKeyDown={pressed} onMouseLeave={() => setOver(undefined)}>
      <div class="steps-space" role="presentation" style={{ height: `${height}px` }} />
      {Array.from({ length: last - first }, (_, index) => ({ row: rows.at(first + index)!, index })).map(({ row, index }) => (row.span
        ? <Step key={`${row.group.run.id} ${row.span.seq} ${row.span.label}`} row={row} span={row.span} now={now} chosen={first + index === here} onChoose={onChoose} onOver={setOver} />
        : <RunHead key={row.group.run.id} row={row} now={now} onRun={onRun} onOver={setOver} />))}
      {over?.span && <Tip row={over} span={over.span} now={now} below={over.top - top < at.height - 130} />}
    </div>
  );
}

function RunHead({ row, now, onRun, onOver }: { row: Row; now: number; onRun: (run: RunSpans) => void; onOver: (row: Row | undefined) => void }): VNode {
  const { run, from, to } = row.group;
  const totals = totalsOf(run, now);
  const [tone, words] = STATES[run.state];
  const facts = [lasting(totals.total), totals.tokens ? `${short(totals.tokens)} tok` : "", totals.microusd ? money(totals.microusd) : ""].filter(Boolean).join(" · ");
  return (
    <div class="step-run" role="option" aria-selected={false} style={{ top: `${row.top}px` }} onClick={() => onRun(run)} onMouseEnter={() => onOver(undefined)}>
      <span class="step-title"><strong>Run {run.number}</strong><span class="hint">{clock(run.start)}</span>{run.state === "done" ? <span class="unseen">{words}, {day(run.start)}</span> : <Badge tone={tone}>{words}</Badge>}</span>
      <span class="step-middle"><bdi class="step-asked">{run.spans.find((each) => each.label === "Message")?.gist}</bdi><Ticks from={from - run.start} to={to - run.start} /></span>
      <span class="wf-time" title={facts}>{lasting(totals.total)}<small>{totals.microusd ? money(totals.microusd) : totals.tokens ? `${short(totals.tokens)} tok` : ""}</small></span>
    </div>
  );
}

/** Times since the run began, above its steps. */
function Ticks({ from, to }: { from: number; to: number }): VNode {
  return (
    <span class="step-ticks" aria-hidden="true">
      {[0, 0.25, 0.5, 0.75, 1].map((part) => <i key={part} style={{ left: `${part * 100}%` }}>{lasting(Math.round(from + (to - from) * part))}</i>)}
    </span>
  );
}

function Step({ row, span, now, chosen, onChoose, onOver }: { row: Row; span: Span; now: number; chosen: boolean; onChoose: (seq: number) => void; onOver: (row: Row | undefined) => void }): VNode {
  const { from, to, run } = row.group;
  const until = goesOn(run) ? now : run.end;
  const time = lasting(spanTime(span, until));
  return (
    <div id={`step-${span.seq}`} class="step-row" role="option" aria-selected={chosen}
      style={{ top: `${row.top}px` }} onClick={() => onChoose(span.seq)} onMouseEnter={() => onOver(row)}>
      <bdi class="wf-label">{span.label}</bdi>
      <Bar span={span} from={from} to={to} now={until} />
      <span class="wf-time">{time}</span>
      <span class="unseen">{[TONES[span.tone], ...spanWords(span)].join(", ")}</span>
    </div>
  );
}

function Tip({ row, span, now, below }: { row: Row; span: Span; now: number; below: boolean }): VNode {
  const { run } = row.group;
  const time = spanTime(span, goesOn(run) ? now : run.end);
  return (
    <div class="step-tip" aria-hidden="true" style={below ? { top: `${row.top + STEP}px` } : { top: `${row.top}px`, transform: "translateY(-100%)" }}>
      <strong>{span.label}</strong>
      <span>{clock(span.start)} · starts at {lasting(Math.max(0, Math.round(span.start - run.start)))} · takes {lasting(time)}</span>
      {spanWords(span).length > 0 && <span>{spanWords(span).join(" · ")}</span>}
      {span.gist && <span class="hint"><bdi>{span.gist}</bdi></span>}
    </div>
  );
}
