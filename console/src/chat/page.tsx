// The chat: sessions on the left, the open one beside them, and its run on the right.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { online, wordsOf } from "../core/api";
import type { Conversation } from "../core/conversation";
import { recall, remember } from "../core/remembered";
import { argument, href, query } from "../core/router";
import { small } from "../core/screen";
import { close, listed, open, openError, openTitle, sessions, show, showEarlier, status } from "../core/store";
import { lasting, shortPath, visible } from "../core/words";
import { Menu } from "../ui/menu";
import { laterPart } from "../ui/page";
import { Badge, Problem, Skeleton, spoken } from "../ui/parts";
import * as palyra from "../core/verbs";
import { Composer } from "./composer";
import { say } from "./composing";
import { Drawn } from "./items";
import { Scroll } from "./scroll";
import { DeleteDialog, SessionList } from "./sessions";
import { Unaccepted } from "./unaccepted";
import { WaitCard } from "./waiting";
import { archive, exported, rename } from "./verbs";

const Beside = laterPart<{ runId: string }>(() => import("./beside").then((it) => it.Beside));
const Inspector = laterPart<{ conversation: Conversation | undefined; onClose?: (() => void) | undefined }>(() => import("./inspector").then((it) => it.Inspector), () => <aside class="inspector" aria-label="Details" />);

/** Whether the details are shown; without a choice, where there is room. */
const choice = signal<"" | "open" | "closed">(recall("inspector", ""));

function toggleDetails(opened: boolean): void {
  choice.value = opened ? "closed" : "open";
  // Over a small page they are looked at and closed again: that is no choice for next time.
  if (!small.peek()) remember("inspector", choice.value);
}

export function ChatPage(): VNode {
  const id = argument.value;
  useEffect(() => {
    if (id) void show(id);
    else close();
  }, [id]);
  const details = choice.value ? choice.value === "open" : !small.value;
  const shown = id ? open.value : undefined;
  return (
    <div class={id ? "chat with-session" : "chat"}>
      {shown ? <SessionHead key={shown.id} conversation={shown} details={details} /> : <header class="bar"><h1>New session</h1><div class="end"><DetailsButton details={details} /></div></header>}
      <SessionList current={id} />
      <section class="session" aria-label="Conversation">{shown ? <OpenSession key={shown.id} conversation={shown} /> : <Fresh />}</section>
      {details && (shown || !small.value) && <Inspector conversation={shown} onClose={small.value ? () => toggleDetails(true) : undefined} />}
    </div>
  );
}

function DetailsButton({ details }: { details: boolean }): VNode {
  return <button type="button" class="quiet small only-wide" aria-pressed={details} onClick={() => toggleDetails(details)}>Details</button>;
}

const SUGGESTIONS: readonly string[] = ["What is in this folder?", "Find every TODO", "Create hello.txt with the text hi"];
const FOR_MODELS: readonly string[] = [...SUGGESTIONS, "Remind me every Friday to water the plants"];
/** The built-in model follows rules: it is offered what it understands. */
const FOR_DEMO: readonly string[] = [...SUGGESTIONS, "Every day at 9, list the files"];

function Fresh(): VNode {
  const model = status.value?.models.find((each) => each.default);
  const folder = status.value?.workspace;
  return (
    <>
      <div class={status.value || !online.value ? "fresh" : "fresh unready"}>
        <h2>What can I help with?</h2>
        <div class="suggested" role="group" aria-label="Suggestions">{(model?.provider === "demo" ? FOR_DEMO : FOR_MODELS).map((each) => <button type="button" key={each} onClick={() => say(each)}>{each}</button>)}</div>
        <p>Palyra reads freely in <code title={folder}>{visible(shortPath(folder || "your folder"))}</code> and asks before it changes anything. {listed.value && sessions.value.length < 3 && <a href={href("tour")}>Take the tour</a>}</p>
        {model?.provider === "demo" && <p class="hint">This is the built-in demo model, which follows simple rules. <a href={href("settings")}>Add a model</a> for real answers.</p>}
        {folder && <Unaccepted of={{ workspace: folder }} moment="" />}
      </div>
      <Composer conversation={undefined} />
    </>
  );
}

