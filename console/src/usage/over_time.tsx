// Usage over time: cost, tokens, calls, latency percentiles or the share that came from a provider's cache.
import type { VNode } from "preact";
import { mark, marks } from "../core/address";
import { lasting, money } from "../core/words";
import type { UsageRow } from "../types";
import { short } from "../ui/figures";
import { Choice } from "../ui/parts";
import { Plot, type Line } from "../ui/plot";
import type { Series } from "./period";

type Measure = "cost" | "tokens" | "calls" | "latency" | "cache";
const MEASURES: readonly (readonly [Measure, string])[] = [["cost", "Cost"], ["tokens", "Tokens"], ["calls", "Calls"], ["latency", "Latency"], ["cache", "Cache"]];

export function OverTime({ series, total }: { series: Series; total: UsageRow }): VNode {
  const measure = (MEASURES.find(([each]) => each === marks.value.measure)?.[0] ?? (total.cost_microusd ? "cost" : "tokens")) as Measure;
  const line = (words: string, tone: string, of: (row: UsageRow) => number): Line => ({ words, tone, values: series.rows.map((row) => (row ? of(row) : 0)) });
  // A time without calls has no latency.
  const gaps = (words: string, tone: string, of: (row: UsageRow) => number): Line => ({ words, tone, values: series.rows.map((row) => (row?.calls ? of(row) : null)) });
  const across = series.step === "hour" ? "Hours" : "Days";
  const beside = <Choice label="Measure" value={measure} options={MEASURES} onChoose={(value) => mark({ measure: value })} />;
  const same = { beside, across, labels: series.labels, sub: series.step === "hour" ? "by hour" : "by day (UTC)" };
  return (
    <section class="box" aria-label="Over time">
      {measure === "cost" ? <Plot {...same} title="Cost" unit={money} shape="bars" lines={[line("cost", "accent", (row) => row.cost_microusd)]} />
        : measure === "tokens" ? <Plot {...same} title="Tokens" unit={short} shape="bars" lines={[line("in, cached", "good", (row) => row.cached_tokens), line("in", "info", (row) => row.input_tokens - row.cached_tokens), line("out", "label", (row) => row.output_tokens)]} />
        : measure === "calls" ? <Plot {...same} title="Calls" unit={short} shape="bars" lines={[line("calls", "info", (row) => row.calls)]} />
        : measure === "latency" ? <Plot {...same} title="Latency" unit={(value) => lasting(Math.round(value))} shape="lines" lines={[gaps("first token p50", "info", (row) => row.first_p50_ms ?? 0), gaps("first token p95", "label", (row) => row.first_p95_ms ?? 0), gaps("whole call p50", "accent", (row) => row.duration_p50_ms ?? 0), gaps("whole call p95", "warn", (row) => row.duration_p95_ms ?? 0)]} />
        : <Plot {...same} title="Cache hits" unit={(value) => `${Math.round(value)} %`} shape="lines" lines={[gaps("input tokens from cache", "good", (row) => (row.input_tokens ? (row.cached_tokens / row.input_tokens) * 100 : 0))]} />}
    </section>
  );
}
