// The way to every page: groups that fold, search, and what is in use. A phone has a bar with the most used pages and a sheet with all.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { online } from "../core/api";
import { recall, remember } from "../core/remembered";
import { href, page } from "../core/router";
import { narrow, phone } from "../core/screen";
import { status } from "../core/store";
import { shortPath, visible } from "../core/words";
import { Bell } from "./bell";
import { Sign } from "./sign";

export interface Place {
  words: string;
  /** The path of its sign. */
  sign: string;
  draw: () => VNode;
  /** How many things wait there. */
  waiting?: () => number;
  /** The group that it stands in; without one, it is reached by links and the palette. */
  group?: Group;
}
export type Group = "Work" | "Knowledge" | "Trust" | "System";

const GROUPS: readonly Group[] = ["Work", "Knowledge", "Trust", "System"];
const IN_BAR = ["chat", "approvals", "timeline"];
const MORE = "M5 12h.01M12 12h.01M19 12h.01";
const FIND = "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM20 20l-4.5-4.5";
const SIDE = "M4 5h16v14H4zM10 5v14";
const FOLD = "M9 6l6 6-6 6";

/** "open" and "closed" are somebody's choice; without one, the room decides. */
const choice = signal<"" | "open" | "closed">(recall("navigation", ""));
const folded = signal<string[]>(recall("folded", []));

export function toggleNavigation(): void {
  choice.value = closed() ? "open" : "closed";
  remember("navigation", choice.value);
}

function closed(): boolean {
  return choice.value ? choice.value === "closed" : narrow.value;
}

function fold(group: string): void {
  folded.value = folded.value.includes(group) ? folded.value.filter((each) => each !== group) : [...folded.value, group];
  remember("folded", folded.value);
}

type Places = Record<string, Place>;

export function Navigation({ places, onFind }: { places: Places; onFind: () => void }): VNode {
  return phone.value ? <Bar places={places} onFind={onFind} /> : <Side places={places} onFind={onFind} />;
}

function of(places: Places, group: Group): [string, Place][] {
  return Object.entries(places).filter(([, each]) => each.group === group);
}

function Side({ places, onFind }: { places: Places; onFind: () => void }): VNode {
  const rail = closed();
  return (
    <nav class={rail ? "places rail" : "places"} aria-label="Pages">
      <div class="brand"><span class="logo" aria-hidden="true" /><span>Palyra</span>
        <button type="button" class="quiet small" aria-label={rail ? "Expand navigation" : "Collapse navigation"} title={rail ? "Expand navigation" : "Collapse navigation"} onClick={toggleNavigation}><Sign path={SIDE} /></button>
      </div>
      <button type="button" class="find" title="Search or jump to (Ctrl K)" aria-keyshortcuts="Control+K" onClick={onFind}><Sign path={FIND} /><span>Search or jump to…</span><kbd aria-hidden="true">Ctrl K</kbd></button>
      {GROUPS.map((group) => {
        const shut = folded.value.includes(group) && !rail;
        return (
          <div class="group" key={group} role="group" aria-label={group}>
            {!rail && <button type="button" class="heading" aria-expanded={!shut} onClick={() => fold(group)}>{group}<svg class="sign fold" viewBox="0 0 24 24" aria-hidden="true"><path d={FOLD} /></svg></button>}
            {of(places, group).map(([name, place]) => (!shut || page.value === name) && <Way key={name} name={name} place={place} />)}
          </div>
        );
      })}
      <Foot />
    </nav>
  );
}

function Foot(): VNode {
  return (
    <div class="foot">
      <Bell />
      <State />
    </div>
  );
}

/** Health, the model and the folder: always in sight, each with the way to where it is changed. */
function State(): VNode | null {
  const now = status.value;
  if (!now) return null;
  const model = now.models.find((each) => each.default);
  const notes = now.notes.length;
  const [tone, words] = !online.value ? ["bad", "Not reachable"] : now.incidents ? ["warn", `${now.incidents} incident${now.incidents === 1 ? "" : "s"}`] : ["good", `Healthy${notes ? ` · ${notes} note${notes === 1 ? "" : "s"}` : ""}`];
  return (
    <>
      <a href={href("health")} title={words}><i class={`dot ${tone}`} aria-hidden="true" /><span>{words}</span></a>
      <a href={href("settings")} title={model ? `Default model: ${model.name}` : "No model"}><span>{model ? visible(model.name) : "Set up a model"}</span></a>
      <a href={href("policies", "presets")} title={`${now.workspace || "No folder"} · policy preset ${now.policy.preset}`}><span>{now.workspace ? `${visible(shortPath(now.workspace))} · ` : ""}{now.policy.preset}</span></a>
    </>
  );
}

function Bar({ places, onFind }: { places: Places; onFind: () => void }): VNode {
  const [opened, setOpened] = useState(false);
  const here = page.value;
  useEffect(() => setOpened(false), [here]);
  return (
    <nav class="bottom" aria-label="Pages" onKeyDown={(event) => { if (event.key === "Escape") setOpened(false); }}>
      {IN_BAR.map((name) => <Way key={name} name={name} place={places[name]!} />)}
      <Bell />
      <button type="button" class={IN_BAR.includes(here) ? "" : "here"} aria-expanded={opened} aria-controls="more-places" onClick={() => setOpened(!opened)}><Sign path={MORE} /><span>More</span></button>
      {opened && (
        <div class="sheet" id="more-places">
          <div class="grid"><button type="button" onClick={() => { setOpened(false); onFind(); }}><Sign path={FIND} />Search</button><button type="button" onClick={() => setOpened(false)}>Close</button></div>
          {GROUPS.map((group) => <div key={group}><h2>{group}</h2><div class="grid">{of(places, group).map(([name, place]) => <Way key={name} name={name} place={place} />)}</div></div>)}
          <div class="about"><State /></div>
        </div>
      )}
    </nav>
  );
}

function Way({ name, place: { words, sign, waiting } }: { name: string; place: Place }): VNode {
  const count = waiting?.() ?? 0;
  return (
    <a href={href(name)} title={words} aria-current={page.value === name ? "page" : undefined}>
      <Sign path={sign} /><span>{words}</span>
      {count > 0 && <span class="count" aria-label={`${count} open`}>{count}</span>}
    </a>
  );
}
