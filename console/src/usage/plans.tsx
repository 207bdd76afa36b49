// The models of a run: the run as a picture, and every routing plan with its reasons, what it skipped, and what it took.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { lastEntry } from "../core/store";
import { count, lasting, money, sentence, visible, when } from "../core/words";
import { Page, useLoaded } from "../ui/page";
import { Badge, Empty } from "../ui/parts";
import { Table } from "../ui/table";
import { RunPicture } from "../ui/waterfall";
import "../ui/plot.css";
import type { AskedModel, PlannedRoute, RoutePlanned } from "../types";

const TASKS: Record<NonNullable<RoutePlanned["task"]>, string> = {
  interactive: "interactive", background: "background", vision: "vision", summary: "summary", extraction: "extraction",
};

export function PlansOfRun({ id }: { id: string }): VNode {
  const changed = lastEntry.value?.run_id === id ? lastEntry.value.position : 0;
  const found = useLoaded(() => palyra.listRunPlans(id), [id, changed]);
  const session = found.value?.run.session_id ?? "";
  return (
    <Page title="Model routing" error={found.error} actions={<a href={href("usage")}>All usage</a>}>
      {found.value && <p class="hint">Run started {when(found.value.run.created_ms)}. <a href={href("chat", session)}>Open chat</a> · <a href={href("timeline", session)}>Open timeline</a></p>}
      {found.value && !found.value.plans.length && <Empty><p>This run has called no model yet, or its entries were archived.</p></Empty>}
      {found.value && <div class="box"><RunPicture runId={id} /></div>}
      <ol class="cards" aria-label="Plans">{found.value?.plans.map((each) => <Plan key={each.seq} it={each} session={session} />)}</ol>
    </Page>
  );
}

function Plan({ it, session }: { it: PlannedRoute; session: string }): VNode {
  const { plan } = it;
  // The first of the reasons is the reason, said again.
  const beside = (plan.reasons ?? []).filter((each) => each !== plan.reason);
  return (
    <li class="card">
      <div class="row"><h2 class="mono breaks">{visible(`${plan.provider}/${plan.model}`)}</h2><Badge>{TASKS[plan.task ?? "interactive"]}</Badge>{plan.rule && <Badge>rule {visible(plan.rule)}</Badge>}</div>
      <p><strong>{sentence(visible(plan.reason))}</strong></p>
      {beside.length > 0 && <ul aria-label="Other reasons">{beside.map((each) => <li key={each}>{sentence(visible(each))}</li>)}</ul>}
      {(plan.passed_over ?? []).length > 0 && <><h3>Skipped</h3><ul aria-label="Skipped">{plan.passed_over!.map((each) => <li key={each.model + each.why}><span class="mono breaks">{visible(each.model)}</span>: {visible(each.why)}</li>)}</ul></>}
      <dl class="facts">
        <dt>Fallbacks</dt><dd class="breaks">{plan.fallbacks?.length ? plan.fallbacks.map(visible).join(", then ") : "none"}</dd>
        <dt>Expected</dt><dd>{plan.expected_input_tokens ? `${count(plan.expected_input_tokens)} tokens in, ${count(plan.expected_output_tokens ?? 0)} out, ${plan.expected_microusd == null ? "price unknown" : money(plan.expected_microusd)}` : "no estimate"}</dd>
        <dt>Selected</dt><dd>{when(it.time_ms)}, <a href={href("timeline", session, String(it.seq))}>show on timeline</a></dd>
      </dl>
      {it.calls.length > 0 && <Table label={`Calls by plan ${it.seq}`} rows={it.calls} keyOf={(row) => String(row.seq)} columns={[
        { key: "what", words: "Result", draw: came },
        { key: "in", words: "Tokens in", numeric: true, draw: (row) => count(row.input_tokens ?? 0) },
        { key: "cached", words: "Cached", numeric: true, draw: (row) => count(row.cached_tokens ?? 0) },
        { key: "written", words: "Cache writes", numeric: true, draw: (row) => count(row.cache_write_tokens ?? 0) },
        { key: "out", words: "Tokens out", numeric: true, draw: (row) => count(row.output_tokens ?? 0) },
        { key: "cost", words: "Cost", numeric: true, draw: (row) => (row.priced === "unknown" ? "unknown" : money(row.cost_microusd ?? 0)) },
        { key: "took", words: "Time", numeric: true, draw: (row) => (row.failure ? "" : lasting(row.duration_ms ?? 0)) },
      ]} />}
    </li>
  );
}

function came(row: AskedModel): VNode {
  return row.failure
    ? <><Badge tone="bad">{row.failure.replaceAll("_", " ")}</Badge> <span class="breaks">{visible(row.message ?? "")}</span></>
    : <><Badge tone="good">Reply</Badge> <span class="mono breaks">{visible(row.model)}</span></>;
}
