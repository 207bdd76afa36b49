// Draws plots on a canvas. Fetched only when there is one to draw; whoever cannot see it has the table behind it.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Line {
  words: string;
  values: readonly (number | null)[];
  /** The name of one of the console's colours. */
  tone: string;
}

export interface Drawn {
  labels: readonly string[];
  lines: readonly Line[];
  bars: boolean;
  unit: (value: number) => string;
  onPoint: (at: number | null) => void;
}

const HEIGHT = 190;
const LETTER = 7;
// One, two and five times every power of ten: figures are whole.
const STEPS = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** A colour of the theme as a canvas understands it. */
function colour(place: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  place.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export function draw(place: HTMLElement, what: Drawn): () => void {
  const { labels, lines, unit } = what;
  const grid = { stroke: colour(place, "line"), width: 1 };
  const ink = colour(place, "soft");
  const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui, sans-serif" };
  const empty = lines.every((line) => line.values.every((value) => !value));
  const bars = what.bars ? { paths: uPlot.paths.bars!({ size: [0.7, 48], gap: 0 }) } : {};
  const plot = new uPlot(
    {
      width: Math.max(200, place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] }, y: { range: (_, __, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [
        { ...axis, size: 32, space: 18 + LETTER * Math.max(...labels.map((label) => label.length)), incrs: STEPS, values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? (labels[mark] ?? "") : "")) },
        { ...axis, size: 64, incrs: STEPS, values: (_, marks) => marks.map((mark) => (empty && mark > 0 ? "" : unit(mark))) },
      ],
      series: [
        {},
        ...lines.map((line) => {
          const stroke = colour(place, line.tone);
          return { label: line.words, stroke, width: 2, ...(what.bars ? { fill: stroke, points: { show: false } } : { points: { show: labels.length < 60, size: 6, fill: stroke } }), ...bars };
        }),
      ],
      hooks: { setCursor: [(at) => what.onPoint(at.cursor.idx ?? null)] },
    },
    [labels.map((_, at) => at), ...lines.map((line) => [...line.values])],
    place,
  );
  const watching = new ResizeObserver(() => plot.setSize({ width: Math.max(200, place.clientWidth), height: HEIGHT }));
  watching.observe(place);
  return () => {
    watching.disconnect();
    plot.destroy();
  };
}
