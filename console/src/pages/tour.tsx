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
    await rename(made.session_id, "A first tour");
  });
  return (
    <div class="page tour">
      <PageHead title="A first tour" />
      <p>Five short steps with Palyra, done for real in <code>{status.value?.workspace || "your folder"}</code>. They take two minutes, and what they change is one small file.</p>
      <Problem text={error} />
      {conversation ? <Steps conversation={conversation} note={note!} remember={remember} /> : <button type="button" class="main" disabled={busy} onClick={() => void begin()}>Begin</button>}
      {note && <p><button type="button" class="quiet small" disabled={busy} onClick={() => void begin()}>Begin anew</button></p>}
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
    if (!found.ok) throw new Error(found.bad ? `Entry ${found.bad.position} is not what it was: ${found.bad.problem}` : "The journal is not whole: run `palyra journal verify`.");
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
    <><p>Ask it something. It may look into the folder without a question to you; it reads, and changes nothing.</p>
      <button type="button" class="main" disabled={busy || working} onClick={() => void say(ASK)}>Ask “{ASK}”</button></>,
    <><p>Let it change something. It shows what would change and waits for your yes: below, in the approvals, or on your phone.</p>
      <button type="button" class="main" disabled={busy || working} onClick={() => void say(WRITE)}>Ask it to write a file</button></>,
    <><p>Take it back. The file is as it was before; that it was there, and that you took it back, stays on the tape.</p>
      <button type="button" class="main" disabled={busy || working || !wrote} onClick={() => void undo()}>Undo it</button></>,
    <><p>Pull the plug. Ask for the file once more, and while the question is open, end Palyra as a power cut would. It starts again by itself, and the question is still there: say yes.</p>
      {!asked ? <button type="button" class="main" disabled={busy || working} onClick={() => void say(AGAIN)}>Ask once more</button>
        : note.restarted === undefined ? <button type="button" class="no" disabled={busy || !waits} onClick={() => void plug()}>Pull the plug now</button>
        : <p role="status">{!online.value || !pulled ? "It is gone. It comes back in a moment…" : "It is back, and goes on where it was. Answer its question below."}</p>}</>,
    <><p>Check the journal. Every entry is chained to the one before it: whoever changed one would have to change them all.</p>
      <button type="button" class="main" disabled={busy} onClick={() => void verify()}>Check every entry</button></>,
  ];
  const newest = items.slice(Math.max(0, items.findLastIndex((item) => item.kind === "user")));
  const titles = ["Ask", "Say yes to a change", "Undo it", "Pull the plug", "Check the journal"];
  return (
    <>
      <ol class="tour-steps">
        {titles.map((title, number) => (
          <li class={number === at ? "current" : ""} aria-current={number === at ? "step" : undefined}>
            <h2>{number + 1}. {title} {done[number] && <Badge tone="good">done</Badge>}</h2>
            {number === at && bodies[number]}
            {number === 4 && done[4] && <p>{count(entries)} entries were checked; every one is as it was written.</p>}
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
      <h2 id="next">That was all of it</h2>
      <p>{demo ? "Until now you have talked to the built-in demo model, which follows simple rules. Add a provider's key for a real one; the key is kept in the vault, and no model ever sees it." : "Palyra works with the model that is set up."}</p>
      <div class="row"><a class="button main" href={href("settings")}>{demo ? "Add a provider's key" : "Look at the settings"}</a><a class="button" href={href("chat")}>Start working</a></div>
    </section>
  );
}
