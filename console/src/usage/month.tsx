// Where the month goes: what was used day by day so far, and where it ends by the trend.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { count, money, visible } from "../core/words";
import { Part, useLoaded } from "../ui/page";
import { Choice, Problem } from "../ui/parts";
import { Plot } from "../ui/plot";
import type { UsageRow, SpendingForecast } from "../types";

export type MonthForecast = SpendingForecast;
type Unit = "tokens" | "microusd";

const DAY_MS = 86_400_000;
const unit = signal<Unit | undefined>(undefined);
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const of = (row: UsageRow, which: Unit) => (which === "tokens" ? row.input_tokens + row.output_tokens : row.cost_microusd);

export function Month({ changed, month }: { changed: number; month: MonthForecast }): VNode | null {
  const days = useLoaded(() => palyra.usage({ by: "day", since_ms: month.from_ms, limit: 40, everybody: true }), [changed, month.from_ms]);
  if (!month.spent_tokens) return null;
  const which = unit.value ?? (month.expected_microusd ? "microusd" : "tokens");
  const says = which === "tokens" ? (value: number) => compact.format(value) : money;
  const { labels, spent, trend } = days.value ? drawn(month, days.value.usage, which) : { labels: [], spent: [], trend: [] };
  return (
    <Part id="month" title="This month">
      <Problem text={days.error} />
      <div class="tiles">
        <div class="tile"><strong>{money(month.spent_microusd)}</strong>{count(month.spent_tokens)} tokens so far</div>
        <div class="tile"><strong>{money(month.expected_microusd)}</strong>{count(month.expected_tokens)} tokens at its end, by the trend</div>
        <div class="tile"><strong>{money(month.a_day_microusd)}</strong>{count(month.a_day_tokens)} tokens a day</div>
      </div>
      <Choice label="In" value={which} options={[["microusd", "In dollars"], ["tokens", "In tokens"]]} onChoose={(value) => (unit.value = value)} />
      {labels.length > 0 && <Plot title="Month" across="Days" labels={labels} unit={says} lines={[{ words: "so far", tone: "accent", values: spent }, { words: "by the trend", tone: "warn", values: trend }]} />}
      <p class="hint">Reckoned from {visible(month.basis ?? "")}.{month.unpriced ? ` The price of ${count(month.unpriced)} calls is not known: the money is at least this much.` : ""}</p>
    </Part>
  );
}

/** Every day of the month; sums up to today, and from today on what the trend adds. */
function drawn(month: MonthForecast, rows: readonly UsageRow[], which: Unit): { labels: string[]; spent: (number | null)[]; trend: (number | null)[] } {
  const first = Math.floor(month.from_ms / DAY_MS);
  const today = Math.floor(Date.now() / DAY_MS);
  const length = Math.round((month.until_ms - month.from_ms) / DAY_MS);
  const known = new Map(rows.map((row) => [Number(row.group), of(row, which)]));
  const end = which === "tokens" ? month.expected_tokens : month.expected_microusd;
  const last = first + length - 1;
  let sum = 0;
  const spent = Array.from({ length }, (_, at) => (first + at > today ? null : (sum += known.get(first + at) ?? 0)));
  const trend = Array.from({ length }, (_, at) => {
    const day = first + at;
    if (day < today) return null;
    return last === today ? end : Math.round(sum + ((end - sum) * (day - today)) / (last - today));
  });
  const labels = Array.from({ length }, (_, at) => new Date((first + at) * DAY_MS).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" }));
  return { labels, spent, trend };
}

/** When a budget of the whole month is used up if it goes on like this; nothing where it lasts. */
export function usedUp(left: number, which: string, month: MonthForecast): string {
  const daily = which === "tokens" ? month.a_day_tokens : month.a_day_microusd;
  if (left <= 0 || daily <= 0) return "";
  const day = Date.now() + (left / daily) * DAY_MS;
  return day < month.until_ms ? new Date(day).toLocaleDateString(undefined, { day: "numeric", month: "long", timeZone: "UTC" }) : "";
}
