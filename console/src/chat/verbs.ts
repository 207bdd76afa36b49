// What a person can do with a session, each one call to the daemon.
import * as palyra from "../core/verbs";
import { type Conversation, ended } from "../core/conversation";
import { go } from "../core/router";
import { refreshLists } from "../core/store";
import type { Entry, EntryPage, Session, Submission, Submitted } from "../types";

export async function create(): Promise<Session> {
  return palyra.resolveSession();
}

export async function submit(sessionId: string, given: Submission): Promise<Submitted> {
  return palyra.submit(sessionId, given);
}

export async function stop(conversation: Conversation): Promise<void> {
  const run = conversation.run.peek();
  if (run && !ended(run)) await palyra.cancel(run.runId);
}

export async function retry(conversation: Conversation): Promise<void> {
  const last = conversation.items.peek().findLast((item) => item.kind === "user" && !item.gone);
  if (last?.kind !== "user") return;
  const attachments = (last.event.attachments ?? []).map(({ artifact, name }) => ({ artifact, ...(name ? { name } : {}) }));
  await submit(conversation.id, { text: last.event.text, attachments });
}

export async function branch(sessionId: string, at?: number): Promise<Session> {
  const made = await palyra.branchSession(sessionId, at === undefined ? {} : { at });
  await refreshLists().catch(() => undefined);
  return made;
}

export async function rename(sessionId: string, title: string): Promise<void> {
  await palyra.changeSession(sessionId, { title });
}

export async function archive(sessionId: string): Promise<void> {
  await palyra.changeSession(sessionId, { archived: true });
  await refreshLists();
  go("chat");
}

export async function exported(sessionId: string): Promise<void> {
  const entries: Entry[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: EntryPage = await palyra.listEntries(sessionId, { after, limit: 500 });
    entries.push(...page.entries);
    after = page.next;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(entries, null, 1)], { type: "application/json" }));
  link.download = `palyra-${sessionId}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Whether it was one of the commands; what is not is an ordinary message. */
export async function command(line: string, conversation: Conversation | undefined): Promise<boolean> {
  const [name = "", ...rest] = line.trim().split(/\s+/);
  const words = rest.join(" ");
  if (name === "/new") return go("chat"), true;
  if (!conversation) return false;
  switch (name) {
    case "/stop": await stop(conversation); return true;
    case "/undo": await palyra.undo(conversation.id); return true;
    case "/retry": await retry(conversation); return true;
    case "/title": await rename(conversation.id, words); return true;
    case "/branch": go("chat", (await branch(conversation.id)).session_id); return true;
    case "/compact": await palyra.compactSession(conversation.id); return true;
    case "/reset": await palyra.resetSession(conversation.id); return true;
    case "/archive": await archive(conversation.id); return true;
    case "/export": await exported(conversation.id); return true;
    default: return false;
  }
}
