// Periods of usage, and usage spread over a true time axis: from the first day of use on, in hours where there is one day only.
import * as palyra from "../core/verbs";
import type { UsageRow } from "../types";
import { clock, day } from "../ui/figures";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MOST = 500;

export type Period = "day" | "week" | "month" | "year" | "all";

/** Each with its name and that of the period before it. */
export const PERIODS: readonly (readonly [Period, string, string])[] = [
  ["day", "Day", "the day before"], ["week", "Week", "the week before"], ["month", "Month", "the month before"], ["year", "Year", "the year before"], ["all", "All", ""],
];
const DAYS: Record<Exclude<Period, "all">, number> = { day: 1, week: 7, month: 30, year: 365 };

/** When a period begins, and when the one before it does. The last so many days, today included; days are UTC, as the daemon counts. */
export function periodOf(period: Period): { since: number; before: number | undefined } {
  if (period === "all") return { since: 0, before: undefined };
  const length = DAYS[period] * DAY_MS;
  const since = period === "day" ? Math.floor(Date.now() / HOUR_MS + 1) * HOUR_MS - length : (Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS - length;
  return { since, before: since - length };
}

export interface Series {
  step: "hour" | "day";
  /** When each begins, and what was used in it. */
  at: number[];
  rows: (UsageRow | undefined)[];
  labels: string[];
}

export async function spread(period: Period, whose: { everybody: boolean }): Promise<Series> {
  const { since } = periodOf(period);
  if (period !== "day") {
    const { usage } = await palyra.usage({ by: "day", since_ms: since, limit: MOST, ...whose });
    const days = usage.map((row) => Number(row.group));
    const today = Math.floor(Date.now() / DAY_MS);
    if (days.length && Math.min(...days) < today) return filled("day", usage, Math.max(Math.min(...days), today - MOST + 1), today);
  }
  const from = Math.floor((period === "day" ? since : Math.floor(Date.now() / DAY_MS) * DAY_MS) / HOUR_MS);
  const { usage } = await palyra.usage({ by: "hour", since_ms: from * HOUR_MS, limit: MOST, ...whose });
  return filled("hour", usage, from, Math.floor(Date.now() / HOUR_MS));
}

/** A time without calls is a time too: a plot that leaves it out would mislead. */
function filled(step: "hour" | "day", usage: readonly UsageRow[], first: number, last: number): Series {
  const known = new Map(usage.map((row) => [Number(row.group), row]));
  const length = step === "hour" ? HOUR_MS : DAY_MS;
  const at = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * length);
  return { step, at, rows: at.map((each) => known.get(each / length)), labels: at.map((each) => (step === "hour" ? clock(each, false) : day(each, "UTC"))) };
}
