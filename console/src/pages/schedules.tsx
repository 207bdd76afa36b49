// What Palyra does at its time, without anybody asking: every schedule, one of them, or a new one.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { argument, go, href, second } from "../core/router";
import { ago, ahead, count, money, visible } from "../core/words";
import { ChangeOne, NewOne } from "../schedules/making";
import { One } from "../schedules/one";
import { FIRINGS, STATES, whenWords } from "../schedules/words";
import { useChanged } from "../ui/fresh";
import { Page, useAttempt, useLoaded } from "../ui/page";
import { Badge, Empty } from "../ui/parts";
import { Table } from "../ui/table";
import type { ShownSchedule } from "../types";

export function SchedulesPage(): VNode {
  switch (argument.value) {
    case "": return <All />;
    case "new": return <NewOne />;
    default: return second.value === "edit" ? <ChangeOne key={argument.value} id={argument.value} /> : <One key={argument.value} id={argument.value} />;
  }
}

function All(): VNode {
  const found = useLoaded(() => palyra.listSchedules(), [], useChanged("schedules"));
  const { error, busy, attempt } = useAttempt();
  const does = (verb: (id: string) => Promise<unknown>, id: string, said: string) => void attempt(async () => { await verb(id); found.again(); }, said);
  const rows = found.value?.schedules ?? [];
  const month = rows.reduce((sum, each) => sum + (each.forecast?.cost_microusd_a_month ?? 0), 0);
  return (
    <Page title="Schedules" error={found.error || error} actions={<a class="button main" href={href("schedules", "new")}>New schedule</a>}>
      {!found.value ? !found.error && <p role="status">Loading…</p> : !rows.length ? <Empty><h2>No schedules yet</h2><p>A schedule sends a prompt at a set time, such as “weekdays at 8:30: summarise what changed in this folder”.</p><div class="row"><a class="button main" href={href("schedules", "new")}>New schedule</a></div></Empty> : (
        <>
          <Table label="Schedules" rows={rows} keyOf={(each) => each.schedule.schedule_id} onOpen={(each) => go("schedules", each.schedule.schedule_id)} columns={[
            { key: "name", words: "Name", draw: (each) => <a href={href("schedules", each.schedule.schedule_id)}><bdi>{visible(each.schedule.name)}</bdi></a>, by: (each) => each.schedule.name },
            { key: "when", words: "When", draw: (each) => <bdi>{visible(whenWords(each))}</bdi>, by: (each) => whenWords(each) },
            { key: "state", words: "State", draw: (each) => <State shown={each} />, by: (each) => each.schedule.state ?? "active" },
            { key: "next", words: "Next", draw: upcoming, by: (each) => each.upcoming?.[0] ?? Infinity },
            { key: "last", words: "Last", draw: last, by: (each) => each.firings?.[0]?.due_ms ?? 0 },
            { key: "often", words: "Runs in 30 days", draw: (each) => count(each.forecast?.firings_a_month ?? 0), by: (each) => each.forecast?.firings_a_month ?? 0, numeric: true },
            { key: "cost", words: "Forecast cost", draw: (each) => (each.forecast?.runs ? money(each.forecast.cost_microusd_a_month ?? 0) : "unknown"), by: (each) => each.forecast?.cost_microusd_a_month ?? 0, numeric: true },
            { key: "do", words: "", draw: (each) => <Actions shown={each} busy={busy} does={does} /> },
          ]} />
          <p class="hint">Forecast for all schedules: {money(month)} in 30 days, from their last runs. Actual use is on <a href={href("usage")}>Usage</a>.</p>
        </>
      )}
    </Page>
  );
}

function State({ shown }: { shown: ShownSchedule }): VNode {
  const [tone, words] = STATES[shown.schedule.state ?? "active"];
  return <Badge tone={tone}>{words}</Badge>;
}

/** What is done most often, without opening the schedule. */
function Actions({ shown: { schedule: { schedule_id: id, state = "active", name } }, busy, does }: { shown: ShownSchedule; busy: boolean; does: (verb: (id: string) => Promise<unknown>, id: string, said: string) => void }): VNode {
  return (
    <span class="row" onClick={(event) => event.stopPropagation()}>
      {state !== "paused" && <button type="button" class="quiet small" disabled={busy} aria-label={`Run now: ${name}`} onClick={() => does(palyra.runSchedule, id, "Running now.")}>Run now</button>}
      {state === "active" && <button type="button" class="quiet small" disabled={busy} aria-label={`Pause: ${name}`} onClick={() => does(palyra.pauseSchedule, id, "Paused.")}>Pause</button>}
      {state === "paused" && <button type="button" class="quiet small" disabled={busy} aria-label={`Resume: ${name}`} onClick={() => does(palyra.resumeSchedule, id, "Resumed.")}>Resume</button>}
    </span>
  );
}

function upcoming(shown: ShownSchedule): VNode | string {
  const next = shown.upcoming?.[0];
  return next ? <time dateTime={new Date(next).toISOString()} title={shown.upcoming_shown?.[0]}>{ahead(next)}</time> : "–";
}

function last(shown: ShownSchedule): VNode | string {
  const firing = shown.firings?.[0];
  if (!firing) return "never";
  const [tone, words] = FIRINGS[firing.state];
  return <><Badge tone={tone}>{words}</Badge> <span class="hint">{ago(firing.due_ms)}</span></>;
}
