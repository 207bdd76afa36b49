// One message, answered by two models: both runs beside each other, each while it happens, and a way to go on with either.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { addressOf } from "../core/address";
import { wordsOf } from "../core/api";
import { Conversation, ended } from "../core/conversation";
import { OneSession } from "../core/live";
import { href, setQuery } from "../core/router";
import { entriesOf } from "../core/run_entries";
import * as palyra from "../core/verbs";
import { calm, count, lasting, money, visible } from "../core/words";
import { Badge, Problem, Skeleton } from "../ui/parts";
import type { RunAccepted } from "../types";
import { Drawn } from "./items";

interface Side { conversation: Conversation; runId: string; origin: string; stream: OneSession }

async function opened(runId: string): Promise<Side> {
  const run = await palyra.getRun(runId);
  const entries = await entriesOf(runId);
  const conversation = new Conversation(run.session_id);
  conversation.load(entries);
  const stream = new OneSession(run.session_id, {
    cursor: () => conversation.cursor,
    entry: (entry) => { if (entry.run_id === runId) conversation.entry(entry); },
    live: (event) => conversation.live(event),
    resumed: () => conversation.resumed(),
  });
  const accepted = entries.find((each) => each.kind === "run.accepted")?.event as RunAccepted | undefined;
  return { conversation, runId, origin: accepted?.forked_run_id ?? "", stream };
}

/** The second run; its origin is found from it. */
export function Beside({ runId }: { runId: string }): VNode {
  const [sides, setSides] = useState<readonly [Side, Side] | undefined>();
  const [error, setError] = useState("");
  useEffect(() => {
    let gone = false;
    const open: Side[] = [];
    void (async () => {
      const second = await opened(runId);
      open.push(second);
      if (!second.origin) throw new Error("This run was not forked from another one.");
      const first = await opened(second.origin);
      open.push(first);
      if (gone) for (const each of open) each.stream.close();
      else setSides([first, second]);
    })().catch((failure: unknown) => { if (!gone) setError(wordsOf(failure)); });
    return () => {
      gone = true;
      for (const each of open) each.stream.close();
    };
  }, [runId]);
  const asked = sides?.[0].conversation.items.value.find((each) => each.kind === "user");
  return (
    <div class="beside" role="region" aria-label="Compare answers">
      <div class="row"><h2>Compare answers</h2><button type="button" class="small" onClick={() => setQuery({ beside: "" })}>Close comparison</button></div>
      <Problem text={error} />
      {asked?.kind === "user" && <div class="user"><div class="bubble" dir="auto">{calm(asked.event.text)}</div></div>}
      {sides ? <div class="sides">{sides.map((each, at) => <Answered key={each.runId} side={each} title={at ? "Asked again" : "Original"} other={sides[1 - at]!.runId} />)}</div> : !error && <Skeleton label="Loading…" lines={6} />}
    </div>
  );
}

const STATES = { accepted: ["Queued", ""], in_progress: ["Working", "info"], waiting: ["Needs approval", "warn"], done: ["Done", "good"], failed: ["Failed", "bad"], stopped: ["Stopped", "warn"] } as const;

function Answered({ side, title, other }: { side: Side; title: string; other: string }): VNode {
  const { conversation } = side;
  const run = conversation.run.value;
  const items = conversation.items.value.filter((each) => each.kind !== "user" && (each.kind === "notice" || each.runId === side.runId));
  const [words, tone] = STATES[run?.state ?? "accepted"];
  return (
    <section class="panel" aria-label={title}>
      <header class="row"><h3>{title}</h3><span class="mono">{visible(run?.model ?? "")}</span><Badge tone={tone}>{words}</Badge></header>
      {items.map((each) => <Drawn key={each.key} item={each} conversation={conversation} shared />)}
      <footer class="row hint">
        {run && <span>{run.endedMs ? lasting(run.endedMs - run.startedMs) : ""} · {count(run.input + run.output)} tokens · {money(run.cost)}</span>}
        <a href={addressOf(["timeline", conversation.id, String(run?.acceptedSeq ?? 1)], { with: other })}>Compare steps</a>
        {run && ended(run) && <a class="button small" href={href("chat", conversation.id)}>Continue with this</a>}
      </footer>
    </section>
  );
}
