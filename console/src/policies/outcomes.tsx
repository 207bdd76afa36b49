// What other policies would have decided about everything that was ever asked: how many, which, and why.
import type { VNode } from "preact";
import { href } from "../core/router";
import { count, toolWords, visible, when } from "../core/words";
import { Badge } from "../ui/parts";
import { Table } from "../ui/table";
import type { Changed, Example, Report } from "../types";

export const WORDS: Record<string, string> = { allow: "allow", ask: "ask", deny: "deny" };
export const TONES: Record<string, string> = { allow: "good", ask: "warn", deny: "bad" };
export const PERIODS = [["7", "7 days"], ["30", "30 days"], ["all", "All time"]] as const;
export type Period = (typeof PERIODS)[number][0];

export function sinceOf(period: Period): number {
  return period === "all" ? 0 : Date.now() - Number(period) * 86_400_000;
}

export function Outcomes({ calls, same, denied, asked, allowed }: { calls: number; same: number; denied: Changed; asked: Changed; allowed: Changed }): VNode {
  const examples = [...denied.examples, ...asked.examples, ...allowed.examples];
  return (
    <>
      <div class="tiles" role="status">
        <div class="tile"><strong>{count(calls)}</strong>calls</div>
        <div class="tile"><strong>{count(same)}</strong>unchanged</div>
        <div class="tile"><strong>{count(denied.calls)}</strong>newly denied</div>
        <div class="tile"><strong>{count(asked.calls)}</strong>newly ask</div>
        <div class="tile"><strong>{count(allowed.calls)}</strong>newly allowed</div>
      </div>
      {examples.length > 0 && <Table label="Changed decisions" rows={examples} keyOf={(each) => `${each.after} ${each.call_id}`} columns={COLUMNS} />}
      {!examples.length && calls > 0 && <p>No decision would change.</p>}
    </>
  );
}

const COLUMNS = [
  { key: "tool", words: "Tool", draw: (each: Example) => <>{toolWords(each.tool)}<br /><bdi class="hint breaks">{visible(each.about)}</bdi></>, by: (each: Example) => each.tool },
  { key: "change", words: "Outcome", draw: (each: Example) => <span class="change"><Badge tone={TONES[each.before] ?? ""}>{WORDS[each.before]}</Badge> → <Badge tone={TONES[each.after] ?? ""}>{WORDS[each.after]}</Badge></span>, by: (each: Example) => each.after },
  { key: "times", words: "Times", numeric: true, draw: (each: Example) => count(each.times), by: (each: Example) => each.times },
  { key: "why", words: "Reason", draw: (each: Example) => <>{visible(each.reason)}<br /><span class="hint">{each.policies.join(", ")}</span></> },
  { key: "when", words: "When", draw: (each: Example) => <a href={href("timeline", each.session_id)}>{when(each.time_ms)}</a>, by: (each: Example) => each.time_ms },
];

export function Tested({ report }: { report: Report }): VNode {
  return (
    <>
      <Outcomes calls={report.calls} same={report.same} denied={report.newly_denied} asked={report.newly_asked} allowed={report.newly_allowed} />
      {report.calls === 0 && <p>No calls recorded in this period.</p>}
      <p class="hint">
        {report.not_asked > 0 && `${count(report.not_asked)} were refused before policy. `}{report.unknown > 0 && `${count(report.unknown)} lack the data for a decision. `}{report.inexact > 0 && `${count(report.inexact)} contained a secret that the journal does not keep. `}
        {report.never_hit.length > 0 && `Policies that never matched: ${report.never_hit.join(", ")}.`}
      </p>
    </>
  );
}
