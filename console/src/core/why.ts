// Why an entry stands on the tape: what led to it, and what it led to, read off the entries of its run.
import type { Entry, ModelReplied } from "../types";

export interface Why {
  causes: Entry[];
  effects: Entry[];
}

function callOf(entry: Entry): string {
  return (entry.event as { call_id?: string }).call_id ?? "";
}

/** `near`: the entries around it, in order. */
export function why(entry: Entry, near: readonly Entry[]): Why {
  const run = near.filter((each) => each.run_id && each.run_id === entry.run_id);
  const before = run.filter((each) => each.seq < entry.seq);
  const after = run.filter((each) => each.seq > entry.seq);
  const call = callOf(entry);
  const last = (...kinds: string[]) => before.findLast((each) => kinds.some((kind) => each.kind.startsWith(kind)));
  const next = (...kinds: string[]) => after.find((each) => kinds.some((kind) => each.kind.startsWith(kind)));
  const only = (...found: (Entry | undefined)[]) => found.filter((each): each is Entry => !!each);
  if (call) {
    // An undo may come from outside of any run.
    const same = near.filter((each) => callOf(each) === call);
    const earlier = same.findLast((each) => each.seq < entry.seq);
    const later = same.find((each) => each.seq > entry.seq);
    const asked = before.findLast((each) => each.kind === "model.replied" && (each.event as ModelReplied).calls?.some(({ id }) => id === call));
    const seen = entry.kind === "tool.finished" ? next("input.assembled", "model.") : undefined;
    return { causes: only(earlier ?? asked), effects: only(later, seen) };
  }
  switch (entry.kind) {
    case "model.replied": {
      const calls = new Set(((entry.event as ModelReplied).calls ?? []).map(({ id }) => id));
      const proposed = after.filter((each) => each.kind === "tool.proposed" && calls.has(callOf(each)));
      return { causes: only(last("input.assembled"), last("route.planned")), effects: proposed.length ? proposed : only(next("run.", "model.")) };
    }
    case "input.assembled": {
      const since = before.findLast((each) => each.kind === "model.replied")?.seq ?? 0;
      const read = before.filter((each) => each.seq > since && (each.kind === "input.received" || each.kind === "tool.finished"));
      return { causes: read.length ? read : only(last("input.received")), effects: only(next("model.")) };
    }
    case "input.received":
      return { causes: only(last("run.accepted")), effects: only(next("run.started"), next("input.assembled")) };
    case "run.completed":
    case "run.failed":
    case "run.cancelled":
      return { causes: only(last("model.", "tool.finished")), effects: [] };
    case "run.resumed":
      return { causes: only(before.at(-1)), effects: only(after[0]) };
    default:
      return { causes: only(before.at(-1)), effects: only(after[0]) };
  }
}
