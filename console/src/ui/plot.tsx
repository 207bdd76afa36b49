// A plot with a title, a legend, what lies under the pointer, and the same figures as a table for everybody. Drawn as SVG by hand.
import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ticks } from "./figures";
import { Table } from "./table";
import "./plot.css";

export interface Line {
  words: string;
  /** Nothing where nothing is known, as the past of a forecast. */
  values: readonly (number | null)[];
  /** The name of one of the console's colours. */
  tone: string;
  dashed?: boolean;
}

export interface Band {
  words: string;
  low: readonly (number | null)[];
  high: readonly (number | null)[];
}

interface Given {
  title: string;
  sub?: ComponentChildren;
  /** What the labels are: days, hours. */
  across: string;
  labels: readonly string[];
  lines: readonly Line[];
  unit: (value: number) => string;
  shape?: "area" | "bars" | "lines";
  band?: Band | undefined;
  limit?: { value: number; words: string } | undefined;
  height?: number;
  /** What stands at the end of the title's line. */
  beside?: ComponentChildren;
  /** Without a frame, a table and marks: a small plot beside a figure. */
  small?: boolean;
}

const LEFT = 58;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 22;
const LABEL_PX = 84;
const SMALL = { left: 0, right: 0, top: 4, bottom: 2 };
const WIDE = { left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM };

/** The width of an element, as long as it is there. */
export function useWidth<T extends HTMLElement>(): [{ readonly current: T | null }, number] {
  const place = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const box = place.current!;
    const watching = new ResizeObserver(() => setWidth(box.clientWidth));
    setWidth(box.clientWidth);
    watching.observe(box);
    return () => watching.disconnect();
  }, []);
  return [place, width];
}

export function Plot(given: Given): VNode {
  const { title, sub, across, labels, lines, unit, band, small = false } = given;
  const [place, width] = useWidth<HTMLDivElement>();
  const [at, setAt] = useState<number | null>(null);
  const [tabled, setTabled] = useState(false);
  const known = (each: Line, index: number) => each.values[index] != null;
  const last = Math.max(0, labels.length - 1 - [...labels].reverse().findIndex((_, back) => lines[0] && known(lines[0], labels.length - 1 - back)));
  const shown = at === null ? Math.min(last, labels.length - 1) : at;
  const said = lines.filter((each) => known(each, shown)).map((each) => `${each.words} ${unit(each.values[shown]!)}`).join(" · ") || "no data";
  const highest = lines.map((each) => `${each.words} up to ${unit(Math.max(0, ...each.values.map((value) => value ?? 0)))}`).join(", ");
  const legend = [...lines.map((each) => ({ words: each.words, tone: each.tone })), ...(band ? [{ words: band.words, tone: "band" }] : [])];
  return (
    <figure class={small ? "plot small" : "plot"}>
      {!small && <figcaption><strong>{title}</strong>{sub && <span class="hint">{sub}</span>}
        {legend.length > 1 && <span class="legend">{legend.map((each) => <span key={each.words} class={`t-${each.tone}`}><i aria-hidden="true" />{each.words}</span>)}</span>}
        {given.beside}
      </figcaption>}
      <div class="plot-space" ref={place} role="img" aria-label={`${title}: ${labels.length} ${across}; ${highest}.${small ? "" : " The table below has all figures."}`} style={{ height: `${given.height ?? (small ? 44 : 210)}px` }}
        onPointerMove={(event) => setAt(nearest(event, width, labels.length, small))} onPointerLeave={() => setAt(null)}>
        {width > 0 && labels.length > 0 && <Drawing {...given} width={width} height={given.height ?? (small ? 44 : 210)} at={at} />}
      </div>
      {!small && <p class="plot-read"><span>{labels[shown]}</span> {said}</p>}
      {!small && <details open={tabled} onToggle={(event) => setTabled(event.currentTarget.open)}>
        <summary>Show as table</summary>
        {tabled && <Table label={title} rows={labels.map((_, row) => row)} keyOf={String}
          columns={[
            { key: "label", words: across, draw: (row) => labels[row], by: (row) => row },
            ...lines.map((line) => ({ key: line.words, words: line.words, numeric: true, draw: (row: number) => (line.values[row] == null ? "–" : unit(line.values[row]!)), by: (row: number) => line.values[row] ?? -1 })),
          ]} />}
      </details>}
    </figure>
  );
}

function nearest(event: PointerEvent, width: number, many: number, small: boolean): number {
  const { left, right } = small ? SMALL : WIDE;
  const x = event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left - left;
  return Math.min(many - 1, Math.max(0, Math.floor((x / Math.max(1, width - left - right)) * many)));
}

