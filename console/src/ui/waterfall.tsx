// A run as a waterfall, folded: one row for each step, its bar on the run's own time axis. The timeline draws the same rows in full.
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { entriesOf } from "../core/run_entries";
import { href } from "../core/router";
import { lastEntry } from "../core/store";
import { lasting, money } from "../core/words";
import type { Entry } from "../types";
import { short } from "./figures";
import { useLoaded } from "./page";
import { Problem } from "./parts";
import { endOf, runsOf, totalsOf, type RunSpans, type Span, type Tone } from "./waterfall/spans";
import "./waterfall.css";

export interface RunWaterfallProps {
  /** The tape entries of one run, in their order. */
  entries: readonly Entry[];
  /** How many rows are shown before somebody asks for all of them. */
  most?: number;
  /** Where a row leads; the entry on the timeline unless told otherwise. */
  hrefOf?: (seq: number) => string;
  /** Without the totals below it, where they stand elsewhere. */
  bare?: boolean;
}

export const TONES: Record<Tone, string> = { model: "Model", tool: "Tool", wait: "Waiting", error: "Error", prompt: "Prompt", message: "Message" };
const MOST = 14;
const LEAST_PERCENT = 0.6;
const TICK_MS = 1_000;

/** The time, again every second while something goes on. */
export function useNow(active: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!active) return;
    setNow(Date.now());
    const timer = setInterval(() => { if (!document.hidden) setNow(Date.now()); }, TICK_MS);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

export function goesOn(run: RunSpans | undefined): boolean {
  return run?.state === "running" || run?.state === "waiting";
}

export function spanTime(span: Span, now: number): number {
  return Math.max(0, Math.round(Math.min(span.end, now) - span.start));
}

/** Everything that is known of a step beside its name and time. */
export function spanWords(span: Span): string[] {
  const said: string[] = [];
  if (span.tokens) said.push(`${short(span.tokens)} tokens${span.cached ? `, ${Math.round((span.cached / span.tokens) * 100)} % cached` : ""}`);
  if (span.microusd) said.push(money(span.microusd));
  if (span.decision) said.push(span.decision === "pending" ? "needs approval" : span.decision);
  return [...said, ...span.labels];
}

export function Bar({ span, from, to, now }: { span: Span; from: number; to: number; now: number }): VNode {
  const length = Math.max(1, to - from);
  const left = Math.min(100 - LEAST_PERCENT, Math.max(0, ((span.start - from) / length) * 100));
  const right = Math.min(100, ((Math.min(span.end, now) - from) / length) * 100);
  return <span class="wf-track" aria-hidden="true"><i class={`wf-bar ${span.tone}`} style={{ left: `${left}%`, width: `${Math.max(LEAST_PERCENT, right - left)}%` }} /></span>;
}

export function Legend({ tones = Object.keys(TONES) as Tone[] }: { tones?: readonly Tone[] }): VNode {
  return <ul class="wf-legend" aria-label="Colors">{tones.map((tone) => <li key={tone}><i class={`wf-bar ${tone}`} aria-hidden="true" />{TONES[tone]}</li>)}</ul>;
}

export function RunWaterfall({ entries, most = MOST, hrefOf, bare = false }: RunWaterfallProps): VNode | null {
  const run = useMemo(() => runsOf(entries).at(-1), [entries]);
  const [all, setAll] = useState(false);
  const [at, setAt] = useState<Span | undefined>();
  const now = useNow(goesOn(run));
  if (!run) return null;
  const until = endOf(run, now);
  const spans = [...run.spans].sort((a, b) => a.start - b.start || a.seq - b.seq);
  const hidden = all ? 0 : Math.max(0, spans.length - most);
  const totals = totalsOf(run, now);
  const read = at
    ? [at.label, lasting(spanTime(at, until)), ...spanWords(at)].join(" · ")
    : bare ? "" : [lasting(totals.total), `${lasting(totals.working)} working`, totals.waiting ? `${lasting(totals.waiting)} waiting` : "", totals.microusd ? money(totals.microusd) : ""].filter(Boolean).join(" · ");
  return (
    <div class="wf">
      {hidden > 0 && <button type="button" class="quiet small" onClick={() => setAll(true)}>Show all {spans.length} steps</button>}
      <ol class="wf-rows" aria-label={`Run: ${spans.length} steps in ${lasting(totals.total)}`} onMouseLeave={() => setAt(undefined)}>
        {spans.slice(hidden).map((span) => (
          <li key={`${span.seq} ${span.label}`}>
            <a class="wf-row" href={hrefOf ? hrefOf(span.seq) : href("timeline", run.tape, String(span.seq))} onMouseEnter={() => setAt(span)} onFocus={() => setAt(span)} onBlur={() => setAt(undefined)}>
              <bdi class="wf-label">{span.label}</bdi>
              <Bar span={span} from={run.start} to={until} now={until} />
              <span class="wf-time">{lasting(spanTime(span, until))}</span>
              <span class="unseen">{[TONES[span.tone], ...spanWords(span)].join(", ")}</span>
            </a>
          </li>
        ))}
      </ol>
      <p class="wf-read" aria-hidden="true"><bdi>{read}</bdi></p>
    </div>
  );
}

/** A run that is known by its id alone: what it did is fetched, and again when it goes on. */
export function RunPicture({ runId, most, bare }: { runId: string; most?: number; bare?: boolean }): VNode {
  const changed = lastEntry.value?.run_id === runId ? lastEntry.value.position : 0;
  const found = useLoaded(() => entriesOf(runId), [runId], changed);
  if (found.error) return <Problem text={found.error} />;
  if (!found.value) return <p class="hint" role="status">Loading run…</p>;
  if (!found.value.length) return <p class="hint">The entries of this run were archived.</p>;
  return <RunWaterfall entries={found.value} {...(most ? { most } : {})} {...(bare ? { bare } : {})} />;
}
