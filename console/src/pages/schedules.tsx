// What Palyra does at its time, without anybody asking: every schedule, one of them, or a new one.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { argument, go, href } from "../core/router";
import { ago, count, money, visible } from "../core/words";
import { NewOne } from "../schedules/making";
import { One } from "../schedules/one";
import { FIRINGS, STATES, whenWords } from "../schedules/words";
import { useChanged } from "../ui/fresh";
import { Page, useLoaded } from "../ui/page";
import { Badge, Empty } from "../ui/parts";
import { Table } from "../ui/table";
import type { ShownSchedule } from "../types";

export function SchedulesPage(): VNode {
  switch (argument.value) {
    case "": return <All />;
    case "new": return <NewOne />;
    default: return <One key={argument.value} id={argument.value} />;
  }
}

function All(): VNode {
  const found = useLoaded(() => palyra.listSchedules(), [], useChanged("schedules"));
  const rows = found.value?.schedules ?? [];
  const month = rows.reduce((sum, each) => sum + (each.forecast?.cost_microusd_a_month ?? 0), 0);
  return (
    <Page title="Schedules" error={found.error} actions={<a class="button main" href={href("schedules", "new")}>New schedule</a>}>
      {!found.value ? !found.error && <p role="status">Loading…</p> : !rows.length ? <Empty><p>There is none. A schedule says something to Palyra at its time, as “weekdays at 8:30: say what changed in this folder since yesterday”.</p></Empty> : (
        <>
          <Table label="Schedules" rows={rows} keyOf={(each) => each.schedule.schedule_id} onOpen={(each) => go("schedules", each.schedule.schedule_id)} columns={[
            { key: "name", words: "Name", draw: (each) => <a href={href("schedules", each.schedule.schedule_id)}><bdi>{visible(each.schedule.name)}</bdi></a>, by: (each) => each.schedule.name },
            { key: "when", words: "When", draw: (each) => <bdi>{visible(whenWords(each))}</bdi>, by: (each) => whenWords(each) },
            { key: "state", words: "State", draw: (each) => <State shown={each} />, by: (each) => each.schedule.state ?? "active" },
            { key: "next", words: "Next", draw: (each) => each.upcoming_shown?.[0] ?? "–", by: (each) => each.upcoming?.[0] ?? Infinity },
            { key: "last", words: "Last", draw: last, by: (each) => each.firings?.[0]?.due_ms ?? 0 },
            { key: "often", words: "In 30 days", draw: (each) => count(each.forecast?.firings_a_month ?? 0), by: (each) => each.forecast?.firings_a_month ?? 0, numeric: true },
            { key: "cost", words: "Which may cost", draw: (each) => (each.forecast?.runs ? money(each.forecast.cost_microusd_a_month ?? 0) : "not known yet"), by: (each) => each.forecast?.cost_microusd_a_month ?? 0, numeric: true },
          ]} />
          <p class="hint">By their last runs, all of them may cost {money(month)} in thirty days. What was really used is on the page <a href={href("usage")}>Usage</a>.</p>
        </>
      )}
    </Page>
  );
}

function State({ shown }: { shown: ShownSchedule }): VNode {
  const [tone, words] = STATES[shown.schedule.state ?? "active"];
  return <Badge tone={tone}>{words}</Badge>;
}

function last(shown: ShownSchedule): VNode | string {
  const firing = shown.firings?.[0];
  if (!firing) return "never";
  const [tone, words] = FIRINGS[firing.state];
  return <><Badge tone={tone}>{words}</Badge> <span class="hint">{ago(firing.due_ms)}</span></>;
}
