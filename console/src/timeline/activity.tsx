// What happened lately, in all sessions: each run with its state, what started it, and how long it took.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { go, href, query, setQuery } from "../core/router";
import { lastEntry, sessions } from "../core/store";
import * as palyra from "../core/verbs";
import { lasting, visible } from "../core/words";
import { Part, useLoaded } from "../ui/page";
import { Ago, Badge, Choice, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import { useNow } from "../ui/waterfall";
import type { RunRow } from "../types";

const PAGE = 25;
const MOST = 500;
const STATES: Record<RunRow["state"], readonly [string, string]> = {
  accepted: ["", "Queued"], in_progress: ["info", "Working"], waiting: ["warn", "Waiting"], done: ["good", "Done"], failed: ["bad", "Failed"], cancelled: ["warn", "Cancelled"],
};
const ORIGINS: Record<RunRow["origin"], string> = { interactive: "you", api: "a program", channel: "a channel", scheduled: "a schedule", child: "a subagent" };
const WHICH = [["", "All"], ["open", "Open"], ["failed", "Failed"]] as const;
type Which = (typeof WHICH)[number][0];

/** What a waiting run waits for stands in the badge; why another one ended, behind it. */
const WAITS: Record<string, string> = { approval: "Needs approval", provider: "Waiting for model" };

function State({ run: { state, reason = "" } }: { run: RunRow }): VNode {
  const [tone, words] = STATES[state];
  const waits = state === "waiting" && WAITS[reason];
  return <><Badge tone={tone}>{waits || words}</Badge>{reason && !waits && state !== "done" && <> <span class="hint"><bdi>{visible(reason).replaceAll("_", " ").slice(0, 80)}</bdi></span></>}</>;
}

function fits(run: RunRow, which: string): boolean {
  if (which === "open") return run.state === "accepted" || run.state === "in_progress" || run.state === "waiting";
  return which !== "failed" || run.state === "failed" || run.state === "cancelled";
}

export function Activity(): VNode {
  const [many, setMany] = useState(PAGE);
  const which = (query.value.get("runs") ?? "") as Which;
  const changed = lastEntry.value?.kind.startsWith("run.") || lastEntry.value?.kind.startsWith("approval.") ? lastEntry.value.position : 0;
  const found = useLoaded(() => palyra.recentRuns({ limit: many }), [many], changed);
  const { runs, next } = found.value ?? { runs: undefined, next: null };
  const rows = (runs ?? []).filter((each) => fits(each, which));
  const now = useNow(rows.some((each) => !each.ended_ms));
  const titles = new Map(sessions.value.map((each) => [each.session_id, each.title]));
  const titleOf = (each: RunRow) => visible(titles.get(each.session_id) || "Untitled");
  return (
    <Part id="activity" title="All activity">
      <Problem text={found.error} />
      <Choice<Which> label="Runs" value={which} options={WHICH} onChoose={(value) => setQuery({ runs: value })} />
      {runs && !rows.length && <p class="hint">No such runs.</p>}
      {rows.length > 0 && (
        <Table<RunRow> label="All activity" rows={rows} keyOf={(each) => each.run_id} onOpen={(each) => go("timeline", each.session_id)} columns={[
          { key: "session", words: "Session", draw: (each) => <a href={href("timeline", each.session_id)}><bdi>{titleOf(each)}</bdi></a>, by: titleOf },
          { key: "state", words: "State", draw: (each) => <State run={each} />, by: (each) => each.state },
          { key: "by", words: "Started by", draw: (each) => ORIGINS[each.origin], by: (each) => ORIGINS[each.origin] },
          { key: "when", words: "Started", draw: (each) => <Ago ms={each.created_ms} />, by: (each) => each.created_ms },
          { key: "time", words: "Time", numeric: true, draw: (each) => lasting(Math.max(0, (each.ended_ms || now) - each.created_ms)), by: (each) => (each.ended_ms || now) - each.created_ms },
        ]} />
      )}
      {next && many < MOST && <button type="button" class="quiet" onClick={() => setMany(many + PAGE)}>Show older</button>}
    </Part>
  );
}
