// How safe and how quiet the last weeks were: questions, what ran without one, answers that repeat themselves, and sources that gave orders.
import type { ComponentChildren, VNode } from "preact";
import { mark, marks } from "../core/address";
import { href } from "../core/router";
import { lastEntry } from "../core/store";
import * as palyra from "../core/verbs";
import { ago, count, day, many, visible } from "../core/words";
import type { MetSource, RepeatedAnswer, SecurityScore, UnattendedTool } from "../types";
import { short } from "../ui/figures";
import { useLoaded } from "../ui/page";
import { Choice, Empty, PageHead, Problem } from "../ui/parts";
import { Plot } from "../ui/plot";
import { Table, type Column } from "../ui/table";

const DAY_MS = 86_400_000;
const PERIODS = [["7", "Week"], ["30", "Month"], ["365", "Year"]] as const;
const DECIDED = new Set(["tool.decided", "approval.resolved"]);

export function SecurityPage(): VNode {
  const days = Number(PERIODS.find(([each]) => each === marks.value.days)?.[0] ?? "30");
  const changed = DECIDED.has(lastEntry.value?.kind ?? "") ? lastEntry.value!.position : 0;
  const found = useLoaded(() => palyra.securityScore({ since_ms: Date.now() - days * DAY_MS }), [days], changed);
  const score = found.value;
  return (
    <div class="page full">
      <PageHead title="Security">
        <Choice label="Period" value={String(days)} options={PERIODS} onChoose={(value) => mark({ days: value === "30" ? "" : value })} />
      </PageHead>
      <Problem text={found.error} />
      {!score ? !found.error && <p role="status">Loading…</p>
        : score.score === null ? <Empty><p>No tool was called in this time.</p><p><a class="button main" href={href("chat")}>Start a chat</a></p></Empty>
        : <Report of={score} given={score.score} />}
    </div>
  );
}

function Report({ of, given }: { of: SecurityScore; given: number }): VNode {
  const percent = (part: number, whole: number) => `${whole ? Math.round((part / whole) * 100) : 0} %`;
  return (
    <>
      <div class="figures">
        <Figure words="Score" value={`${given} of 100`} more={of.lost_to_exposure || of.lost_to_questions ? `−${of.lost_to_exposure} for exposed calls, −${of.lost_to_questions} for questions` : "nothing lost"} />
        <Figure words="Questions per task" value={(of.questions / of.tasks).toFixed(2)} more={`${many(of.questions, "question")}, ${many(of.tasks, "task")}`} />
        <Figure words="Tasks without questions" value={percent(of.quiet_tasks, of.tasks)} more={`${count(of.quiet_tasks)} of ${count(of.tasks)}`} />
        <Figure words="Ran without a question" value={short(of.unattended)} more={`of ${count(of.calls)} tool calls`} />
        <Figure words="Exposed calls" value={short(of.exposed)} more="to places nobody vouches for" />
      </div>
      <section class="box" aria-label="Over time">
        <Plot title="Tasks" sub="by day (UTC)" across="Days" labels={of.days.map((each) => day(each.day_ms, "UTC"))} unit={short} shape="bars"
          lines={[{ words: "without questions", tone: "good", values: of.days.map((each) => each.quiet_tasks) }, { words: "with questions", tone: "warn", values: of.days.map((each) => each.tasks - each.quiet_tasks) }]} />
        <p class="hint">{count(of.approved)} approved ({count(of.edited)} edited), {count(of.denied)} denied, {count(of.expired)} expired. Policy refused {many(of.refused, "call")}.</p>
      </section>
      <Part id="unattended" title="Ran without a question">
        {of.tools.length ? <Table label="Unattended calls by tool" rows={of.tools} keyOf={(row) => row.tool} columns={TOOLS} /> : <p class="hint">Every call needed approval.</p>}
      </Part>
      <Part id="repeated" title="Always answered the same way">
        {of.repeated.length ? <Table label="Repeated answers" rows={of.repeated} keyOf={(row) => `${row.tool} ${row.about}`} columns={REPEATED} /> : <p class="hint">No question came twice.</p>}
      </Part>
      <Part id="grants" title="Grants that would save questions">
        {of.permits.length ? (
          <>
            <ul class="plain">{of.permits.map((each) => <li key={each.id}><strong>{count(each.covers)}</strong> <bdi>{visible(each.what)}</bdi></li>)}</ul>
            <p><a class="button" href={href("policies", "suggestions")}>Review suggestions</a></p>
          </>
        ) : <p class="hint">No grant would have saved a question.</p>}
      </Part>
      <Part id="sources" title="Content that looked like instructions">
        {of.sources.length ? <Table label="Instruction-like sources" rows={of.sources} keyOf={(row) => row.source} columns={SOURCES} /> : <p class="hint">No source gave the agent orders.</p>}
      </Part>
    </>
  );
}

function Figure({ words, value, more }: { words: string; value: string; more: string }): VNode {
  return <div class="figure"><span>{words}</span><strong>{value}</strong><small>{more}</small></div>;
}

function Part({ id, title, children }: { id: string; title: string; children: ComponentChildren }): VNode {
  return <section class="box" aria-labelledby={`part-${id}`}><h2 id={`part-${id}`}>{title}</h2>{children}</section>;
}

const TOOLS: Column<UnattendedTool>[] = [
  { key: "tool", words: "Tool", by: (row) => row.tool, draw: (row) => <bdi>{visible(row.tool)}</bdi> },
  { key: "calls", words: "Calls", numeric: true, by: (row) => row.calls, draw: (row) => count(row.calls) },
  { key: "grant", words: "By a grant", numeric: true, by: (row) => row.by_grant, draw: (row) => count(row.by_grant) },
  { key: "untrusted", words: "After untrusted content", numeric: true, by: (row) => row.after_untrusted, draw: (row) => count(row.after_untrusted) },
  { key: "exposed", words: "Exposed", numeric: true, by: (row) => row.exposed, draw: (row) => (row.exposed ? <span class="badge bad">{count(row.exposed)}</span> : "0") },
  { key: "example", words: "Last exposed", draw: (row) => <bdi>{visible(row.example ?? "")}</bdi> },
];

const REPEATED: Column<RepeatedAnswer>[] = [
  { key: "tool", words: "Tool", by: (row) => row.tool, draw: (row) => <bdi>{visible(row.tool)}</bdi> },
  { key: "about", words: "About", by: (row) => row.about, draw: (row) => <bdi>{visible(row.about)}</bdi> },
  { key: "answer", words: "Answer", by: (row) => row.decision, draw: (row) => (row.decision === "allow" ? <span class="badge good">Approved</span> : <span class="badge bad">Denied</span>) },
  { key: "times", words: "Times", numeric: true, by: (row) => row.times, draw: (row) => count(row.times) },
];

const SOURCES: Column<MetSource>[] = [
  { key: "source", words: "Source", by: (row) => row.source, draw: (row) => <a href={href("timeline", row.session_id, String(row.seq))}><bdi>{visible(row.source)}</bdi></a> },
  { key: "words", words: "Words", draw: (row) => <q><bdi>{visible(row.words)}</bdi></q> },
  { key: "times", words: "Times", numeric: true, by: (row) => row.times, draw: (row) => count(row.times) },
  { key: "first", words: "First read", numeric: true, by: (row) => row.time_ms, draw: (row) => ago(row.time_ms) },
];
