// The first run: five steps that are really done, in a session of their own, with whatever model is there. What was done is read off the tape,
// so that a page that is closed in the middle goes on where it was.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Drawn } from "../chat/items";
import { create, rename, submit } from "../chat/verbs";
import { online } from "../core/api";
import * as palyra from "../core/verbs";
import { type Conversation, ended, type Item, type ToolItem } from "../core/conversation";
import { href } from "../core/router";
import { open, show, status } from "../core/store";
import { count } from "../core/words";
import { useAttempt } from "../ui/page";
import { Badge, PageHead, Problem } from "../ui/parts";

const KEPT = "palyra.tour";
const ASK = "What is in this folder?";
const WRITE = "Write a file palyra-tour.txt that says: I was here";
const AGAIN = "Write a file palyra-tour.txt that says: I came back";

const TITLES = ["Ask", "Approve a change", "Undo it", "Survive a crash", "Verify the journal"] as const;
const ABOUT = [
  "A question about the folder, answered without approval.",
  "A file is written after you have seen what it will say.",
  "The file is as before; the journal keeps both.",
  "Palyra is killed while it waits for you, and goes on where it was.",
  "Every entry is checked against the one before it.",
] as const;

interface Kept {
  session: string;
  restarted?: number;
  verified?: number;
}

function kept(): Kept | undefined {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "") as Kept;
  } catch {
    return undefined;
  }
}

function keep(more: Partial<Kept>): void {
  localStorage.setItem(KEPT, JSON.stringify({ ...kept(), ...more }));
}

/** Steps of the tape by the message that asked for them. */
function after(items: readonly Item[], text: string): Item[] {
  const at = items.findIndex((item) => item.kind === "user" && item.event.text === text);
  return at < 0 ? [] : items.slice(at);
}

function steps(items: readonly Item[]): ToolItem[] {
  return items.filter((item): item is ToolItem => item.kind === "tool" && item.proposed.effect === "reversible");
}

/** What of the tour is done, as the tape has it. */
function progress(items: readonly Item[], note: Kept): boolean[] {
  const asked = after(items, ASK);
  const wrote = steps(after(items, WRITE)).filter((item) => item.finished?.outcome === "ok");
  const again = steps(after(items, AGAIN));
  const answered = asked.some((item) => item.kind === "reply" && item.event);
  return [answered, wrote.length > 0, wrote.some((item) => item.undone), !!note.restarted && again.some((item) => item.finished?.outcome === "ok"), !!note.verified];
}

export function TourPage(): VNode {
  const [note, setNote] = useState(kept());
  const { error, busy, attempt } = useAttempt();
  const session = note?.session;
  useEffect(() => void (session && show(session)), [session]);
  const conversation = open.value?.id === session ? open.value : undefined;
  const remember = (more: Partial<Kept>) => {
    keep(more);
    setNote(kept());
  };
  const begin = () => attempt(async () => {
    const made = await create();
    localStorage.removeItem(KEPT);
    remember({ session: made.session_id });
    await rename(made.session_id, "First tour");
  });
  return (
    <div class={status.value || !online.value ? "page tour" : "page tour unready"}>
      <PageHead title="First tour" />
      <p>Five short steps, done for real in <code>{status.value?.workspace || "your folder"}</code>. They take two minutes and change one small file.</p>
      <Problem text={error} />
      {conversation ? <Steps conversation={conversation} note={note!} remember={remember} /> : (
        <>
          <ol class="tour-steps">{TITLES.map((title, number) => <li key={title}><h2>{number + 1}. {title}</h2><p>{ABOUT[number]}</p></li>)}</ol>
          <button type="button" class="main" disabled={busy} onClick={() => void begin()}>Start tour</button>
        </>
      )}
      {note && <p><button type="button" class="quiet small" disabled={busy} onClick={() => void begin()}>Start over</button></p>}
    </div>
  );
}

