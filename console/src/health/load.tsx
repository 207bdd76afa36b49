// The daemon's load over the last hours: processor, memory, disk, queue and journal, each with a small plot. Asked for again while in view.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { count, many } from "../core/words";
import type { LoadSample } from "../types";
import { bytes, clock, short } from "../ui/figures";
import { useLoaded } from "../ui/page";
import { Problem } from "../ui/parts";
import { Plot } from "../ui/plot";

const EVERY_MS = 5_000;
const HOUR_MS = 3_600_000;
const MOST_POINTS = 120;

export function LoadFigures(): VNode {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) setTurn((last) => last + 1); }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const found = useLoaded(() => palyra.loadHistory(), [], turn);
  const all = found.value?.samples ?? [];
  const now = all.at(-1);
  if (!now) return <>{found.error ? <Problem text={found.error} /> : <p role="status">Loading…</p>}</>;
  const shown = thinned(all);
  const most = (of: (each: LoadSample) => number, unit: (value: number) => string) => (all.length > 1 ? `max ${unit(Math.max(...all.map(of)))} since ${clock(all[0]!.time_ms, false)}` : "just started");
  const grown = now.journal_bytes - all[0]!.journal_bytes;
  const hours = Math.max(1 / 60, (now.time_ms - all[0]!.time_ms) / HOUR_MS);
  const used = now.disk_total_bytes ? Math.round((1 - now.disk_free_bytes / now.disk_total_bytes) * 100) : 0;
  return (
    <section class="figures" aria-label="Load">
      <Figure name="CPU" value={`${percent(now.cpu_bps)}`} note={`${most((each) => each.cpu_bps, percent)} · machine load ${(now.load_bps / 10_000).toFixed(1)} per core`} samples={shown} of={(each) => each.cpu_bps} unit={percent} tone="info" />
      <Figure name="Memory" value={bytes(now.memory_bytes)} note={most((each) => each.memory_bytes, bytes)} samples={shown} of={(each) => each.memory_bytes} unit={bytes} tone="accent" />
      <Figure name="Disk free" value={bytes(now.disk_free_bytes)} note={`${used} % of ${bytes(now.disk_total_bytes)} used`} samples={shown} of={(each) => each.disk_free_bytes} unit={bytes} tone="good" />
      <Figure name="Queue" value={`${count(now.queued)} waiting`} note={`${count(now.running)} running · ${many(now.runs, "active run")}`} samples={shown} of={(each) => each.queued + each.running + each.runs} unit={short} tone="warn" />
      <Figure name="Journal" value={bytes(now.journal_bytes)} note={`${short(now.journal_entries)} entries · ${grown >= 0 ? "+" : "−"}${bytes(Math.round(Math.abs(grown) / hours))} per hour`} samples={shown} of={(each) => each.journal_bytes} unit={bytes} tone="label" />
    </section>
  );
}

function percent(bps: number): string {
  return `${bps < 1_000 ? (bps / 100).toFixed(1).replace(/\.0$/, "") : Math.round(bps / 100)} %`;
}

/** No more points than a small plot can show, the last one always, and no fewer than a line needs. */
function thinned(all: readonly LoadSample[]): LoadSample[] {
  const step = Math.ceil(all.length / MOST_POINTS);
  const shown = all.filter((_, at) => (all.length - 1 - at) % step === 0);
  return shown.length === 1 ? [...shown, ...shown] : shown;
}

function Figure({ name, value, note, samples, of, unit, tone }: { name: string; value: string; note: string; samples: readonly LoadSample[]; of: (each: LoadSample) => number; unit: (value: number) => string; tone: string }): VNode {
  return (
    <div class="figure">
      <span>{name}</span><strong>{value}</strong>
      <Plot small title={name} across="samples" labels={samples.map((each) => clock(each.time_ms))} unit={unit} shape="area" lines={[{ words: name.toLowerCase(), tone, values: samples.map(of) }]} />
      <small>{note}</small>
    </div>
  );
}
