// What an entry led to, read off the entries around it. What led to it is asked of the daemon.
import type { Entry, ModelReplied } from "../types";

function callOf(entry: Entry): string {
  return (entry.event as { call_id?: string }).call_id ?? "";
}

/** `near`: the entries around it, in order. */
export function ledTo(entry: Entry, near: readonly Entry[]): Entry[] {
  const after = near.filter((each) => each.run_id && each.run_id === entry.run_id && each.seq > entry.seq);
  const call = callOf(entry);
  const next = (...kinds: string[]) => after.find((each) => kinds.some((kind) => each.kind.startsWith(kind)));
  const only = (...found: (Entry | undefined)[]) => found.filter((each): each is Entry => !!each);
  if (call) {
    // An undo may come from outside of any run.
    const later = near.find((each) => callOf(each) === call && each.seq > entry.seq);
    return only(later, entry.kind === "tool.finished" ? next("input.assembled", "model.") : undefined);
  }
  switch (entry.kind) {
    case "model.replied": {
      const calls = new Set(((entry.event as ModelReplied).calls ?? []).map(({ id }) => id));
      const proposed = after.filter((each) => each.kind === "tool.proposed" && calls.has(callOf(each)));
      return proposed.length ? proposed : only(next("run.", "model."));
    }
    case "input.assembled":
      return only(next("model."));
    case "input.received":
      return only(next("run.started"), next("input.assembled"));
    case "run.completed":
    case "run.failed":
    case "run.cancelled":
      return [];
    default:
      return only(after[0]);
  }
}