function Steps({ conversation, note, remember }: { conversation: Conversation; note: Kept; remember: (more: Partial<Kept>) => void }): VNode {
  const items = conversation.items.value;
  // An undo changes an item and not the list.
  for (const item of items) item.tick.value;
  const done = progress(items, note);
  const at = done.indexOf(false);
  const working = !!conversation.run.value && !ended(conversation.run.value);
  const { error, busy, attempt } = useAttempt();
  const [entries, setEntries] = useState(note.verified ?? 0);
  const say = (text: string) => attempt(() => submit(conversation.id, { text }));
  const verify = () => attempt(async () => {
    const found = await palyra.verifyJournal();
    if (!found.ok) throw new Error(found.bad ? `Entry ${found.bad.position} was changed: ${found.bad.problem}` : "The journal is damaged. Run `palyra journal verify`.");
    setEntries(found.entries);
    remember({ verified: found.entries });
  });
  const plug = () => attempt(async () => {
    const before = (await palyra.status()).started_ms;
    await palyra.restart({ started_ms: before });
    remember({ restarted: before });
  });
  const wrote = steps(after(items, WRITE)).find((item) => item.finished?.outcome === "ok");
  const undo = () => attempt(() => palyra.undo(conversation.id, { call_id: wrote!.callId }));
  const pulled = note.restarted !== undefined && status.value?.started_ms !== note.restarted;
  const waits = conversation.run.value?.state === "waiting";
  const asked = after(items, AGAIN).length > 0;
  const bodies: VNode[] = [
    <><p>Ask a question. Palyra can read the folder without approval; reading changes nothing.</p>
      <button type="button" class="main" disabled={busy || working} onClick={() => void say(ASK)}>Ask “{ASK}”</button></>,
    <><p>Let Palyra change something. It shows the diff and waits for your approval: below, in Approvals, or on your phone.</p>
      <button type="button" class="main" disabled={busy || working} onClick={() => void say(WRITE)}>Ask for a file</button></>,
    <><p>Undo the change. The file is as before; the journal keeps both the change and the undo.</p>
      <button type="button" class="main" disabled={busy || working || !wrote} onClick={() => void undo()}>Undo</button></>,
    <><p>Ask for the file again, then kill Palyra while the approval is open, like a power cut. It restarts by itself and the approval is still there: approve it.</p>
      {!asked ? <button type="button" class="main" disabled={busy || working} onClick={() => void say(AGAIN)}>Ask again</button>
        : note.restarted === undefined ? <button type="button" class="no" disabled={busy || !waits} onClick={() => void plug()}>Kill Palyra now</button>
        : <p role="status">{!online.value || !pulled ? "Palyra is down. It restarts in a moment…" : "Palyra is back and continues where it was. Answer the approval below."}</p>}</>,
    <><p>Verify the journal. Every entry is chained to the one before it, so any change is detected.</p>
      <button type="button" class="main" disabled={busy} onClick={() => void verify()}>Verify journal</button></>,
  ];
  const newest = items.slice(Math.max(0, items.findLastIndex((item) => item.kind === "user")));
  return (
    <>
      <ol class="tour-steps">
        {TITLES.map((title, number) => (
          <li class={number === at ? "current" : ""} aria-current={number === at ? "step" : undefined}>
            <h2>{number + 1}. {title} {done[number] && <Badge tone="good">Done</Badge>}</h2>
            {number === at && bodies[number]}
            {number === 4 && done[4] && <p>{count(entries)} entries verified: the chain is intact.</p>}
          </li>
        ))}
      </ol>
      <Problem text={error} />
      {at < 0 && <Next />}
      {items.length > 0 && <section class="tour-tape" aria-label="What happened">{newest.map((item) => <Drawn key={item.key} item={item} conversation={conversation} />)}</section>}
    </>
  );
}

function Next(): VNode {
  const demo = status.value?.models.find((each) => each.default)?.provider === "demo";
  return (
    <section aria-labelledby="next">
      <h2 id="next">Tour complete</h2>
      <p>{demo ? "You used the built-in demo model, which follows simple rules. Add a provider key for a real one; the vault keeps it, and no model sees it." : "You are ready to work."}</p>
      <div class="row"><a class="button main" href={href("settings")}>{demo ? "Add a model" : "Open settings"}</a><a class="button" href={href("chat")}>Start working</a></div>
    </section>
  );
}
