// The tape of a session as a line through time: every entry in order, drawn only where it is looked at, fetched only when it is.
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { argument, href, second } from "../core/router";
import { lastEntry, sessions } from "../core/store";
import { Tape } from "../core/tape";
import { visible } from "../core/words";
import { Empty, PageHead, Problem } from "../ui/parts";
import type { Entry } from "../types";
import { EntryDetail, NEAR, says } from "./entry";

const ROW = 36;
const SPARE = 12;

function gist(entry: Entry): string {
  const event = entry.event as unknown as Record<string, unknown>;
  const found = [event.tool, event.text, event.message, event.reason, event.outcome, event.decision, event.title].find((each) => typeof each === "string" && each);
  return visible(String(found ?? "")).split("\n")[0]!.slice(0, 160);
}

export function TimelinePage(): VNode {
  const id = argument.value;
  return id ? <Line key={id} id={id} /> : <Choose />;
}

function Choose(): VNode {
  return (
    <div class="page">
      <PageHead title="Timeline" />
      <p>Everything that happened in a session, entry by entry.{sessions.value.length > 0 && " Choose one:"}</p>
      <ul class="plain-list">{sessions.value.map((each) => <li><a href={href("timeline", each.session_id)}><bdi>{visible(each.title || "Untitled")}</bdi></a></li>)}</ul>
      {!sessions.value.length && <Empty><p>There is none yet. A session begins with what you say <a href={href("chat")}>in the chat</a>.</p></Empty>}
    </div>
  );
}

function Line({ id }: { id: string }): VNode {
  const tape = useMemo(() => new Tape(id), [id]);
  const chosen = Number(second.value) || 0;
  const [view, setView] = useState({ top: 0, height: 700 });
  const pane = useRef<HTMLDivElement>(null);
  const head = tape.head.value;
  tape.tick.value;
  useEffect(() => void tape.open(), [tape]);
  const newest = lastEntry.value?.tape === id ? lastEntry.value.seq : 0;
  useEffect(() => tape.grow(newest), [newest]);
  const first = Math.max(1, Math.floor(view.top / ROW) + 1 - SPARE);
  const last = Math.min(head, first + Math.ceil(view.height / ROW) + 2 * SPARE);
  useEffect(() => void tape.want(first, last), [tape, first, last, head]);
  useEffect(() => {
    if (chosen && head) void tape.want(chosen - NEAR, chosen + NEAR);
  }, [tape, chosen, head > 0]);

  const bring = (seq: number) => {
    const box = pane.current!;
    const top = (seq - 1) * ROW;
    if (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
  };
  // Whoever comes by a link to an entry finds it in view.
  useLayoutEffect(() => {
    if (chosen && head) bring(chosen);
  }, [chosen, head > 0]);
  useLayoutEffect(() => setView({ top: pane.current!.scrollTop, height: pane.current!.clientHeight }), [head > 0]);

  // In place: the way back leads out of the timeline, not through every entry that was looked at.
  const choose = (seq: number) => {
    history.replaceState(null, "", href("timeline", id, String(seq)));
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -head, End: head }[event.key];
    if (!step || !head) return;
    event.preventDefault();
    choose(Math.min(head, Math.max(1, (chosen || (step > 0 ? 0 : 2)) + step)));
  };
  const rows: VNode[] = [];
  for (let seq = first; seq <= last; seq++) rows.push(<TapeRow key={seq} seq={seq} entry={tape.at(seq)} chosen={seq === chosen} choose={choose} />);
  const title = tape.session.value?.title;
  const current = chosen ? tape.at(chosen) : undefined;
  return (
    <div class="page wide">
      <PageHead title={title ? `Timeline: ${visible(title)}` : "Timeline"}><a class="button quiet" href={href("chat", id)}>Open the conversation</a></PageHead>
      <Problem text={tape.error.value} />
      <div class="tape">
        <div class="tape-list" ref={pane} tabIndex={0} role="listbox" aria-label={`${head} entries`} aria-activedescendant={chosen ? `entry-${chosen}` : undefined}
          onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })} onKeyDown={pressed}>
          <div class="tape-space" role="presentation" style={{ height: `${head * ROW}px` }} />
          {rows}
        </div>
        <div class="tape-entry">{current ? <EntryDetail key={current.seq} entry={current} tape={tape} choose={choose} /> : <p class="hint">Choose an entry to see what it says, why it is there, and to go back to it.</p>}</div>
      </div>
    </div>
  );
}

function TapeRow({ seq, entry, chosen, choose }: { seq: number; entry: Entry | undefined; chosen: boolean; choose: (seq: number) => void }): VNode {
  return (
    <div id={`entry-${seq}`} role="option" aria-selected={chosen} aria-setsize={-1} aria-posinset={seq} class={`tape-row k-${entry?.kind.split(".")[0] ?? "unknown"}`}
      style={{ top: `${(seq - 1) * ROW}px` }} onClick={() => choose(seq)}>
      <span class="hint">{seq}</span><i class="tape-dot" aria-hidden="true" />
      {entry ? <><span>{says(entry.kind)}</span><bdi class="hint">{gist(entry)}</bdi></> : <span class="hint">…</span>}
    </div>
  );
}
