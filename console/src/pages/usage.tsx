// What models were asked and what it cost: by day, session, run, model, who asked and schedule, drawn and as figures.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { argument, href, second } from "../core/router";
import { lastEntry, sessions } from "../core/store";
import { count, lasting, money, visible } from "../core/words";
import { Budgets } from "../usage/budgets";
import { Month } from "../usage/month";
import { PlansOfRun } from "../usage/plans";
import { Page, Part, useLoaded } from "../ui/page";
import { Choice, Empty } from "../ui/parts";
import { Plot } from "../ui/plot";
import { Table, type Column } from "../ui/table";
import type { UsageRow } from "../types";

type By = "day" | "session" | "run" | "model" | "principal" | "schedule";
type Names = ReadonlyMap<string, string>;
type Period = "7" | "30" | "90" | "all";
const by = signal<By>("day");
const period = signal<Period>("30");
const whose = signal<"all" | "own">("all");
const DAY_MS = 86_400_000;
const MOST = 500;
const MOST_DRAWN = 60;
const LONGEST_LABEL = 14;
const ACROSS: Record<By, string> = { day: "Day", session: "Session", run: "Run", model: "Model", principal: "Who asked", schedule: "Schedule" };
const PICK: readonly (readonly [By, string])[] = [["day", "Day"], ["session", "Session"], ["run", "Run"], ["model", "Model"], ["principal", "Who asked"], ["schedule", "Schedule"]];
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function UsagePage(): VNode {
  return argument.value === "run" && second.value ? <PlansOfRun id={second.value} /> : <AllUsage />;
}

