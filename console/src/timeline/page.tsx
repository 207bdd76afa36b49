// The timeline of a session: its runs as waterfalls, as a table or entry by entry, with filters, a window in time and the chosen entry beside it.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { mark, marks } from "../core/address";
import { wordsOf } from "../core/api";
import { argument, href, second } from "../core/router";
import { lastEntry, sessions } from "../core/store";
import { Tape } from "../core/tape";
import * as palyra from "../core/verbs";
import { ago, count, lasting, many, money, visible } from "../core/words";
import { EntryDetail, NEAR } from "../pages/entry";
import { clock, day, short } from "../ui/figures";
import { useComplete } from "../ui/page";
import { Choice, Empty, PageHead, Problem } from "../ui/parts";
import { saveJson } from "../ui/stored";
import { Table } from "../ui/table";
import { goesOn, Legend, spanTime, TONES, useNow } from "../ui/waterfall";
import { endOf, totalsOf, type RunSpans, type Span } from "../ui/waterfall/spans";
import { Activity } from "./activity";
import { Axis } from "./axis";
import { Compare, CompareWith } from "./compare";
import { Entries } from "./entries";
import { DECISIONS, filterOf, filters, KINDS, entriesThrough, spanFilter, type Filter } from "./filters";
import { Outline } from "./outline";
import { Overview, type TimeWindow } from "./overview";
import { groupsOf, Steps, type Group } from "./steps";
import "./timeline.css";

type View = "waterfall" | "table" | "entries";
const VIEWS: readonly (readonly [View, string])[] = [["waterfall", "Waterfall"], ["table", "Table"], ["entries", "Entries"]];
const SOON_MS = 200;
const NARROW = "(max-width: 820px)";

export function TimelinePage(): VNode {
  const id = argument.value;
  return id && !id.includes("=") ? <Session key={id} id={id} /> : <Choose />;
}

function Choose(): VNode {
  const all = sessions.value;
  const complete = useComplete();
  return (
    <div class={complete ? "page" : "page unready"}>
      <PageHead title="Timeline" />
      {all.length > 0 && (
        <>
          <Activity />
          <h2>Sessions</h2>
          <p class="hint">Pick a session to see its runs, step by step.</p>
          <ul class="timeline-sessions" aria-label="Sessions">
            {all.map((each) => <li key={each.session_id}><a href={href("timeline", each.session_id)}><bdi>{visible(each.title || "Untitled")}</bdi><span class="hint">{count(each.head_seq ?? 0)} entries · {ago(each.updated_ms)}</span></a></li>)}
          </ul>
        </>
      )}
      {!all.length && <Empty><p>No sessions yet.</p><p><a class="button main" href={href("chat")}>Start a chat</a></p></Empty>}
    </div>
  );
}

