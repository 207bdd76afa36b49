// What models were asked and what it cost: figures against the period before, over time, by category, and against budgets.
import type { VNode } from "preact";
import { mark, marks } from "../core/address";
import { argument, href, second } from "../core/router";
import { lastEntry, sessions } from "../core/store";
import * as palyra from "../core/verbs";
import { count, day, lasting, many, money, visible, when } from "../core/words";
import type { UsageRow } from "../types";
import { change, short } from "../ui/figures";
import { useLoaded } from "../ui/page";
import { Choice, Empty, PageHead, Problem } from "../ui/parts";
import { HBars } from "../ui/plot";
import { Table, type Column } from "../ui/table";
import { Budgets } from "../usage/budgets";
import { exportRows } from "../usage/export";
import { Month } from "../usage/month";
import { OverTime } from "../usage/over_time";
import { periodOf, PERIODS, spread, type Period } from "../usage/period";
import { PlansOfRun } from "../usage/plans";

export type By = "model" | "session" | "schedule" | "principal" | "run" | "day";
type Names = ReadonlyMap<string, string>;
const MOST = 500;
const MOST_BARS = 6;
const DAY_MS = 86_400_000;
const ACROSS: Record<By, string> = { model: "Model", session: "Session", schedule: "Schedule", principal: "User", run: "Run", day: "Day" };
const PICK = Object.entries(ACROSS) as [By, string][];

export function UsagePage(): VNode {
  return argument.value === "run" && second.value ? <PlansOfRun id={second.value} /> : <AllUsage />;
}

function AllUsage(): VNode {
  const state = marks.value;
  const by = (state.by && state.by in ACROSS ? state.by : "model") as By;
  const period = (PERIODS.find(([each]) => each === state.period)?.[0] ?? "month") as Period;
  const own = state.whose === "own";
  const changed = lastEntry.value?.kind === "model.replied" ? lastEntry.value.position : 0;
  const rows = useLoaded(async () => {
    const { since, before } = periodOf(period);
    const whose = { everybody: !own };
    const [groups, series, earlier, names] = await Promise.all([
      palyra.usage({ by, since_ms: since, limit: MOST, ...whose }),
      spread(period, whose),
      before === undefined ? undefined : palyra.usage({ by: "month", since_ms: before, until_ms: since, limit: 1, ...whose }),
      by === "schedule" ? schedules() : new Map<string, string>(),
    ]);
    return { by, period, groups: groups.usage, total: groups.total, series, earlier: earlier?.total, names };
  }, [by, period, own, changed]);
  const everybody = useLoaded(() => palyra.usage({ by: "principal", limit: 2, everybody: true }), [changed]).value;
  const month = useLoaded(() => palyra.forecastUsage({ everybody: true }), [changed]);
  const budgets = useLoaded(() => palyra.listBudgets(), [changed]);
  const found = rows.value;
  return (
    <div class="page full">
      <PageHead title="Usage">
        {(everybody?.usage.length ?? 0) > 1 && <Choice label="Users" value={own ? "own" : "all"} options={[["all", "All users"], ["own", "Only me"]]} onChoose={(value) => mark({ whose: value === "own" ? "own" : "" })} />}
        <Choice label="Period" value={period} options={PERIODS.map(([each, words]) => [each, words] as const)} onChoose={(value) => mark({ period: value === "month" ? "" : value })} />
        <button type="button" disabled={!found?.groups.length} onClick={() => found && exportRows(found.by, found.groups)}>Export CSV</button>
      </PageHead>
      <Problem text={rows.error || month.error} />
      {!found ? <p role="status">Loading…</p> : !found.total.calls ? <Empty><p>No model calls in this period.</p><p><a class="button main" href={href("chat")}>Start a chat</a></p></Empty> : (
        <>
          <Figures now={found.total} before={found.earlier} period={found.period} forecast={month.value?.expected_microusd} />
          <div class="two-panels">
            <OverTime series={found.series} total={found.total} />
            <section class="box" aria-labelledby="part-share">
              <h2 id="part-share">By {ACROSS[found.by].toLowerCase()}</h2>
              <Shares by={found.by} rows={found.groups} names={found.names} />
            </section>
          </div>
          <section class="box" aria-labelledby="part-figures">
            <div class="box-head"><h2 id="part-figures">Breakdown</h2><Choice label="By" value={by} options={PICK} onChoose={(value) => mark({ by: value === "model" ? "" : value })} /></div>
            {found.groups.length ? <Table key={found.by} label={`Usage by ${found.by}`} rows={found.groups} keyOf={(row) => row.group} columns={columns(found.by, found.names)} />
              : <p class="hint">No scheduled runs in this period.</p>}
          </section>
        </>
      )}
      {(found || rows.error) && month.value && <Month changed={changed} month={month.value} budgets={budgets.value?.budgets ?? []} />}
      {(found || rows.error) && (month.value || month.error) && <Budgets found={budgets} changed={changed} month={month.value} />}
    </div>
  );
}

async function schedules(): Promise<Names> {
  const { schedules: all } = await palyra.listSchedules();
  return new Map(all.map(({ schedule }) => [schedule.schedule_id, schedule.name]));
}

function cacheHits(row: UsageRow): number {
  return row.input_tokens ? Math.round((row.cached_tokens / row.input_tokens) * 100) : 0;
}

