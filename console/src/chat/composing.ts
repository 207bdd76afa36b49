// What is being written: a draft for each session, the files that go with it, and how it joins a run that is under way.
import { signal } from "@preact/signals";
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
export const drafts = signal<Record<string, Draft>>({});

export const NOTHING: Draft = { text: "", files: [] };

export function change(key: string, more: Partial<Draft>): void {
  drafts.value = { ...drafts.value, [key]: { ...NOTHING, ...drafts.value[key], ...more } };
}

export const REFERENCES: readonly (readonly [string, string])[] = [
  ["@file:", "a file of the workspace"],
  ["@folder:", "the text files of a folder"],
  ["@diff", "changes that are not staged"],
  ["@staged", "changes that are staged"],
  ["@url:", "a web page"],
  ["@memory:", "what is remembered"],
  ["@run:", "an earlier run"],
];

export const COMMANDS: readonly (readonly [string, string])[] = [
  ["/new", "begin a new session"],
  ["/stop", "stop what it is doing"],
  ["/undo", "take back the newest change to files"],
  ["/retry", "say the last message again"],
  ["/title", "give this session a name: /title Holiday plans"],
  ["/branch", "continue in a copy of this session"],
  ["/compact", "condense older messages into a summary"],
  ["/reset", "begin anew in this session; nothing is deleted"],
  ["/archive", "put this session away"],
  ["/export", "save this session as a file"],
  ["/help", "show these commands"],
];

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
      return [`@${kind}:${quoted}${folder ? "" : " "}`, folder ? "a folder" : ""] as const;
    });
}

export function completed(text: string, offer: string): string {
  if (offer.startsWith("/")) return offer === "/title" ? `${offer} ` : offer;
  return text.replace(/@\w*(?::(?:"[^"]*|[^"\s]*))?$/, () => offer);
}
