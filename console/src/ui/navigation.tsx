// The way to every page. A narrow screen has room for a few of them; the rest lie behind "More".
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { href, page } from "../core/router";
import { Bell } from "./bell";
import { Sign } from "./sign";

export interface Place {
  words: string;
  /** The path of its sign. */
  sign: string;
  draw: () => VNode;
  /** How many things wait there. */
  waiting?: () => number;
}

const ON_NARROW = 4;
const MORE = "M5 12h.01M12 12h.01M19 12h.01";

export function Navigation({ places }: { places: Record<string, Place> }): VNode {
  const [opened, setOpened] = useState(false);
  const here = page.value;
  const all = Object.entries(places);
  useEffect(() => setOpened(false), [here]);
  return (
    <nav class={opened ? "places opened" : "places"} aria-label="Pages" onKeyDown={(event) => { if (event.key === "Escape") setOpened(false); }}>
      {all.slice(0, ON_NARROW).map(([name, place]) => <Way key={name} name={name} place={place} />)}
      <div class="rest" id="more-places">{all.slice(ON_NARROW).map(([name, place]) => <Way key={name} name={name} place={place} />)}</div>
      <Bell />
      <button type="button" class={all.findIndex(([name]) => name === here) >= ON_NARROW ? "more here" : "more"} aria-expanded={opened} aria-controls="more-places" onClick={() => setOpened(!opened)}>
        <Sign path={MORE} /><span>More</span>
      </button>
    </nav>
  );
}

function Way({ name, place: { words, sign, waiting } }: { name: string; place: Place }): VNode {
  const count = waiting?.() ?? 0;
  return (
    <a href={href(name)} aria-current={page.value === name ? "page" : undefined}>
      <Sign path={sign} /><span>{words}</span>
      {count > 0 && <span class="count" aria-label={`${count} open`}>{count}</span>}
    </a>
  );
}