function costOf(row: UsageRow): string {
  return row.unpriced && row.unpriced === row.calls ? "unknown" : `${money(row.cost_microusd)}${row.unpriced ? "+" : ""}`;
}

/** Figures of the period, each with a second line that says compared to what. */
function Figures({ now, before, period, forecast }: { now: UsageRow; before: UsageRow | undefined; period: Period; forecast: number | undefined }): VNode {
  const against = (of: (row: UsageRow) => number) => {
    const words = before ? change(of(now), of(before)) : "";
    return words ? `${words} vs ${PERIODS.find(([each]) => each === period)![2]}` : before ? `none in ${PERIODS.find(([each]) => each === period)![2]}` : "since the first call";
  };
  return (
    <div class="figures">
      <div class="figure"><span>Cost</span><strong>{costOf(now)}</strong><small>{now.unpriced ? `no price for ${many(now.unpriced, "call")}` : before?.cost_microusd || !forecast ? against((row) => row.cost_microusd) : `${money(forecast)} expected this month`}</small></div>
      <div class="figure"><span>Model calls</span><strong>{short(now.calls)}</strong><small>{now.estimated ? `${count(now.estimated)} estimated` : against((row) => row.calls)}</small></div>
      <div class="figure"><span>Tokens in</span><strong>{short(now.input_tokens)}</strong><small>{cacheHits(now)} % cached</small></div>
      <div class="figure"><span>Tokens out</span><strong>{short(now.output_tokens)}</strong><small>{against((row) => row.output_tokens)}</small></div>
      <div class="figure"><span>Time to first token</span><strong>{lasting(now.first_p50_ms || now.first_delta_ms)}</strong><small>p95 {lasting(now.first_p95_ms ?? 0)} · longest call {lasting(now.slowest_ms ?? 0)}</small></div>
    </div>
  );
}

function Shares({ by, rows, names }: { by: By; rows: readonly UsageRow[]; names: Names }): VNode {
  const priced = rows.some((row) => row.cost_microusd);
  const of = (row: UsageRow) => (priced ? row.cost_microusd : row.input_tokens + row.output_tokens);
  const sorted = [...rows].sort((a, b) => of(b) - of(a)).slice(0, MOST_BARS);
  return (
    <>
      <p class="hint">{priced ? "Cost" : "Tokens"}{rows.length > MOST_BARS ? `, largest ${MOST_BARS} of ${count(rows.length)}` : ""}</p>
      {rows.length === 0 ? <p class="hint">Nothing in this period.</p>
        : <HBars label={`${priced ? "Cost" : "Tokens"} by ${ACROSS[by].toLowerCase()}`} tones={["info", "accent", "good", "label", "warn", "soft"]}
          rows={sorted.map((row) => ({ key: row.group, words: <Named by={by} row={row} names={names} />, value: of(row), said: priced ? costOf(row) : short(of(row)) }))} />}
    </>
  );
}

function columns(group: By, names: Names): Column<UsageRow>[] {
  const number = (key: string, words: string, of: (row: UsageRow) => number, says: (value: number) => string = short): Column<UsageRow> =>
    ({ key, words, numeric: true, by: of, draw: (row) => <span title={count(of(row))}>{says(of(row))}</span> });
  const time = (key: string, words: string, of: (row: UsageRow) => number): Column<UsageRow> => ({ key, words, numeric: true, by: of, draw: (row) => lasting(of(row)) });
  return [
    { key: "group", words: ACROSS[group], draw: (row) => <Named by={group} row={row} names={names} />, ...(group === "session" || group === "run" ? {} : { by: (row: UsageRow) => (group === "day" ? Number(row.group) : nameOf(group, row, names)) }) },
    number("calls", "Calls", (row) => row.calls),
    number("in", "Tokens in", (row) => row.input_tokens),
    { key: "hits", words: "Cached", numeric: true, by: cacheHits, draw: (row) => <span title={`${count(row.cached_tokens)} read, ${count(row.cache_write_tokens ?? 0)} written`}>{cacheHits(row)} %</span> },
    number("out", "Tokens out", (row) => row.output_tokens),
    time("first", "First token", (row) => row.first_p50_ms ?? 0),
    time("first95", "p95", (row) => row.first_p95_ms ?? 0),
    time("whole", "Whole call", (row) => row.duration_p50_ms ?? 0),
    time("whole95", "p95", (row) => row.duration_p95_ms ?? 0),
    { key: "cost", words: "Cost", numeric: true, by: (row) => row.cost_microusd, draw: costOf },
  ];
}

function Named({ by: group, row, names }: { by: By; row: UsageRow; names: Names }): VNode {
  const words = <bdi>{nameOf(group, row, names)}</bdi>;
  if (group === "run") return <a href={href("usage", "run", row.group)} title={row.group}>{words}</a>;
  if (group === "session") return <a href={href("chat", row.group)}>{words}</a>;
  return group === "schedule" ? <a href={href("schedules", row.group)}>{words}</a> : <span>{words}</span>;
}

function nameOf(group: By, row: UsageRow, names: Names): string {
  if (group === "day") return day(Number(row.group) * DAY_MS, "UTC");
  if (group === "session") return visible(sessions.value.find((each) => each.session_id === row.group)?.title || `…${row.group.slice(-6)}`);
  if (group === "run") return `${when(row.until_ms ?? 0)} · …${row.group.slice(-6)}`;
  if (group === "schedule") return visible(names.get(row.group) ?? `…${row.group.slice(-6)}`);
  return visible(row.group);
}
