// Two runs side by side on one scale: a fork and its origin, or any two.
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { href } from "../core/router";
import { entriesOf } from "../core/run_entries";
import * as palyra from "../core/verbs";
import { lasting, money, visible } from "../core/words";
import { clock, day, short } from "../ui/figures";
import { Bar, spanTime, spanWords, TONES } from "../ui/waterfall";
import { runsOf, totalsOf, type RunSpans, type Span, type Totals } from "../ui/waterfall/spans";
import { useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { Outline } from "./outline";

const MOST_RUNS = 60;
const MOST_BRANCHES = 8;
const MOST_ROWS = 200;
const FIGURES: readonly (readonly [string, (totals: Totals) => number, (value: number) => string])[] = [
  ["Time", (each) => each.total, lasting], ["Working", (each) => each.working, lasting], ["Waiting", (each) => each.waiting, lasting], ["Model calls", (each) => each.models, short],
  ["Tool calls", (each) => each.tools, short], ["Tokens", (each) => each.tokens, short], ["Cost", (each) => each.microusd, money],
];

function nameOf(run: RunSpans): string {
  const asked = run.spans.find((each) => each.label === "Message")?.gist ?? "";
  return `Run ${run.number} · ${clock(run.start)}${asked ? ` · ${asked.slice(0, 60)}` : ""}`;
}

/** Choose the run to compare with: the origin of a fork first, then forks of this session, then its other runs. */
export function CompareWith({ outline, run, value, onChoose }: { outline: Outline; run: RunSpans; value: string; onChoose: (runId: string) => void }): VNode {
  const forks = useLoaded(async () => {
    const found = await Promise.all([...outline.branches].slice(-MOST_BRANCHES).map(async (child) => (await palyra.listRuns(child, { limit: 1 })).runs));
    return found.flat();
  }, [outline.id, outline.branches.size]);
  const others = outline.runs.filter((each) => each.id !== run.id).slice(-MOST_RUNS).reverse();
  return (
    <label class="filter">Compare with{" "}
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">Choose a run…</option>
        {run.origin && <option value={run.origin}>Origin of this fork</option>}
        {forks.value?.map((each) => <option key={each.run_id} value={each.run_id}>Fork · {day(each.created_ms)}, {clock(each.created_ms)}</option>)}
        {others.map((each) => <option key={each.id} value={each.id}>{nameOf(each)}</option>)}
      </select>
    </label>
  );
}

export function Compare({ run, other, chosen, now, onChoose }: { run: RunSpans; other: string; chosen: number; now: number; onChoose: (seq: number) => void }): VNode {
  const found = useLoaded(() => entriesOf(other), [other]);
  const second = useMemo(() => (found.value ? runsOf(found.value).at(-1) : undefined), [found.value]);
  if (found.error) return <Problem text={found.error} />;
  if (!second) return <p class="hint" role="status">{found.value ? "The entries of this run were archived." : "Loading run…"}</p>;
  const [left, right] = [totalsOf(run, now), totalsOf(second, now)];
  const longest = Math.max(left.total, right.total, 1);
  const differs = firstDifference(run.spans, sorted(second));
  return (
    <div class="compare">
      <table class="compare-figures">
        <caption class="unseen">Figures of both runs</caption>
        <thead><tr><th scope="col"><span class="unseen">Figure</span></th><th scope="col">This run</th><th scope="col">Other run</th><th scope="col">Difference</th></tr></thead>
        <tbody>{FIGURES.map(([words, of, unit]) => <tr key={words}><th scope="row">{words}</th><td>{unit(of(left))}</td><td>{unit(of(right))}</td><td><Difference by={of(right) - of(left)} unit={unit} /></td></tr>)}</tbody>
      </table>
      <p class="hint" role="status">{differs < 0 ? "Both runs took the same steps." : `The steps differ from step ${differs + 1} on.`}</p>
      <div class="compare-sides">
        <Side title="This run" run={run} spans={run.spans} length={longest} differs={differs} chosen={chosen} now={now} onChoose={onChoose} />
        <Side title={second.tape === run.tape ? "Other run" : run.origin === second.id ? "Origin" : "Fork"} run={second} spans={sorted(second)} length={longest} differs={differs} chosen={0} now={now} />
      </div>
    </div>
  );
}

function sorted(run: RunSpans): Span[] {
  return [...run.spans].sort((a, b) => a.start - b.start || a.seq - b.seq);
}

function Difference({ by, unit }: { by: number; unit: (value: number) => string }): VNode {
  return <span>{by === 0 ? "same" : `${by > 0 ? "+" : "−"}${unit(Math.abs(by))}`}</span>;
}

/** The first step that the runs do not share; -1 where they share all. Times and prompts' sizes do not count. */
function firstDifference(left: readonly Span[], right: readonly Span[]): number {
  const name = (span: Span | undefined) => (span ? `${span.tone} ${span.label.replace(/ · [\d,]+ tok$/, "")}` : "");
  for (let at = 0; at < Math.max(left.length, right.length); at++) if (name(left[at]) !== name(right[at])) return at;
  return -1;
}

function Side({ title, run, spans, length, differs, chosen, now, onChoose }: {
  title: string;
  run: RunSpans;
  spans: readonly Span[];
  length: number;
  differs: number;
  chosen: number;
  now: number;
  onChoose?: (seq: number) => void;
}): VNode {
  const [most, setMost] = useState(MOST_ROWS);
  const row = (span: Span) => (
    <>
      <bdi class="wf-label">{span.label}</bdi><Bar span={span} from={run.start} to={run.start + length} now={now} /><span class="wf-time">{lasting(spanTime(span, now))}</span>
      <span class="unseen">{[TONES[span.tone], ...spanWords(span)].join(", ")}</span>
    </>
  );
  return (
    <section aria-label={title}>
      <h3>{title} <span class="hint">{day(run.start)}, {clock(run.start)}</span> {run.tape && !onChoose && <a class="hint" href={href("timeline", run.tape, String(spans[0]?.seq ?? 1))}>Open timeline</a>}</h3>
      <ol class="wf-rows wf">
        {spans.slice(0, most).map((span, at) => (
          <li key={`${span.seq} ${span.label}`} class={differs >= 0 && at >= differs ? "differs" : ""}>
            {onChoose ? <a class="wf-row" aria-current={span.seq === chosen ? "true" : undefined} href={href("timeline", run.tape, String(span.seq))} onClick={(event) => { event.preventDefault(); onChoose(span.seq); }}>{row(span)}</a>
              : <a class="wf-row" href={href("timeline", run.tape, String(span.seq))}>{row(span)}</a>}
          </li>
        ))}
      </ol>
      {spans.length > most && <button type="button" class="quiet small" onClick={() => setMost(most + MOST_ROWS)}>Show more</button>}
      {spans.length === 0 && <Badge>{visible("No steps")}</Badge>}
    </section>
  );
}