function Session({ id }: { id: string }): VNode {
  const tape = useMemo(() => new Tape(id), [id]);
  const outline = useMemo(() => new Outline(id), [id]);
  const state = marks.value;
  const chosen = Number(second.value) || 0;
  const shown = (VIEWS.find(([each]) => each === state.view)?.[0] ?? "waterfall") as View;
  const filter = filterOf(state);
  const head = tape.head.value;
  tape.tick.value; // The chosen entry may come later.
  const tick = outline.tick.value;
  const newest = lastEntry.value?.tape === id ? lastEntry.value.seq : 0;
  useEffect(() => void tape.open(), [tape]);
  useEffect(() => tape.grow(newest), [newest]);
  useEffect(() => outline.grow(head), [outline, head]);
  useEffect(() => {
    if (head) void tape.want(chosen - NEAR, chosen ? chosen + NEAR : 0);
  }, [tape, chosen, head > 0]);

  const runs = useMemo(() => [...outline.runs], [outline, tick]);
  const now = useNow(runs.some(goesOn));
  const axis = useMemo(() => new Axis(runs, now), [runs, runs.some(goesOn) ? now : 0]);
  const current = runOf(runs, chosen) ?? runs.at(-1);
  const [picked, pick] = useState<TimeWindow | undefined>(windowOf(state));
  const view = picked ?? (current ? { from: current.start, to: Math.max(current.start + 1, endOf(current, now)) } : { from: axis.from, to: axis.to });
  // The address follows once nobody drags any more: some browsers refuse many changes in a row.
  const written = useRef(windowMarks(picked));
  useEffect(() => {
    const timer = setTimeout(() => mark((written.current = windowMarks(picked))), SOON_MS);
    return () => clearTimeout(timer);
  }, [picked?.from, picked?.to]);
  // What somebody else wrote there counts: a link to another window, or the way back to one.
  useEffect(() => {
    if ((state.from ?? "") !== written.current.from || (state.to ?? "") !== written.current.to) pick(windowOf(state));
  }, [state.from, state.to]);

  const detail = useRef<HTMLDivElement>(null);
  const choose = (seq: number) => {
    const run = runOf(runs, seq);
    if (picked && run && (endOf(run, now) < picked.from || run.start > picked.to)) pick(undefined);
    mark({}, ["timeline", id, String(seq)]);
    if (matchMedia(NARROW).matches) requestAnimationFrame(() => detail.current?.scrollIntoView({ block: "start" }));
  };
  const show = (run: RunSpans | undefined) => { if (run) { pick(undefined); choose(run.spans[0]?.seq ?? 1); } };
  const only = useMemo(() => entriesThrough(outline, filter), [outline, tick, filter.kind, filter.tool, filter.decision, filter.text]);
  const lets = useMemo(() => spanFilter(filter, only), [only]);
  const groups = useMemo(() => groupsOf(runs, view, now, lets), [runs, view.from, view.to, lets, now]);
  const entry = chosen ? tape.at(chosen) : undefined;
  const title = tape.session.value?.title;
  const other = state.with ?? "";
  const [comparing, compare] = useState(Boolean(other));
  const [failed, setFailed] = useState("");
  // Two runs need the room; without a step there is nothing to say beside them.
  const alone = comparing && Boolean(other && current) && !chosen;
  const at = current ? runs.indexOf(current) : -1;
  return (
    <div class="page wide timeline">
      <PageHead title="Timeline" beside={title && <a class="timeline-session" href={href("chat", id)} title="Open chat"><bdi>{visible(title)}</bdi></a>}>
        <button type="button" aria-pressed={comparing} disabled={!current} onClick={() => { compare(!comparing); if (comparing) mark({ with: "" }); }}>Compare…</button>
        <button type="button" onClick={() => void palyra.exportProof({ session_id: id }).then((bundle) => saveJson(`palyra-${id}.proof.json`, bundle), (failure: unknown) => setFailed(wordsOf(failure)))}>Export with proof</button>
      </PageHead>
      <Problem text={tape.error.value || outline.error.value || failed} />
      <div class="timeline-bar">
        <Choice label="View" value={shown} options={VIEWS} onChoose={(each) => mark({ view: each === "waterfall" ? "" : each })} />
        <Filters filter={filter} outline={outline} head={head} />
        <Summary groups={groups} now={now} />
      </div>
      {comparing && current && <CompareWith outline={outline} run={current} value={other} onChoose={(run) => mark({ with: run })} />}
      <section class="panel timeline-overview" aria-label="All runs">
        {runs.length > 0 ? <Overview runs={runs} axis={axis} now={now} tick={tick} view={view} onView={pick} /> : !outline.done.value && <div class="overview-room" />}
        <div class="row">
          <span class="hint">{!outline.done.value ? <span role="status">Reading {count(outline.total.value)} entries…</span> : runs.length ? `${many(runs.length, "run")}, ${span(axis)}. Drag to select, scroll to zoom.` : "No runs yet."}</span>
          {outline.first.value > 1 && <button type="button" class="quiet small" onClick={() => outline.earlier()}>Load earlier entries</button>}
          <span class="grow" />
          <span class="timeline-controls">
          <label class="filter">Jump to <input type="datetime-local" step={1} onChange={(event) => { if (event.currentTarget.value) jump(outline, new Date(event.currentTarget.value).getTime(), choose); }} /></label>
          <span class="pager">
          <button type="button" class="small" aria-label="Previous run" disabled={at <= 0} onClick={() => show(runs[at - 1])}>‹</button>
          <span class="hint">{at >= 0 ? `Run ${current!.number} of ${count(runs.length)}` : ""}</span>
          <button type="button" class="small" aria-label="Next run" disabled={at < 0 || at >= runs.length - 1} onClick={() => show(runs[at + 1])}>›</button>
          </span>
          <button type="button" class="small" aria-label="Zoom in" onClick={() => pick(zoomed(axis, view, 0.5))}>+</button>
          <button type="button" class="small" aria-label="Zoom out" onClick={() => pick(zoomed(axis, view, 2))}>−</button>
          <button type="button" class="small" onClick={() => pick({ from: axis.from, to: axis.to })}>All runs</button>
          </span>
        </div>
      </section>
      <div class={alone ? "timeline-body alone" : "timeline-body"}>
        <section class="panel timeline-main" aria-label={VIEWS.find(([each]) => each === shown)![1]}>
          {comparing && other && current ? <Compare run={current} other={other} chosen={chosen} now={now} onChoose={choose} />
            : shown === "entries" ? <Entries tape={tape} only={only} chosen={chosen} onChoose={choose} />
            : shown === "table" ? <StepTable groups={groups} now={now} onChoose={choose} />
            : <Waterfall groups={groups} now={now} chosen={chosen} narrowed={filters(filter)} onChoose={choose} onRun={(run) => pick({ from: run.start, to: Math.max(run.start + 1, endOf(run, now)) })} />}
        </section>
        {!alone && <div class="panel tape-entry" ref={detail}>{entry ? <EntryDetail key={entry.seq} entry={entry} tape={tape} choose={choose} /> : <p class="hint">{chosen && head ? "Loading entry…" : "Select a step to see what happened, why, and its proof."}</p>}</div>}
      </div>
    </div>
  );
}