function Drawing({ labels, lines, unit, shape = "area", band, limit, width, height, small = false, at }: Given & { width: number; height: number; at: number | null }): VNode {
  const edge = small ? SMALL : WIDE;
  const inner = Math.max(1, width - edge.left - edge.right);
  const room = height - edge.top - edge.bottom;
  // Bars stand on each other: what counts is how high they are together.
  const heights = shape === "bars" ? labels.map((_, index) => lines.reduce((sum, each) => sum + (each.values[index] ?? 0), 0)) : lines.flatMap((each) => each.values);
  const all = [...heights, ...(band ? band.high : []), limit?.value ?? 0].map((each) => each ?? 0);
  const marks = ticks(Math.max(...all), small ? 2 : 4);
  const top = small ? Math.max(1e-9, ...all) * 1.05 : marks.at(-1)!;
  const step = inner / labels.length;
  // A small plot reaches from edge to edge; bars and marks of a large one stand in the middle of their time.
  const x = (index: number) => edge.left + (small ? (inner * index) / Math.max(1, labels.length - 1) : step * (index + 0.5));
  const y = (value: number) => edge.top + room * (1 - Math.min(1, value / top));
  const path = (values: readonly (number | null)[]) => values.reduce<{ text: string; open: boolean }>(({ text, open }, value, index) => (value == null ? { text, open: false } : { text: `${text}${open ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`, open: true }), { text: "", open: false }).text;
  const every = Math.max(1, Math.ceil((LABEL_PX * labels.length) / inner));
  return (
    <svg width={width} height={height} aria-hidden="true">
      {!small && marks.map((mark) => <g key={mark}><line class="plot-grid" x1={edge.left} x2={width - edge.right} y1={y(mark)} y2={y(mark)} /><text x={edge.left - 8} y={y(mark) + 4} text-anchor="end">{unit(mark)}</text></g>)}
      {!small && labels.map((label, index) => (index % every === 0 && x(index) + 20 < width ? <text key={index} x={x(index)} y={height - 5} text-anchor={index === 0 && step < 60 ? "start" : "middle"}>{label}</text> : null))}
      {band && <path class="plot-band" d={area(band.high, band.low, x, y)} />}
      {shape === "bars" ? bars(lines, step, x, y, edge.top + room)
        : lines.map((line) => (
          <g key={line.words} class={`line t-${line.tone}`}>
            {shape === "area" && !line.dashed && <path class="plot-area" d={area(line.values, line.values.map((each) => (each == null ? null : 0)), x, y)} />}
            <path class={line.dashed ? "plot-line dashed" : "plot-line"} d={path(line.values)} />
            {!small && line.values.filter((each) => each != null).length === 1 && line.values.map((each, index) => (each == null ? null : <circle key={index} class="plot-dot" cx={x(index)} cy={y(each)} r={3.5} />))}
          </g>
        ))}
      {limit && <g><line class="plot-limit" x1={edge.left} x2={width - edge.right} y1={y(limit.value)} y2={y(limit.value)} />{!small && <text x={width - edge.right} y={y(limit.value) - 5} text-anchor="end">{limit.words}</text>}</g>}
      {at !== null && !small && <line class="plot-here" x1={x(at)} x2={x(at)} y1={edge.top} y2={edge.top + room} />}
    </svg>
  );
}

/** The space between two lines, where both are known. */
function area(high: readonly (number | null)[], low: readonly (number | null)[], x: (index: number) => number, y: (value: number) => number): string {
  const there = high.flatMap((each, index) => (each == null || low[index] == null ? [] : [index]));
  if (!there.length) return "";
  const above = there.map((index) => `${x(index).toFixed(1)} ${y(high[index]!).toFixed(1)}`);
  const below = [...there].reverse().map((index) => `${x(index).toFixed(1)} ${y(low[index]!).toFixed(1)}`);
  return `M${above.join("L")}L${below.join("L")}Z`;
}

/** Bars of all lines on top of each other. */
function bars(lines: readonly Line[], step: number, x: (index: number) => number, y: (value: number) => number, floor: number): VNode[] {
  const wide = Math.max(1.5, Math.min(36, step * 0.68));
  const under = new Map<number, number>();
  return lines.flatMap((line) => line.values.map((value, index) => {
    if (!value) return <g key={`${line.words} ${index}`} />;
    const from = under.get(index) ?? 0;
    under.set(index, from + value);
    const top = y(from + value);
    return <rect key={`${line.words} ${index}`} class={`bar t-${line.tone}`} x={x(index) - wide / 2} y={top} width={wide} height={Math.max(1, (from ? y(from) : floor) - top)} rx={Math.min(3, wide / 3)} />;
  }));
}

export interface HBar {
  key: string;
  words: ComponentChildren;
  value: number;
  said: string;
}

/** Categories as bars, the longest first. */
export function HBars({ label, rows, tones = ["info"] }: { label: string; rows: readonly HBar[]; tones?: readonly string[] }): VNode {
  const most = Math.max(1, ...rows.map((each) => each.value));
  return (
    <ul class="cat-bars" aria-label={label}>
      {rows.map((each, at) => (
        <li key={each.key}><span class="cat-name">{each.words}</span><span class="cat-row"><i class={`t-${tones[at % tones.length]}`} style={{ width: `${Math.max(1, (each.value / most) * 100)}%` }} aria-hidden="true" /><span>{each.said}</span></span></li>
      ))}
    </ul>
  );
}
