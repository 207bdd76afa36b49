// What is being written: a draft for each session, the files that go with it, and how it joins a run that is under way.
import { effect, signal } from "@preact/signals";
import { onForget, recall, remember } from "../core/remembered";
import type { StoredFile, Submission } from "../types";

export interface Draft {
  text: string;
  files: StoredFile[];
}
/** A message that is edited to be said again in a branch: `at` is the last entry the branch shares. */
export const editing = signal<{ sessionId: string; at: number; text: string } | undefined>(undefined);
export const mode = signal<NonNullable<Submission["mode"]>>("followup");
/** Counts what was sent from here: whoever says something wants to see it, wherever they were looking. */
export const sent = signal(0);
export const drafts = signal<Record<string, Draft>>(recall("drafts", {}));

const KEPT_DRAFTS = 20;
const LONGEST_DRAFT = 50_000;
const KEEP_MS = 250;
let keeping = 0;

/** Store the drafts now; what was sent or emptied is not among them. */
function keepDrafts(): void {
  clearTimeout(keeping);
  const kept = Object.entries(drafts.peek()).filter(([, each]) => (each.text || each.files.length) && each.text.length < LONGEST_DRAFT).slice(-KEPT_DRAFTS);
  remember("drafts", kept.length ? Object.fromEntries(kept) : undefined);
}
// A draft survives a reload, but not a log-out.
effect(() => {
  void drafts.value;
  clearTimeout(keeping);
  keeping = window.setTimeout(keepDrafts, KEEP_MS);
});
addEventListener("pagehide", keepDrafts);
onForget(() => (drafts.value = {}));

/** The composer of a session that was just begun takes over where the first message was written. */
export const goesOn = { here: false };

/** Something said by a click: the composer that is open sends it. */
export const asked = signal("");

export function say(text: string): void {
  asked.value = text;
}

export const NOTHING: Draft = { text: "", files: [] };

export function change(key: string, more: Partial<Draft>): void {
  drafts.value = { ...drafts.value, [key]: { ...NOTHING, ...drafts.value[key], ...more } };
}

export const REFERENCES: readonly (readonly [string, string])[] = [
  ["@file:", "A file in the workspace"],
  ["@folder:", "The text files of a folder"],
  ["@diff", "Unstaged changes"],
  ["@staged", "Staged changes"],
  ["@url:", "A web page"],
  ["@memory:", "Something Palyra remembers"],
  ["@run:", "An earlier run"],
];

export const COMMANDS: readonly (readonly [string, string])[] = [
  ["/new", "Start a new session"],
  ["/stop", "Stop the run"],
  ["/undo", "Undo the newest file change"],
  ["/retry", "Send the last message again"],
  ["/model", "Change the model: /model NAME"],
  ["/title", "Rename this session: /title NAME"],
  ["/pin", "Pin this session"],
  ["/branch", "Continue in a copy of this session"],
  ["/compact", "Summarise older messages"],
  ["/reset", "Clear the context; nothing is deleted"],
  ["/archive", "Archive this session"],
  ["/export", "Save this session as a file"],
  ["/timeline", "Open the timeline"],
  ["/help", "Show these commands"],
];

/** A command that does not exist. Behind a space, or with a slash in it as in a path, it is an ordinary message. */
export function unknownCommand(text: string): string | undefined {
  const name = /^(\/[A-Za-z][\w-]*)(?:\s|$)/.exec(text)?.[1];
  return name && !COMMANDS.some(([each]) => each === name) ? name : undefined;
}

/** What can stand at the end of a draft: its name, and what it is. */
export type Offer = readonly [string, string];

const PATH = /(?:^|\s)@(file|folder):(?:"([^"]*)|([^"\s]*))$/;

/** The beginning of a path that is being typed behind `@file:` or `@folder:`. */
export function begunPath(text: string): { kind: "file" | "folder"; prefix: string } | undefined {
  const found = PATH.exec(text);
  return found ? { kind: found[1] as "file" | "folder", prefix: found[2] ?? found[3] ?? "" } : undefined;
}

/** Paths as references; one with spaces stands in quotes, which stay open where it can go on. */
export function pathOffers(kind: "file" | "folder", paths: readonly string[], prefix: string): Offer[] {
  return paths
    .filter((path) => (kind === "file" || path.endsWith("/")) && path !== prefix)
    .map((path) => {
      const folder = path.endsWith("/");
      const quoted = /[\s"'\\]/.test(path) ? `"${path.replace(/["\\]/g, "\\$&")}${folder ? "" : '"'}` : path;
      return [`@${kind}:${quoted}${folder ? "" : " "}`, folder ? "Folder" : ""] as const;
    });
}

export function completed(text: string, offer: string): string {
  if (offer.startsWith("/")) return offer === "/title" || offer === "/model" ? `${offer} ` : offer;
  return text.replace(/@\w*(?::(?:"[^"]*|[^"\s]*))?$/, () => offer);
}