function windowOf(state: Readonly<Record<string, string>>): TimeWindow | undefined {
  const [from, to] = [Number(state.from), Number(state.to)];
  return from > 0 && to > from ? { from, to } : undefined;
}

function windowMarks(view: TimeWindow | undefined): { from: string; to: string } {
  return view ? { from: String(Math.round(view.from)), to: String(Math.round(view.to)) } : { from: "", to: "" };
}

/** The run that an entry belongs to: the last that began with it or before it. */
function runOf(runs: readonly RunSpans[], seq: number): RunSpans | undefined {
  if (!seq) return undefined;
  return runs.find((run) => run.spans.some((each) => each.seq === seq)) ?? runs.findLast((run) => (run.spans[0]?.seq ?? Infinity) <= seq + 2);
}

function zoomed(axis: Axis, view: TimeWindow, by: number): TimeWindow {
  const [low, high] = [axis.place(view.from), axis.place(view.to)];
  const middle = (low + high) / 2;
  const half = Math.max(0.0005, ((high - low) / 2) * by);
  return { from: axis.time(middle - half), to: axis.time(middle + half) };
}

function span(axis: Axis): string {
  const same = day(axis.from) === day(axis.to);
  return same ? `${day(axis.from)}, ${clock(axis.from, false)}–${clock(axis.to, false)}` : `${day(axis.from)}, ${clock(axis.from, false)} – ${day(axis.to)}, ${clock(axis.to, false)}`;
}

function jump(outline: Outline, time: number, choose: (seq: number) => void): void {
  const { times, seqs } = outline.lines;
  const at = times.findIndex((each) => each >= time);
  if (seqs.length) choose(seqs[at < 0 ? seqs.length - 1 : at]!);
}