function OpenSession({ conversation }: { conversation: Conversation }): VNode {
  const beside = query.value.get("beside");
  if (beside) return <Beside key={beside} runId={beside} />;
  return (
    <>
      <Unaccepted of={{ session_id: conversation.id }} moment={`${conversation.run.value?.runId} ${conversation.run.value?.state}`} />
      <Problem text={openError.value}><a href={href("chat")}>New session</a></Problem>
      <Items conversation={conversation} />
      <Composer conversation={conversation} />
    </>
  );
}

function SessionHead({ conversation, details }: { conversation: Conversation; details: boolean }): VNode {
  const [error, setError] = useState("");
  const [deleting, setDeleting] = useState(false);
  const attempt = (work: Promise<unknown>) => void work.then(() => setError(""), (failure: unknown) => setError(wordsOf(failure)));
  const title = openTitle.value || "New session";
  const kept = sessions.value.find((each) => each.session_id === conversation.id)?.kept ?? conversation.session.value?.kept ?? false;
  const renamed = (input: HTMLInputElement) => input.value.trim() && input.value !== title && attempt(rename(conversation.id, input.value.trim()));
  return (
    <header class="bar">
      <a class="back quiet button" href={href("chat")} aria-label="All sessions">‹</a>
      <h1 class="unseen">{visible(title)}</h1>
      <input class="title" aria-label="Session name" title={visible(title)} key={title} defaultValue={title} dir="auto" onBlur={(event) => renamed(event.currentTarget)} onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()} />
      <Meter conversation={conversation} />
      <div class="end">
        <a class="button quiet small only-wide" href={href("timeline", conversation.id)}>Timeline</a>
        <DetailsButton details={details} />
        <Menu label="Session actions">
          <a href={href("timeline", conversation.id)}>Timeline</a>
          {!details && <button type="button" onClick={() => toggleDetails(false)}>Show details</button>}
          <button type="button" onClick={() => attempt(palyra.changeSession(conversation.id, { kept: !kept }))}>{kept ? "Unpin" : "Pin"}</button>
          <button type="button" onClick={() => attempt(exported(conversation.id))}>Export</button>
          <button type="button" onClick={() => attempt(archive(conversation.id))}>Archive</button>
          <button type="button" class="no" onClick={() => setDeleting(true)}>Delete…</button>
        </Menu>
      </div>
      <Problem text={error} />
      {deleting && <DeleteDialog which={[{ session_id: conversation.id, title }]} onClose={() => setDeleting(false)} />}
    </header>
  );
}

const WAITING = "Waiting for model";
const STATES = { accepted: "Queued", in_progress: "Working", waiting: "Needs approval", done: "Done", failed: "Failed", stopped: "Stopped" } as const;
const TONES = { accepted: "", in_progress: "info", waiting: "warn", done: "good", failed: "bad", stopped: "warn" } as const;

/** The state of the run, and a clock while it goes on. */
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
    if (run) spoken.value = run.wait ? WAITING : STATES[run.state];
  }, [run?.state, run?.runId]);
  if (!run) return null;
  return (
    <div class="meter">
      <Badge tone={run.wait ? "warn" : TONES[run.state]}>{run.wait ? WAITING : STATES[run.state]}</Badge>
      {working && <span>{lasting(Math.max(0, Math.max(now, run.startedMs) - run.startedMs))}</span>}
      {working && run.askedMs > 0 && <span role="timer">{run.read === undefined ? "Time to first token" : `Reading the prompt: ${run.read} %`} {lasting(Math.max(0, now - run.askedMs))}</span>}
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
        {!conversation.ready.value && !openError.value && <Skeleton label="Loading…" lines={7} />}
      </>}
      after={<><WaitCard conversation={conversation} /><Working conversation={conversation} /></>} />
  );
}

/** Something moves as long as something happens, also before the first word. */
function Working({ conversation }: { conversation: Conversation }): VNode | null {
  const last = conversation.items.value.at(-1);
  if (conversation.run.value?.state !== "in_progress" || (last?.kind === "reply" && last.live)) return null;
  return <p class="working" aria-hidden="true"><i /><i /><i /></p>;
}
