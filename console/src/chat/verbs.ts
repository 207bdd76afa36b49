// What a person can do with a session, each one call to the daemon.
import { signal } from "@preact/signals";
import { saveJson } from "../ui/stored";
import * as palyra from "../core/verbs";
import { type Conversation, ended } from "../core/conversation";
import { go } from "../core/router";
import { refreshLists } from "../core/store";
import { COMMANDS, unknownCommand } from "./composing";
import { chosenFor } from "./model";
import type { Entry, EntryPage, Session, Submission, Submitted } from "../types";

/** The folder of the next session, where somebody chose one. */
export const folder = signal("");

export async function create(): Promise<Session> {
  const wanted = folder.peek().trim();
  const made = await palyra.resolveSession(wanted ? { workspace: wanted } : {});
  folder.value = "";
  await chosenFor(made.session_id);
  return made;
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

/** Ask a run's message again with another model, in a session of its own that continues with that model. The id of the new run. */
export async function askAgain(runId: string, model: string): Promise<string> {
  const forked = await palyra.forkRun(runId, { model });
  await palyra.changeSession(forked.session_id, { model });
  await refreshLists().catch(() => undefined);
  return forked.run_id;
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
  saveJson(`palyra-${sessionId}.json`, entries);
}

/** Run a command. Raise an error that says what is wrong with it; return false if the text is an ordinary message. */
export async function command(line: string, conversation: Conversation | undefined): Promise<boolean> {
  const unknown = unknownCommand(line);
  if (unknown) throw new Error(`Unknown command ${unknown}. Type / to see the commands, or put a space before it to send it as text.`);
  const [name = "", ...rest] = line.trim().split(/\s+/);
  const words = rest.join(" ");
  if (!COMMANDS.some(([each]) => each === name)) return false;
  if (name === "/new") return go("chat"), true;
  if (!conversation) throw new Error(`${name} needs an open session. Send a message first.`);
  switch (name) {
    case "/model": conversation.session.value = await palyra.changeSession(conversation.id, { model: words }); return true;
    case "/pin": await palyra.changeSession(conversation.id, { kept: true }); return true;
    case "/timeline": go("timeline", conversation.id); return true;
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
