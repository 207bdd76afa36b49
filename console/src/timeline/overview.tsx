// All runs of a session at a glance, on a canvas, with a window that is dragged, resized and zoomed.
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { theme } from "../core/theme";
import { many } from "../core/words";
import { clock, day } from "../ui/figures";
import type { RunSpans, Tone } from "../ui/waterfall/spans";
import type { Axis } from "./axis";

export interface TimeWindow {
  from: number;
  to: number;
}

const HEIGHT = 64;
const BAR = 5;
const GAP = 2;
const TICKS = 18;
const NEAR = 8;
const LEAST_PART = 0.0005;
const WAIT = 4;
/** From the bottom of a bar to its top. Waiting is a strip below: it would hide all else. */
const STACK: readonly Tone[] = ["model", "tool", "error", "prompt", "message"];
const COLOURS: Record<Tone, string> = { model: "--wf-model", tool: "--wf-tool", wait: "--wf-wait", error: "--wf-error", prompt: "--wf-said", message: "--wf-said" };

const turned = signal(0);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (turned.value += 1));

/** A colour of the theme as a canvas understands it. */
function colour(place: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  place.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function draw(canvas: HTMLCanvasElement, runs: readonly RunSpans[], axis: Axis, now: number): void {
  const width = canvas.clientWidth;
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(HEIGHT * scale);
  const ink = canvas.getContext("2d");
  if (!ink || !width) return;
  ink.scale(scale, scale);
  const columns = Math.max(1, Math.floor(width / (BAR + GAP)));
  const sums = STACK.map(() => new Float64Array(columns));
  const share = axis.length / columns;
  const waits = new Uint8Array(columns + 1);
  for (const run of runs) {
    for (const span of run.spans) {
      const sum = sums[STACK.indexOf(span.tone)] ?? waits;
      const from = axis.place(span.start) * columns;
      const to = Math.max(from, axis.place(Math.min(span.end, now)) * columns);
      const first = Math.min(columns - 1, Math.floor(from));
      const last = Math.min(columns - 1, Math.floor(to));
      for (let at = first; at <= last; at++) sum[at] = sum === waits ? 1 : sum[at]! + Math.max(0.002, Math.min(to, at + 1) - Math.max(from, at)) * share;
    }
  }
  let highest = 0;
  for (let at = 0; at < columns; at++) highest = Math.max(highest, sums.reduce((sum, each) => sum + each[at]!, 0));
  const room = HEIGHT - TICKS;
  const paint = colours(canvas);
  for (let at = 0; at < columns; at++) {
    if (waits[at]) {
      ink.fillStyle = paint.wait;
      ink.fillRect(at * (BAR + GAP), room - WAIT, BAR + GAP, WAIT);
    }
    const whole = sums.reduce((sum, each) => sum + each[at]!, 0);
    if (!whole) continue;
    const height = Math.max(3, Math.sqrt(whole / highest) * (room - 2));
    let bottom = room;
    for (const [which, tone] of STACK.entries()) {
      const part = (sums[which]![at]! / whole) * height;
      if (!part) continue;
      ink.fillStyle = paint[tone];
      ink.fillRect(at * (BAR + GAP), bottom - part, BAR, part);
      bottom -= part;
    }
  }
  ink.fillStyle = colour(canvas.parentElement!, "--line");
  ink.fillRect(0, room, width, 1);
  ink.fillStyle = colour(canvas.parentElement!, "--soft");
  ink.font = "11px system-ui, sans-serif";
  let free = -Infinity;
  let before = "";
  for (const each of axis.stretches) {
    const x = axis.place(each.from) * width;
    if (x < free) continue;
    const date = day(each.from);
    const words = date === before ? clock(each.from, false) : `${date}, ${clock(each.from, false)}`;
    const room = ink.measureText(words).width;
    if (x + room > width) break;
    ink.fillText(words, x, HEIGHT - 4);
    free = x + room + 24;
    before = date;
  }
}

let kept: { look: string; tones: Record<Tone, string> } | undefined;
function colours(canvas: HTMLCanvasElement): Record<Tone, string> {
  const look = `${theme.peek()} ${turned.peek()}`;
  if (kept?.look !== look) kept = { look, tones: Object.fromEntries((Object.keys(COLOURS) as Tone[]).map((tone) => [tone, colour(canvas.parentElement!, COLOURS[tone])])) as Record<Tone, string> };
  return kept.tones;
}

export function Overview({ runs, axis, now, tick, view, onView }: {
  runs: readonly RunSpans[];
  axis: Axis;
  now: number;
  tick: number;
  view: TimeWindow;
  onView: (view: TimeWindow) => void;
}): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const latest = useRef({ axis, view, onView });
  latest.current = { axis, view, onView };
  const look = `${theme.value} ${turned.value}`;
  useEffect(() => {
    const again = () => { if (canvas.current) draw(canvas.current, runs, axis, now); };
    again();
    const watching = new ResizeObserver(again);
    watching.observe(canvas.current!);
    return () => watching.disconnect();
  }, [runs, axis, tick, look]);

  const set = (low: number, high: number) => {
    const { axis, onView } = latest.current;
    const from = Math.max(0, Math.min(low, high));
    const to = Math.min(1, Math.max(low, high, from + LEAST_PART));
    const start = Math.floor(axis.time(from));
    onView({ from: start, to: Math.max(start + 1, Math.ceil(axis.time(to))) });
  };
  const ends = (): [number, number] => [latest.current.axis.place(latest.current.view.from), latest.current.axis.place(latest.current.view.to)];
  const pressed = (event: PointerEvent) => {
    const box = frame.current!.getBoundingClientRect();
    const at = (each: PointerEvent) => (each.clientX - box.left) / box.width;
    const start = at(event);
    const [low, high] = ends();
    const near = NEAR / box.width;
    const whole = high - low > 0.98;
    const part = Math.abs(start - low) < near ? "low" : Math.abs(start - high) < near ? "high" : start > low && start < high && !whole ? "move" : "new";
    const move = (each: PointerEvent) => {
      const now = at(each);
      if (part === "low") set(now, high);
      else if (part === "high") set(low, now);
      else if (part === "new") set(start, now);
      else {
        const shift = Math.min(1 - high, Math.max(-low, now - start));
        set(low + shift, high + shift);
      }
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
    event.preventDefault();
    (event.target as HTMLElement).closest<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
  };
  useEffect(() => {
    const box = frame.current!;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const [low, high] = ends();
      const at = (event.clientX - box.getBoundingClientRect().left) / box.clientWidth;
      const by = Math.exp(event.deltaY * 0.0018);
      set(at - (at - low) * by, at + (high - at) * by);
    };
    box.addEventListener("wheel", wheel, { passive: false });
    return () => box.removeEventListener("wheel", wheel);
  }, []);

  const [low, high] = [axis.place(view.from), axis.place(view.to)];
  const keyed = (which: "low" | "high") => (event: KeyboardEvent) => {
    const step = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    if (which === "low") set(Math.min(high - LEAST_PART, low + step), high);
    else set(low, Math.max(low + LEAST_PART, high + step));
  };
  const handle = (which: "low" | "high", words: string, at: number, time: number) => (
    <div class="brush-handle" role="slider" tabIndex={0} aria-label={words} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(at * 100)} aria-valuetext={`${day(time)}, ${clock(time)}`}
      style={{ left: `${at * 100}%` }} onKeyDown={keyed(which)} />
  );
  return (
    <div class="overview" ref={frame} onPointerDown={pressed} onDblClick={() => set(0, 1)}>
      <canvas ref={canvas} role="img" aria-label={`${many(runs.length, "run")} from ${day(axis.from)}, ${clock(axis.from)} to ${day(axis.to)}, ${clock(axis.to)}`} />
      <div class="brush" style={{ left: `${low * 100}%`, width: `${Math.max(0.15, (high - low) * 100)}%` }} />
      {handle("low", "Start of selection", low, view.from)}
      {handle("high", "End of selection", high, view.to)}
    </div>
  );
}
