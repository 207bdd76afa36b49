// A conversation of any length: only what is looked at, and a little around it, is drawn. What is in view stays where it is, and the end is
// followed unless somebody has scrolled away from it.
import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";
import type { Conversation, Item } from "../core/conversation";
import { sent } from "./composing";

export interface Row {
  item: Item;
  conversation: Conversation;
}

/** Drawn above and below what is in view, in pixels. */
const AROUND = 900;
const GUESS = 90;
const NEAR = 48;

interface Given {
  rows: readonly Row[];
  draw: (row: Row) => VNode;
  /** Somebody has come to the beginning of what is there. */
  onTop: () => void;
  onLook: (back: boolean) => void;
  before?: ComponentChildren;
  after?: ComponentChildren;
}

export function Scroll({ rows, draw, onTop, onLook, before, after }: Given): VNode {
  const pane = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const at = useRef({ pinned: true, top: 0, height: 900, from: 0, to: 0 });
  const anchor = useRef<{ key: string; below: number } | undefined>(undefined);
  const [, again] = useReducer((count: number) => count + 1, 0);

  // Of rows that were let go nothing is kept.
  if (heights.current.size > 2 * rows.length + 200) {
    const known = heights.current;
    heights.current = new Map(rows.flatMap((row) => (known.has(keyOf(row)) ? [[keyOf(row), known.get(keyOf(row))!]] : [])));
  }
  const offsets = new Float64Array(rows.length + 1);
  for (let number = 0; number < rows.length; number++) offsets[number + 1] = offsets[number]! + (heights.current.get(keyOf(rows[number]!)) ?? GUESS);
  const [from, to] = range(offsets, at.current);
  at.current.from = from;
  at.current.to = to;

  const look = () => {
    const box = pane.current;
    // The last scrolling of a page is told when the page has gone.
    if (!box) return;
    at.current.top = box.scrollTop - list.current!.offsetTop;
    at.current.height = box.clientHeight;
    at.current.pinned = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    onLook(!at.current.pinned);
    const first = [...list.current!.children].find((each) => each instanceof HTMLElement && each.dataset.key && each.offsetTop + each.offsetHeight > box.scrollTop) as HTMLElement | undefined;
    anchor.current = first && { key: first.dataset.key!, below: first.offsetTop - box.scrollTop };
    if (box.scrollTop < AROUND / 2 && !at.current.pinned) onTop();
    const wanted = range(offsets, at.current);
    if (wanted[0] < at.current.from || wanted[1] > at.current.to) again(undefined);
  };

  // Once drawn, a height is known: the rest moves by what was guessed wrongly, and what is in view does not.
  useLayoutEffect(() => {
    const box = pane.current!;
    let changed = false;
    for (const each of list.current!.children) {
      const key = (each as HTMLElement).dataset.key;
      if (!key) continue;
      const height = (each as HTMLElement).offsetHeight;
      if (heights.current.get(key) !== height) {
        heights.current.set(key, height);
        changed = true;
      }
    }
    if (at.current.pinned) box.scrollTop = box.scrollHeight;
    else if (anchor.current) {
      const held = [...list.current!.children].find((each) => (each as HTMLElement).dataset.key === anchor.current!.key) as HTMLElement | undefined;
      const wanted = held && held.offsetTop - anchor.current.below;
      if (wanted !== undefined && Math.abs(wanted - box.scrollTop) > 1) box.scrollTop = wanted;
    }
    if (changed) again(undefined);
  }, [rows, from, to]);

  const told = sent.value;
  useLayoutEffect(() => {
    at.current.pinned = true;
    onLook(false);
    again(undefined);
    pane.current!.scrollTop = pane.current!.scrollHeight;
  }, [told]);

  useLayoutEffect(() => {
    const box = pane.current!;
    at.current.height = box.clientHeight;
    const watcher = new ResizeObserver(() => {
      if (at.current.pinned) box.scrollTop = box.scrollHeight;
    });
    watcher.observe(inner.current!);
    watcher.observe(box);
    return () => watcher.disconnect();
  }, []);

  return (
    <div class="items" ref={pane} onScroll={look} tabIndex={0} role="log" aria-live="off" aria-label="What was said and done">
      <div class="items-inner" ref={inner}>
        {before}
        <div class="rows" ref={list}>
          <div key="above" style={{ height: `${offsets[from]}px` }} />
          {rows.slice(from, to).map((row) => <div key={keyOf(row)} data-key={keyOf(row)} class="row-of-items">{draw(row)}</div>)}
          <div key="below" style={{ height: `${offsets[rows.length]! - offsets[to]!}px` }} />
        </div>
        {after}
      </div>
    </div>
  );
}

function keyOf(row: Row): string {
  return `${row.conversation.id}/${row.item.key}`;
}

function range(offsets: Float64Array, view: { pinned: boolean; top: number; height: number }): [number, number] {
  const last = offsets.length - 1;
  const top = view.pinned ? offsets[last]! - view.height : view.top;
  const from = firstBehind(offsets, top - AROUND);
  return [from, view.pinned ? last : Math.min(last, firstBehind(offsets, top + view.height + AROUND) + 1)];
}

/** The row that this offset lies in. */
function firstBehind(offsets: Float64Array, offset: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (offsets[middle + 1]! > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}
