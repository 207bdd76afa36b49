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
    const spans = run.spans.filter((each) => each.start <= to && each.end >= from && (!lets || lets(each)));
    if (spans.length || !lets) found.push({ run, from, to, spans });
  }
  return found;
}

function rowsOf(groups: readonly Group[]): { rows: Row[]; height: number } {
  const rows: Row[] = [];
  let top = 0;
  for (const group of groups) {
    rows.push({ group, span: undefined, top });
    top += RUN;
    for (const span of group.spans) {
      rows.push({ group, span, top });
      top += STEP;
    }
  }
  return { rows, height: top };
}

/** The row at a height, by halving. */
function rowAt(rows: readonly Row[], top: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.top <= top) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
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
  const { rows, height } = rowsOf(groups);
  useLayoutEffect(() => {
    const box = pane.current!;
    const watching = new ResizeObserver(() => setAt({ top: box.scrollTop, height: box.clientHeight }));
    watching.observe(box);
    return () => watching.disconnect();
  }, []);
  // A window that was made smaller may end above what was in view.
  const top = Math.min(at.top, Math.max(0, height - at.height));
  const first = Math.max(0, rowAt(rows, top) - SPARE);
  const last = Math.min(rows.length, rowAt(rows, top + at.height) + 1 + SPARE);
  const here = chosen ? rows.findIndex((each) => each.span?.seq === chosen) : -1;
  useLayoutEffect(() => {
    const row = rows[here];
    const box = pane.current!;
    if (row && (row.top < box.scrollTop || row.top + STEP > box.scrollTop + box.clientHeight)) box.scrollTop = Math.max(0, row.top - box.clientHeight / 2);
  }, [chosen, here >= 0]);
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -rows.length, End: rows.length }[event.key];
    if (!step || !rows.length) return;
    event.preventDefault();
    const toward = step > 0 ? 1 : -1;
    let next = Math.min(rows.length - 1, Math.max(0, here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step));
    while (rows[next] && !rows[next]!.span) next += toward;
    if (!rows[next]) for (next = here < 0 ? 0 : here; rows[next] && !rows[next]!.span; next++);
    const found = rows[next]?.span;
    if (found) onChoose(found.seq);
  };
  return (
    <div class="steps" ref={pane} style={{ "--rows": `${height + 8}px` }} tabIndex={0} role="listbox" aria-label={label} aria-activedescendant={here >= 0 ? `step-${chosen}` : undefined}
      onScroll={(event) => setAt({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })} onKeyDown={pressed} onMouseLeave={() => setOver(undefined)}>
      <div class="steps-space" role="presentation" style={{ height: `${height}px` }} />
      {rows.slice(first, last).map((row, index) => (row.span
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
