// The files of one call of fs.patch, so that some can be left out: the call then runs with edited arguments.
import type { Arguments } from "./arguments";

interface Section { path: string; text: string }

const unquoted = (name: string): string => name.replace(/^"(.*)"$/, "$1");

function pathOf(old: string, fresh: string): string {
  const [a, b] = [old, fresh].map((each) => unquoted(each.slice(4).split("\t")[0]!.trim())) as [string, string];
  if (b === "/dev/null") return a.replace(/^a\//, "");
  return a === "/dev/null" || a.startsWith("a/") ? b.replace(/^b\//, "") : b;
}

/** A diff cut where a file begins. What stands before the first header, and git's lines above a file, go with the file below. */
export function sectionsOf(diff: string): Section[] {
  const lines = diff.split("\n");
  const found: Section[] = [];
  let begin = 0;
  let above: number | undefined;
  const close = (end: number) => { const last = found.at(-1); if (last) last.text = lines.slice(begin, end).join("\n"); };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const next = lines[at + 1];
    if (line.startsWith("diff --git ")) above = at;
    else if (line.startsWith("--- ") && next?.startsWith("+++ ")) {
      const first = above ?? (found.length ? at : 0);
      close(first);
      begin = first;
      above = undefined;
      found.push({ path: pathOf(line, next), text: "" });
      at++;
    }
  }
  close(lines.length);
  return found;
}

/** The paths that a call changes, if it changes several and any of them can be left out. */
export function filesOfCall(tool: string, given: Arguments | undefined): string[] {
  if (tool !== "fs.patch" || !given) return [];
  // Files that git names without a line of content cannot be told apart here: such a call is answered whole.
  const git = typeof given.diff === "string" ? given.diff.match(/^diff --git /gm)?.length ?? 0 : 0;
  if (git && git !== sectionsOf(given.diff as string).length) return [];
  const paths = typeof given.diff === "string" && given.diff
    ? sectionsOf(given.diff).map((each) => each.path)
    : Array.isArray(given.edits) ? (given.edits as { path?: unknown }[]).map((each) => String(each.path ?? "")) : [];
  const once = [...new Set(paths)];
  return once.length > 1 ? once : [];
}

/** The same call without these files. */
export function leftOut(given: Arguments, without: ReadonlySet<string>): Arguments {
  if (typeof given.diff === "string" && given.diff) {
    const kept = sectionsOf(given.diff).filter((each) => !without.has(each.path)).map((each) => each.text.replace(/\n$/, ""));
    return { ...given, diff: kept.length ? kept.join("\n") + "\n" : "" };
  }
  return { ...given, edits: (given.edits as { path?: unknown }[]).filter((each) => !without.has(String(each.path ?? ""))) };
}