function Filters({ filter, outline, head }: { filter: Filter; outline: Outline; head: number }): VNode {
  const tools = useMemo(() => [...new Set(outline.lines.tools.filter(Boolean))].sort(), [outline, outline.tick.value]);
  const [text, setText] = useState(filter.text);
  const written = useRef(filter.text);
  useEffect(() => {
    const timer = setTimeout(() => mark({ text: (written.current = text.trim()) }), SOON_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => { if (filter.text !== written.current) setText(filter.text); }, [filter.text]);
  const select = (label: string, name: keyof Filter, options: readonly (readonly [string, ComponentChildren])[]) => (
    <select aria-label={label} class={filter[name] ? "set" : ""} value={filter[name]} onChange={(event) => mark({ [name]: event.currentTarget.value })}>
      {options.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
    </select>
  );
  return (
    <>
      {select("Kind", "kind", KINDS)}
      {select("Tool", "tool", [["", "All tools"], ...tools.map((each) => [each, each] as const)])}
      {select("Decision", "decision", DECISIONS)}
      <input type="search" aria-label="Search entries" placeholder={`Search in ${count(head)} entries…`} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      {filters(filter) && <button type="button" class="quiet small" onClick={() => { setText(""); mark({ kind: "", tool: "", decision: "", text: "" }); }}>Clear filters</button>}
    </>
  );
}

function Summary({ groups, now }: { groups: readonly Group[]; now: number }): VNode | null {
  if (!groups.length) return null;
  const sums = groups.map(({ run }) => totalsOf(run, now)).reduce((a, b) => ({ ...a, total: a.total + b.total, working: a.working + b.working, waiting: a.waiting + b.waiting, tokens: a.tokens + b.tokens, microusd: a.microusd + b.microusd }));
  return <span class="timeline-sum">{[lasting(sums.total), `${lasting(sums.working)} working`, sums.waiting ? `${lasting(sums.waiting)} waiting` : "", sums.tokens ? `${short(sums.tokens)} tokens` : "", sums.microusd ? money(sums.microusd) : ""].filter(Boolean).join(" · ")}</span>;
}

function Waterfall({ groups, now, chosen, narrowed, onChoose, onRun }: { groups: readonly Group[]; now: number; chosen: number; narrowed: boolean; onChoose: (seq: number) => void; onRun: (run: RunSpans) => void }): VNode {
  const many = groups.reduce((sum, each) => sum + each.spans.length, 0);
  if (!many && narrowed) return <Empty><p>No steps match these filters in the selected time.</p></Empty>;
  return (
    <>
      <Steps groups={groups} now={now} chosen={chosen} label={`${count(many)} steps in ${count(groups.length)} ${groups.length === 1 ? "run" : "runs"}`} onChoose={onChoose} onRun={onRun} />
      <Legend />
    </>
  );
}

/** The same steps in words and figures. */
function StepTable({ groups, now, onChoose }: { groups: readonly Group[]; now: number; onChoose: (seq: number) => void }): VNode {
  const rows = groups.flatMap(({ run, spans }) => spans.map((each) => ({ run, span: each })));
  const until = (run: RunSpans) => (goesOn(run) ? now : run.end);
  const number = (value: number, unit: (value: number) => string) => (value ? unit(value) : "–");
  return (
    <div class="timeline-table">
      <Table label="Steps" rows={rows} keyOf={({ run, span: each }) => `${run.id} ${each.seq} ${each.label}`} onOpen={({ span: each }) => onChoose(each.seq)} columns={[
        { key: "run", words: "Run", numeric: true, draw: ({ run }) => run.number, by: ({ run }) => run.number },
        { key: "start", words: "Start", draw: ({ span: each }) => clock(each.start), by: ({ span: each }) => each.start },
        { key: "step", words: "Step", draw: ({ span: each }) => <bdi>{each.label}</bdi>, by: ({ span: each }) => each.label },
        { key: "kind", words: "Kind", draw: ({ span: each }) => TONES[each.tone], by: ({ span: each }) => each.tone },
        { key: "time", words: "Time", numeric: true, draw: ({ run, span: each }) => lasting(spanTime(each, until(run))), by: ({ run, span: each }) => spanTime(each, until(run)) },
        { key: "tokens", words: "Tokens", numeric: true, draw: ({ span: each }) => number(each.tokens, short), by: ({ span: each }) => each.tokens },
        { key: "cost", words: "Cost", numeric: true, draw: ({ span: each }) => number(each.microusd, money), by: ({ span: each }) => each.microusd },
        { key: "decision", words: "Decision", draw: ({ span: each }) => decisionWords(each), by: ({ span: each }) => each.decision },
        { key: "labels", words: "Labels", draw: ({ span: each }) => each.labels.join(", ") || "–" },
      ]} />
    </div>
  );
}

function decisionWords(each: Span): string {
  return each.decision ? (DECISIONS.find(([value]) => value === each.decision)?.[1] ?? each.decision) : "–";
}
