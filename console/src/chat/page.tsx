// The chat: sessions on the left, the open one beside them.
import { computed } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import type { Conversation } from "../core/conversation";
import { argument, href } from "../core/router";
import { close, listed, moreSessions, open, openError, openTitle, pending, sessions, show, showEarlier, showMoreSessions, status } from "../core/store";
import { ago, count, lasting, money, visible } from "../core/words";
import { Badge, Empty, Problem, spoken } from "../ui/parts";
import type { Said } from "../types";
import { Composer } from "./composer";
import { Drawn } from "./items";
import { Scroll } from "./scroll";
import { Unaccepted } from "./unaccepted";
import { archive, exported, rename } from "./verbs";

const SEARCH_MS = 250;

export function ChatPage(): VNode {
  const id = argument.value;
  useEffect(() => {
    if (id) void show(id);
    else close();
  }, [id]);
  return (
    <div class={id ? "chat with-session" : "chat"}>
      <SessionList current={id} />
      <section class="session" aria-label="Conversation">{open.value ? <OpenSession key={open.value.id} conversation={open.value} /> : <Fresh />}</section>
    </div>
  );
}

const waiting = computed(() => new Set(pending.value.map((each) => each.session_id)));

function SessionList({ current }: { current: string }): VNode {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<Said[] | undefined>();
  const [error, setError] = useState("");
  useEffect(() => {
    setError("");
    if (!query.trim()) return setFound(undefined);
    let stale = false;
    const timer = setTimeout(() => {
      void palyra.searchSessions({ q: query.trim().slice(0, 500) }).then(
        (page) => { if (!stale) setFound(page.found); },
        (failure: unknown) => { if (!stale) setError(wordsOf(failure)); },
      );
    }, SEARCH_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [query]);
  const lowered = query.trim().toLowerCase();
  const named = sessions.value.filter((each) => !lowered || (each.title ?? "").toLowerCase().includes(lowered));
  return (
    <nav class="sessions" aria-label="Sessions">
      <div class="row">
        <a class="button main" href={href("chat")}>New session</a>
      </div>
      <input type="search" aria-label="Search sessions" placeholder="Search" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      <Problem text={error} />
      <ul>
        {named.map((each) => (
          <li key={each.session_id}>
            <a href={href("chat", each.session_id)} aria-current={each.session_id === current ? "page" : undefined}>
              <bdi class="session-title">{visible(each.title || "Untitled")}</bdi>
              <span class="hint">{ago(each.updated_ms)}</span>
              {waiting.value.has(each.session_id) ? <Badge tone="warn">asks you</Badge> : each.active ? <Badge tone="good">working</Badge> : null}
            </a>
          </li>
        ))}
        {found?.filter((each) => !named.some((row) => row.session_id === each.session_id)).map((each) => (
          <li key={`${each.session_id}${each.seq}`}>
            <a href={href("chat", each.session_id)}><bdi class="session-title">{visible(each.title || "Untitled")}</bdi><bdi class="hint">{visible(each.snippet)}</bdi></a>
          </li>
        ))}
      </ul>
      {lowered && !named.length && found?.length === 0 && <p class="hint">Nothing found. Try other words.</p>}
      {listed.value && !sessions.value.length && <p class="hint">No sessions yet.</p>}
      {moreSessions.value && !lowered && <button type="button" class="quiet" onClick={() => void showMoreSessions()}>Show older ones</button>}
    </nav>
  );
}

function Fresh(): VNode {
  const model = status.value?.models.find((each) => each.default);
  return (
    <div class="fresh">
      <Empty>
        <h1>What should be done?</h1>
        <p>Ask a question or describe a task. Palyra works in <code>{status.value?.workspace || "a folder of yours"}</code> and asks you before it does something that matters.</p>
        {model?.provider === "demo" && <p class="hint">You are talking to the built-in demo model, which follows simple rules: say “hi”, and it tells what it understands. Add a provider's key for a real one: <a href={href("settings")}>Settings</a>.</p>}
        {listed.value && sessions.value.length < 3 && <p class="tour-offer">New here? <a href={href("tour")}>Take the tour</a>: five steps, done for real, in two minutes.</p>}
      </Empty>
      {status.value?.workspace && <Unaccepted of={{ workspace: status.value.workspace }} moment="" />}
      <Composer conversation={undefined} />
    </div>
  );
}

function OpenSession({ conversation }: { conversation: Conversation }): VNode {
  return (
    <>
      <SessionHead conversation={conversation} />
      <Unaccepted of={{ session_id: conversation.id }} moment={`${conversation.run.value?.runId} ${conversation.run.value?.state}`} />
      <Problem text={openError.value}><a href={href("chat")}>Begin a new session</a></Problem>
      <Items conversation={conversation} />
      <Composer conversation={conversation} />
    </>
  );
}

function SessionHead({ conversation }: { conversation: Conversation }): VNode {
  const [error, setError] = useState("");
  const attempt = (work: Promise<void>) => void work.catch((failure: unknown) => setError(wordsOf(failure)));
  const title = openTitle.value || "New session";
  const renamed = (input: HTMLInputElement) => input.value.trim() && input.value !== title && attempt(rename(conversation.id, input.value.trim()));
  return (
    <header class="session-head">
      <a class="back quiet button" href={href("chat")} aria-label="All sessions">‹</a>
      <h1 class="unseen">{visible(title)}</h1>
      <input class="title" aria-label="Name of this session" key={title} defaultValue={title} dir="auto" onBlur={(event) => renamed(event.currentTarget)} onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()} />
      <Meter conversation={conversation} />
      <a class="button quiet small" href={href("timeline", conversation.id)}>Timeline</a>
      <button type="button" class="quiet small" onClick={() => attempt(exported(conversation.id))}>Export</button>
      <button type="button" class="quiet small" onClick={() => attempt(archive(conversation.id))}>Archive</button>
      <Problem text={error} />
    </header>
  );
}

function Meter({ conversation }: { conversation: Conversation }): VNode | null {
  const run = conversation.run.value;
  const [now, setNow] = useState(Date.now());
  const working = !!run && run.state === "in_progress";
  useEffect(() => {
    if (!working) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [working]);
  useEffect(() => {
    if (run) spoken.value = run.state === "waiting" ? "Palyra asks you something" : run.state === "failed" ? "Failed" : run.state === "stopped" ? "Stopped" : run.state === "done" ? "Done" : "Working";
  }, [run?.state, run?.runId]);
  if (!run) return null;
  const states = { accepted: "waits its turn", in_progress: "working", waiting: "waits for you", done: "done", failed: "failed", stopped: "stopped" } as const;
  return (
    <div class="meter" title="Tokens read and written, and the cost, of this run">
      <Badge tone={run.state === "waiting" || run.state === "stopped" ? "warn" : run.state === "failed" ? "bad" : run.state === "done" ? "" : "good"}>{states[run.state]}</Badge>
      <span>{lasting(Math.max(0, (run.endedMs || Math.max(now, run.startedMs)) - run.startedMs))}</span>
      <span>{count(run.input)} in, {count(run.output)} out</span>
      {run.cost > 0 && <span>{money(run.cost)}</span>}
      {run.budget > 0 && <meter aria-label="How full the model's window is" min={0} max={run.budget} value={run.context} />}
    </div>
  );
}

function Items({ conversation }: { conversation: Conversation }): VNode {
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState("");
  const items = conversation.items.value;
  const shared = conversation.before.value;
  const rows = useMemo(() => [...(shared?.items.value ?? []).map((item) => ({ item, conversation: shared! })), ...items.map((item) => ({ item, conversation }))], [items, shared]);
  const more = conversation.from.value > 1;
  const earlier = () => {
    if (!more || loading) return;
    setLoading(true);
    void showEarlier(conversation).then(() => setError(""), (failure: unknown) => setError(wordsOf(failure))).finally(() => setLoading(false));
  };
  return (
    <Scroll rows={rows} draw={(row) => <Drawn item={row.item} conversation={row.conversation} shared={row.conversation !== conversation} />}
      onTop={() => !error && earlier()} onLook={(back) => (conversation.lookingBack = back)}
      before={<>
        <Problem text={error} />
        {more && <button type="button" class="quiet" disabled={loading} onClick={earlier}>{loading ? "Loading…" : "Load earlier"}</button>}
        {!conversation.ready.value && !openError.value && <p class="hint">Loading…</p>}
      </>}
      after={<Working conversation={conversation} />} />
  );
}

/** Something moves as long as something happens, also before the first word. */
function Working({ conversation }: { conversation: Conversation }): VNode | null {
  const last = conversation.items.value.at(-1);
  if (conversation.run.value?.state !== "in_progress" || (last?.kind === "reply" && last.live)) return null;
  return <p class="working" aria-hidden="true"><i /><i /><i /></p>;
}
