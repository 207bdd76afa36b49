// A plot with a title, a legend, what lies under the pointer, and the same figures as a table for everybody.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { theme } from "../core/theme";
import type { Line } from "./drawing";
import { Table } from "./table";

export type { Line };

const dark = matchMedia("(prefers-color-scheme: dark)");
const systemTurned = signal(0);
dark.addEventListener("change", () => (systemTurned.value += 1));

export function Plot({ title, across, labels, lines, unit, bars = false }: {
  title: string;
  /** What the labels are: days, runs. */
  across: string;
  labels: readonly string[];
  lines: readonly Line[];
  unit: (value: number) => string;
  bars?: boolean;
}): VNode {
  const place = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const [failed, setFailed] = useState(false);
  const [tabled, setTabled] = useState(false);
  const look = `${theme.value} ${systemTurned.value}`;
  useEffect(() => {
    let gone = false;
    let erase = () => undefined as void;
    import("./drawing").then(({ draw }) => {
      if (!gone && place.current) erase = draw(place.current, { labels, lines, bars, unit, onPoint: setAt });
    }, () => setFailed(true));
    return () => {
      gone = true;
      erase();
    };
  }, [look, bars, JSON.stringify([labels, lines])]);
  const shown = at === null ? labels.length - 1 : at;
  // A line that has no value there has nothing to say, as the past of a forecast.
  const said = lines.filter((line) => line.values[shown] != null).map((line) => `${line.words} ${unit(line.values[shown]!)}`).join(", ") || "nothing is known";
  const highest = lines.map((line) => `${line.words} at most ${unit(Math.max(0, ...line.values.map((each) => each ?? 0)))}`).join(", ");
  return (
    <figure class="plot">
      <figcaption><strong>{title}</strong>
        <span class="legend">{lines.map((line) => <span key={line.words} class={`t-${line.tone}`}><i aria-hidden="true" />{line.words}</span>)}</span>
      </figcaption>
      {!failed && <div class="canvas" ref={place} role="img" aria-label={`${title}: ${labels.length} ${across}; ${highest}. The table below has all figures.`} />}
      <p class="hint">{labels[shown]}: {said}</p>
      <details open={tabled || failed} onToggle={(event) => setTabled(event.currentTarget.open)}>
        <summary>As a table</summary>
        {(tabled || failed) && <Table label={title} rows={labels.map((_, row) => row)} keyOf={String}
          columns={[
            { key: "label", words: across, draw: (row) => labels[row], by: (row) => row },
            ...lines.map((line) => ({ key: line.words, words: line.words, numeric: true, draw: (row: number) => (line.values[row] == null ? "–" : unit(line.values[row]!)), by: (row: number) => line.values[row] ?? -1 })),
          ]} />}
      </details>
    </figure>
  );
}
