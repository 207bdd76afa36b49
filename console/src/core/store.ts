// What every page shares: the lists of sessions and of open questions, and the session that is open. Kept up to date by the streams.
import { computed, effect, signal } from "@preact/signals";
import type { Approval, Entry, Session, Status } from "../types";
import { access, oneAtATime } from "./api";
import * as palyra from "./verbs";
import { Conversation } from "./conversation";
import { AllSessions, OneSession, type Topic } from "./live";
import { go } from "./router";

export const sessions = signal<Session[]>([]);
export const moreSessions = signal<string | null>(null);
export const pending = signal<Approval[]>([]);
export const status = signal<Status | undefined>(undefined);

/** Providers or models were changed here: everybody who names one sees it. */
export async function refreshStatus(): Promise<void> {
  status.value = await palyra.status();
}
export const listed = signal(false);
/** Told of every entry of every session, for pages that show a list of their own. */
export const lastEntry = signal<Entry | undefined>(undefined);

/** Told of every change of what no session tells of, for pages that show it; without a topic, anything may have changed. */
export const lastChange = signal<{ what?: readonly Topic[] }>({});

const PAGE = 60;
const SOON_MS = 120;
const FIRST_ENTRIES = 500;
const SHARED_ENTRIES = 300;
const CHANGES_LISTS = /^(run|session|approval)\.|^input\.received$/;

let timer = 0;

/** Both lists anew. */
export const refreshLists = oneAtATime(async () => {
  const [page, asked] = await Promise.all([palyra.listSessions({ limit: PAGE }), palyra.listApprovals()]);
  sessions.value = page.sessions;
  moreSessions.value = page.next;
  pending.value = asked.approvals;
  listed.value = true;
});

function soon(): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => void refreshLists().catch(() => undefined), SOON_MS);
}

export async function showMoreSessions(): Promise<void> {
  if (!moreSessions.value) return;
  const page = await palyra.listSessions({ limit: PAGE, before: moreSessions.value });
  sessions.value = [...sessions.value, ...page.sessions];
  moreSessions.value = page.next;
}

const all = new AllSessions(
  (entry) => {
    lastEntry.value = entry;
    if (CHANGES_LISTS.test(entry.kind)) soon();
  },
  async () => {
    await refreshLists();
    status.value = await palyra.status();
  },
  (what) => (lastChange.value = { what }),
);

// Tabs share one login: what one of them finds out holds for all.
const tabs = new BroadcastChannel("palyra.access");
tabs.onmessage = (message: MessageEvent<"in" | "out">) => {
  if (message.data !== access.peek()) void palyra.status().then((found) => (status.value = found), () => undefined);
};
effect(() => {
  if (access.value !== "unknown") tabs.postMessage(access.value);
});

let started = false;

/** Ask who we are, and begin to listen once we are somebody. */
export function begin(): void {
  void palyra.status().then((found) => {
    all.from(found.entries);
    status.value = found;
  }).catch(() => {
    // Not there yet, or not logged in: both are shown, and the first is tried again.
    if (access.peek() === "unknown") setTimeout(begin, 1000);
  });
}

effect(() => {
  if (access.value !== "in" || started) return;
  started = true;
  all.start();
  void refreshLists().catch(() => undefined);
});

// --- the open session -----------------------------------------------------------------------------------------------------

export const open = signal<Conversation | undefined>(undefined);
export const openError = signal("");
let stream: OneSession | undefined;
let whenListening: (() => void)[] = [];
const LONGEST_WAIT_MS = 1500;

/** Open a session and wait, not for ever, until its stream is: whoever then says something hears the answer from its first word. */
export async function listen(sessionId: string): Promise<void> {
  go("chat", sessionId);
  const listening = new Promise<void>((done) => {
    whenListening.push(done);
    setTimeout(done, LONGEST_WAIT_MS);
  });
  await show(sessionId);
  await listening;
}

export function close(): void {
  stream?.close();
  stream = undefined;
  open.value = undefined;
  openError.value = "";
}

export async function show(sessionId: string): Promise<void> {
  if (open.peek()?.id === sessionId) return;
  close();
  const conversation = new Conversation(sessionId);
  open.value = conversation;
  await tryShow(conversation);
}

async function tryShow(conversation: Conversation): Promise<void> {
  try {
    const session = await palyra.getSession(conversation.id);
    const after = Math.max(0, (session.head_seq ?? 0) - FIRST_ENTRIES);
    const page = await palyra.listEntries(conversation.id, { after, limit: FIRST_ENTRIES });
    if (open.peek() !== conversation) return;
    conversation.session.value = session;
    conversation.load(page.entries);
    openError.value = "";
    // Without it the branch is still there; somebody who follows the link to the other session sees all of it.
    void showShared(conversation, session).catch(() => undefined);
    listenTo(conversation);
  } catch (error) {
    if (open.peek() !== conversation) return;
    openError.value = error instanceof Error ? error.message : String(error);
    if (!("status" in (error as object)) || (error as { status: number }).status === 0 || access.peek() !== "in")
      setTimeout(() => open.peek() === conversation && void tryShow(conversation), 1000);
  }
}

function listenTo(conversation: Conversation): void {
  stream?.close();
  stream = new OneSession(conversation.id, {
    cursor: () => conversation.cursor,
    entry: (entry) => conversation.entry(entry),
    live: (event) => conversation.live(event),
    resumed: () => {
      conversation.resumed();
      for (const done of whenListening) done();
      whenListening = [];
    },
  });
}

/** Entries before those that are there. */
export async function showEarlier(conversation: Conversation): Promise<void> {
  const from = conversation.from.peek();
  const after = Math.max(0, from - 1 - FIRST_ENTRIES);
  const page = await palyra.listEntries(conversation.id, { after, limit: from - 1 - after });
  if (open.peek() === conversation) conversation.prepend(page.entries);
}

/** What a branch shares with the session that it continues: its end, as it is read before the branch. */
async function showShared(conversation: Conversation, session: Session): Promise<void> {
  if (!session.parent_id || !session.parent_seq) return;
  const upto = session.parent_seq;
  const after = Math.max(0, upto - SHARED_ENTRIES);
  const page = await palyra.listEntries(session.parent_id, { after, limit: upto - after });
  const shared = new Conversation(session.parent_id);
  shared.load(page.entries);
  conversation.before.value = shared;
}

// The row of a session says its new title at once.
export const openTitle = computed(() => {
  const conversation = open.value;
  if (!conversation) return "";
  const row = sessions.value.find((each) => each.session_id === conversation.id);
  return row?.title || conversation.session.value?.title || "";
});
