// The time axis of a session: work in true proportion; long waits and idle time between runs are folded to a narrow gap.
import { endOf, type RunSpans } from "../ui/waterfall/spans";

interface Stretch {
  from: number;
  to: number;
  /** Where it begins on the axis, in milliseconds of axis. */
  at: number;
}

const LEAST_IDLE_MS = 2_000;
const GAP_SHARE = 0.03;
const MOST_GAPS_SHARE = 0.3;

/** When somebody worked, in the order of time. The end of a run counts too: what waits now ends there. */
function worked(runs: readonly RunSpans[], now: number): [number, number][] {
  const found: [number, number][] = [];
  for (const run of runs) {
    found.push([run.start, run.start + 1]);
    for (const span of run.spans) if (span.tone !== "wait") found.push([span.start, Math.max(span.start + 1, Math.min(span.end, now))]);
    const end = endOf(run, now);
    found.push([end - 1, end]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}

export class Axis {
  readonly stretches: readonly Stretch[];
  readonly length: number;

  constructor(runs: readonly RunSpans[], now: number) {
    const busy: { from: number; to: number }[] = [];
    for (const [from, to] of worked(runs, now)) {
      const last = busy.at(-1);
      if (last && from - last.to < LEAST_IDLE_MS) last.to = Math.max(last.to, to);
      else busy.push({ from, to });
    }
    const work = busy.reduce((sum, each) => sum + each.to - each.from, 0);
    const gap = busy.length > 1 ? Math.min(work * GAP_SHARE, (work * MOST_GAPS_SHARE) / (busy.length - 1)) : 0;
    let at = 0;
    this.stretches = busy.map((each) => {
      const made = { ...each, at };
      at += each.to - each.from + gap;
      return made;
    });
    this.length = Math.max(1, at - gap);
  }

  get from(): number {
    return this.stretches[0]?.from ?? 0;
  }

  get to(): number {
    return this.stretches.at(-1)?.to ?? 1;
  }

  /** Where a time lies, from 0 to 1. */
  place(ms: number): number {
    const found = this.stretches[this.find((each) => each.from <= ms)];
    if (!found) return 0;
    return Math.min(1, (found.at + Math.min(ms, found.to) - found.from) / this.length);
  }

  /** The time at a place. */
  time(place: number): number {
    const at = Math.min(1, Math.max(0, place)) * this.length;
    const found = this.stretches[this.find((each) => each.at <= at)];
    return found ? Math.min(found.to, found.from + at - found.at) : 0;
  }

  private find(holds: (each: Stretch) => boolean): number {
    let low = 0;
    let high = this.stretches.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(this.stretches[middle]!)) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}
