// The entries of a session as a list: all of them, or those that a filter lets through. Drawn where it is looked at, fetched when it is.
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Tape } from "../core/tape";
import type { Entry } from "../types";
import { clock } from "../ui/figures";
import { gistOf, kindOf } from "./outline";
import { says } from "../ui/says";

const ROW = 32;
const SPARE = 12;

export function Entries({ tape, only, chosen, onChoose }: { tape: Tape; only: readonly number[] | undefined; chosen: number; onChoose: (seq: number) => void }): VNode {
  const pane = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 700 });
  const head = tape.head.value;
  tape.tick.value;
  const many = only ? only.length : head;
  const seqAt = (at: number) => (only ? only[at]! : at + 1);
  const placeOf = (seq: number) => (only ? only.indexOf(seq) : seq - 1);
  const first = Math.max(0, Math.min(Math.floor(view.top / ROW), many) - SPARE);
  const last = Math.min(many, Math.floor(view.top / ROW) + Math.ceil(view.height / ROW) + SPARE);
  useEffect(() => {
    if (last > first) void tape.show(Array.from({ length: last - first }, (_, at) => seqAt(first + at)));
  }, [tape, first, last, head, only]);
  useEffect(() => () => void tape.show([]), [tape]);
  const here = chosen ? placeOf(chosen) : -1;
  useLayoutEffect(() => {
    const box = pane.current!;
    if (here < 0 || !many) return;
    const top = here * ROW;
    if (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
  }, [chosen, many > 0, only]);
  useLayoutEffect(() => {
    const box = pane.current!;
    const watching = new ResizeObserver(() => setView({ top: box.scrollTop, height: box.clientHeight }));
    watching.observe(box);
    return () => watching.disconnect();
  }, []);
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -many, End: many }[event.key];
    if (!step || !many) return;
    event.preventDefault();
    onChoose(seqAt(Math.min(many - 1, Math.max(0, (here < 0 ? (step > 0 ? -1 : 1) : here) + step))));
  };
  const rows: VNode[] = [];
  for (let at = first; at < last; at++) rows.push(<EntryRow key={seqAt(at)} at={at} seq={seqAt(at)} entry={tape.at(seqAt(at))} chosen={at === here} onChoose={onChoose} />);
  return (
    <div class="tape-list" ref={pane} tabIndex={0} role="listbox" aria-label={`${many} entries`} aria-activedescendant={here >= 0 ? `entry-${chosen}` : undefined}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })} onKeyDown={pressed}>
      <div class="steps-space" role="presentation" style={{ height: `${many * ROW}px` }} />
      {rows}
    </div>
  );
}

function EntryRow({ at, seq, entry, chosen, onChoose }: { at: number; seq: number; entry: Entry | undefined; chosen: boolean; onChoose: (seq: number) => void }): VNode {
  return (
    <div id={`entry-${seq}`} role="option" aria-selected={chosen} aria-setsize={-1} aria-posinset={at + 1} class="entry-row" style={{ top: `${at * ROW}px` }} onClick={() => onChoose(seq)}>
      <span class="hint">{seq}</span><i class={`wf-bar ${entry ? kindOf(entry.kind) : "other"}`} aria-hidden="true" />
      {entry ? <><span>{says(entry.kind)}</span><bdi class="hint">{gistOf(entry)}</bdi><span class="hint">{clock(entry.time_ms)}</span></> : <span class="hint">…</span>}
    </div>
  );
}
