// Where the month goes: what was spent so far, the forecast with its 80 % band, and the budget.
import type { VNode } from "preact";
import { mark, marks } from "../core/address";
import * as palyra from "../core/verbs";
import { many, money, visible } from "../core/words";
import type { BudgetState, SpendingForecast, UsageRow } from "../types";
import { day, short } from "../ui/figures";
import { useLoaded } from "../ui/page";
import { Choice, Problem } from "../ui/parts";
import { Plot } from "../ui/plot";

export type MonthForecast = SpendingForecast;
export type Unit = "tokens" | "microusd";

const DAY_MS = 86_400_000;
export const spentIn = (row: UsageRow, unit: Unit) => (unit === "tokens" ? row.input_tokens + row.output_tokens : row.cost_microusd);

/** A forecast in one unit. */
export function forecastIn(month: MonthForecast, unit: Unit) {
  return unit === "tokens"
    ? { spent: month.spent_tokens, expected: month.expected_tokens, low: month.low_tokens ?? 0, high: month.high_tokens ?? 0, daily: month.a_day_tokens }
    : { spent: month.spent_microusd, expected: month.expected_microusd, low: month.low_microusd ?? 0, high: month.high_microusd ?? 0, daily: month.a_day_microusd };
}

export function Month({ changed, month, budgets }: { changed: number; month: MonthForecast; budgets: readonly BudgetState[] }): VNode | null {
  const days = useLoaded(() => palyra.usage({ by: "day", since_ms: month.from_ms, limit: 40, everybody: true }), [changed, month.from_ms]);
  if (!month.spent_tokens) return null;
  const unit = (marks.value.unit === "tokens" || marks.value.unit === "microusd" ? marks.value.unit : month.expected_microusd ? "microusd" : "tokens") as Unit;
  const says = unit === "tokens" ? short : money;
  const { spent, expected, low, high, daily } = forecastIn(month, unit);
  const drawn = days.value && cumulative(month, days.value.usage, unit);
  const budget = budgets.find((each) => (each.terms.per ?? "all") === "all" && each.terms.every === "month" && each.unit === unit);
  return (
    <section class="box" aria-labelledby="part-month">
      <div class="box-head"><h2 id="part-month">This month</h2><Choice label="Unit" value={unit} options={[["microusd", "Dollars"], ["tokens", "Tokens"]]} onChoose={(value) => mark({ unit: value })} /></div>
      <Problem text={days.error} />
      <p class="month-line"><strong>{says(spent)}</strong> so far, <strong>{says(expected)}</strong> expected{high > low ? ` (${says(low)} to ${says(high)})` : ""}{budget ? `, budget ${says(budget.limit)}` : ""} · {says(daily)} a day</p>
      {!drawn ? <div class="plot-wait" /> : <Plot title="Spending" sub="actual, forecast (80 % band) and budget, added up" across="Days" labels={drawn.labels} unit={says} shape="area" band={{ words: "80 % band", low: drawn.low, high: drawn.high }} limit={budget && { value: budget.limit, words: "budget" }}
        lines={[{ words: "actual", tone: "accent", values: drawn.spent }, { words: "forecast", tone: "info", values: drawn.trend, dashed: true }]} />}
      <p class="hint">Forecast from {visible(month.basis ?? "")}.{month.unpriced ? ` ${many(month.unpriced, "call")} ${month.unpriced === 1 ? "has" : "have"} no known price, so the real cost is higher.` : ""}</p>
    </section>
  );
}

interface Cumulative {
  labels: string[];
  spent: (number | null)[];
  trend: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
}

/** Every day of the month: sums up to today, and from today on what the forecast adds. */
export function cumulative(month: MonthForecast, rows: readonly UsageRow[], unit: Unit): Cumulative {
  const first = Math.floor(month.from_ms / DAY_MS);
  const today = Math.floor(Date.now() / DAY_MS);
  const length = Math.round((month.until_ms - month.from_ms) / DAY_MS);
  const known = new Map(rows.map((row) => [Number(row.group), spentIn(row, unit)]));
  const { expected, low, high } = forecastIn(month, unit);
  const last = first + length - 1;
  let sum = 0;
  const spent = Array.from({ length }, (_, at) => (first + at > today ? null : (sum += known.get(first + at) ?? 0)));
  const toward = (end: number) => Array.from({ length }, (_, at) => {
    const each = first + at;
    if (each < today) return null;
    return last === today ? end : Math.round(sum + ((end - sum) * (each - today)) / (last - today));
  });
  return { labels: Array.from({ length }, (_, at) => day((first + at) * DAY_MS, "UTC")), spent, trend: toward(expected), low: toward(low), high: toward(high) };
}

/** When a budget of the whole month is used up if it goes on like this; nothing where it lasts. */
export function usedUp(left: number, which: string, month: MonthForecast): string {
  const { daily } = forecastIn(month, which === "tokens" ? "tokens" : "microusd");
  if (left <= 0 || daily <= 0) return "";
  const when = Date.now() + (left / daily) * DAY_MS;
  return when < month.until_ms ? day(when, "UTC") : "";
}