function AllUsage(): VNode {
  const changed = lastEntry.value?.kind === "model.replied" ? lastEntry.value.position : 0;
  const chosen = by.value;
  const rows = useLoaded(async () => {
    const since = period.value === "all" ? 0 : (Math.floor(Date.now() / DAY_MS) - Number(period.value) + 1) * DAY_MS;
    const [{ usage, total }, names] = await Promise.all([
      palyra.usage({ by: chosen, since_ms: since, limit: MOST, everybody: whose.value === "all" }),
      chosen === "schedule" ? schedules() : new Map<string, string>(),
    ]);
    return { by: chosen, groups: chosen === "day" ? everyDay(usage) : usage, total, names };
  }, [chosen, period.value, whose.value, changed]);
  const everybody = useLoaded(() => palyra.usage({ by: "principal", limit: 2, everybody: true }), [changed]).value;
  const month = useLoaded(() => palyra.forecastUsage({ everybody: true }), [changed]);
  const found = rows.value;
  return (
    <Page title="Usage" error={rows.error || month.error} actions={
      <>
        <Choice label="By" value={by.value} options={PICK} onChoose={(value) => (by.value = value)} />
        <Choice label="Since" value={period.value} options={[["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["all", "Ever"]]} onChoose={(value) => (period.value = value)} />
        {(everybody?.usage.length ?? 0) > 1 && <Choice label="Whose" value={whose.value} options={[["all", "Everybody's"], ["own", "My own"]]} onChoose={(value) => (whose.value = value)} />}
      </>
    }>
      {!found ? <p role="status">Loading…</p> : !found.total.calls ? <Empty><p>No model was asked in this time. Once you ask something, this page shows what it took.</p></Empty> : (
        <>
          <Totals row={found.total} />
          {found.groups.length > 0 && <Drawn by={found.by} rows={found.groups} names={found.names} />}
          <Part id="figures" title={`By ${ACROSS[found.by].toLowerCase()}`}>
            {found.groups.length ? <Table key={found.by} label={`Usage by ${found.by}`} rows={found.groups} keyOf={(row) => row.group} columns={columns(found.by, found.names)} />
              : <p class="hint">No schedule has run in this time.</p>}
          </Part>
        </>
      )}
      {month.value && <Month changed={changed} month={month.value} />}
      {(found || rows.error) && (month.value || month.error) && <Budgets changed={changed} month={month.value} />}
    </Page>
  );
}

async function schedules(): Promise<Names> {
  const { schedules: all } = await palyra.listSchedules();
  return new Map(all.map(({ schedule }) => [schedule.schedule_id, schedule.name]));
}

/** How much of what was sent came from a provider's cache, in percent. */
function cacheHits(row: UsageRow): number {
  return row.input_tokens ? Math.round((100 * row.cached_tokens) / row.input_tokens) : 0;
}

function Totals({ row }: { row: UsageRow }): VNode {
  return (
    <div class="tiles">
      <div class="tile"><strong>{count(row.calls)}</strong>calls of models</div>
      <div class="tile"><strong>{count(row.input_tokens)}</strong>tokens in</div>
      <div class="tile"><strong>{cacheHits(row)} %</strong>of them from a cache</div>
      <div class="tile"><strong>{count(row.output_tokens)}</strong>tokens out</div>
      <div class="tile"><strong>{row.unpriced && row.unpriced === row.calls ? "unknown" : money(row.cost_microusd)}</strong>{row.unpriced ? `cost; the price of ${count(row.unpriced)} calls is not known` : "cost"}</div>
      {!!row.estimated && <div class="tile" title="Broken off, or the provider reported no usage: Palyra counted the tokens itself"><strong>{count(row.estimated)}</strong>estimated calls</div>}
      <div class="tile"><strong>{lasting(row.first_delta_ms)}</strong>until the first word; {lasting(row.slowest_ms ?? 0)} the slowest call</div>
    </div>
  );
}

function Drawn({ by: group, rows, names }: { by: By; rows: readonly UsageRow[]; names: Names }): VNode {
  const shown = rows.slice(0, MOST_DRAWN).reverse();
  const same = { across: ACROSS[group], labels: shown.map((row) => short(nameOf(group, row, names))), bars: true };
  const line = (words: string, tone: string, of: (row: UsageRow) => number) => ({ words, tone, values: shown.map((row) => (row.calls ? of(row) : 0)) });
  return (
    <div class="plots">
      <Plot {...same} title="Tokens" unit={(value) => compact.format(value)} lines={[line("in", "accent", (row) => row.input_tokens), line("out", "warn", (row) => row.output_tokens)]} bars={false} />
      <Plot {...same} title="Cost" unit={money} lines={[line("cost", "good", (row) => row.cost_microusd)]} />
      <Plot {...same} title="Waiting" unit={(value) => lasting(Math.round(value))} lines={[line("until the first word", "accent", (row) => row.first_delta_ms), line("whole call", "soft", (row) => row.duration_ms)]} bars={false} />
      <Plot {...same} title="From the cache" unit={(value) => `${Math.round(value)} %`} lines={[line("share of tokens in", "good", cacheHits)]} />
      <Plot {...same} title="Calls" unit={(value) => compact.format(value)} lines={[line("calls", "accent", (row) => row.calls)]} />
    </div>
  );
}

function columns(group: By, names: Names): Column<UsageRow>[] {
  const number = (key: string, words: string, of: (row: UsageRow) => number, says: (value: number) => string = count): Column<UsageRow> =>
    ({ key, words, numeric: true, by: of, draw: (row) => says(of(row)) });
  return [
    { key: "group", words: ACROSS[group], draw: (row) => <Named by={group} row={row} names={names} />, ...(group === "session" || group === "run" ? {} : { by: (row: UsageRow) => (group === "day" ? Number(row.group) : nameOf(group, row, names)) }) },
    number("calls", "Calls", (row) => row.calls),
    number("in", "Tokens in", (row) => row.input_tokens),
    number("cached", "Of them cached", (row) => row.cached_tokens),
    { key: "hits", words: "Cache hits", numeric: true, by: cacheHits, draw: (row) => `${cacheHits(row)} %` },
    number("out", "Tokens out", (row) => row.output_tokens),
    { key: "cost", words: "Cost", numeric: true, by: (row) => row.cost_microusd, draw: (row) => (row.unpriced && row.unpriced === row.calls ? "unknown" : `${money(row.cost_microusd)}${row.unpriced ? " and more" : ""}`) },
    number("first", "First word", (row) => row.first_delta_ms, lasting),
    number("whole", "Whole call", (row) => row.duration_ms, lasting),
  ];
}

function Named({ by: group, row, names }: { by: By; row: UsageRow; names: Names }): VNode {
  const words = <bdi>{nameOf(group, row, names)}</bdi>;
  if (group === "run") return <a class="mono breaks" href={href("usage", "run", row.group)} title="Who was asked, and why">{row.group}</a>;
  if (group === "session") return <a href={href("chat", row.group)}>{words}</a>;
  return group === "schedule" ? <a href={href("schedules", row.group)}>{words}</a> : <span>{words}</span>;
}

function nameOf(group: By, row: UsageRow, names: Names): string {
  if (group === "day") return new Date(Number(row.group) * DAY_MS).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
  if (group === "session") return visible(sessions.value.find((each) => each.session_id === row.group)?.title || `…${row.group.slice(-6)}`);
  if (group === "run") return new Date(row.until_ms ?? 0).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  if (group === "schedule") return visible(names.get(row.group) ?? `…${row.group.slice(-6)}`);
  return visible(row.group);
}

function short(name: string): string {
  return name.length > LONGEST_LABEL ? `${name.slice(0, LONGEST_LABEL - 1)}…` : name;
}

/** A day without calls is a day too: a plot that leaves it out would lie. */
function everyDay(rows: readonly UsageRow[]): UsageRow[] {
  if (!rows.length) return [];
  const last = Math.floor(Date.now() / DAY_MS);
  const first = Math.min(...rows.map((row) => Number(row.group)));
  const known = new Map(rows.map((row) => [Number(row.group), row]));
  const none = { calls: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_microusd: 0, duration_ms: 0, first_delta_ms: 0 };
  return Array.from({ length: Math.min(MOST, last - first + 1) }, (_, back) => known.get(last - back) ?? { group: String(last - back), ...none });
}
