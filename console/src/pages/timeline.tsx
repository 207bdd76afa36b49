// The tape of a session: every entry in order, drawn only where it is looked at, with what it says and ways back to it.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { branch } from "../chat/verbs";
import { get, post, wordsOf } from "../core/api";
import { argument, go, href } from "../core/router";
import { lastEntry, sessions } from "../core/store";
import { visible, when } from "../core/words";
import { Code, Diff } from "../ui/code";
import { Empty, PageHead, Problem } from "../ui/parts";
import type { Entry, EntryPage, Session } from "../types";

const ROW = 36;
const SPARE = 8;
const PAGE = 500;

const SAYS: Record<string, string> = {
  "run.accepted": "a run was accepted", "run.started": "the run began", "run.resumed": "the run went on", "run.completed": "the run was done",
  "run.failed": "the run failed", "run.cancelled": "the run was stopped", "input.received": "a message came", "input.assembled": "the model was shown this",
  "route.planned": "a model was chosen", "model.replied": "the model answered", "model.failed": "the model failed", "tool.proposed": "a step was proposed",
  "tool.decided": "the step was decided", "tool.started": "the step began", "tool.finished": "the step ended", "tool.undone": "the step was undone",
  "approval.requested": "you were asked", "approval.resolved": "the question was answered", "session.created": "the session began",
};

function gist(entry: Entry): string {
  const event = entry.event as unknown as Record<string, unknown>;
  const found = [event.tool, event.text, event.message, event.reason, event.outcome, event.decision, event.title].find((each) => typeof each === "string" && each);
  return visible(String(found ?? "")).split("\n")[0]!.slice(0, 160);
}

export function TimelinePage(): VNode {
  const id = argument.value;
  if (!id) return <Choose />;
  return <Tape key={id} id={id} />;
}

function Choose(): VNode {
  return (
    <div class="page">
      <PageHead title="Timeline" />
      <p>Everything that happened in a session, entry by entry. Choose one:</p>
      <ul class="plain-list">{sessions.value.map((each) => <li><a href={href("timeline", each.session_id)} dir="auto">{each.title || "Untitled"}</a></li>)}</ul>
      {!sessions.value.length && <Empty><p>No sessions yet.</p></Empty>}
    </div>
  );
}

function useTape(id: string): { entries: Entry[]; session: Session | undefined; error: string } {
  const [entries, setEntries] = useState<Entry[]>([]);
  const [session, setSession] = useState<Session | undefined>();
  const [error, setError] = useState("");
  const kept = useRef<Entry[]>([]);
  const busy = useRef(false);
  const changed = lastEntry.value?.tape === id ? lastEntry.value.seq : 0;
  useEffect(() => {
    const fetchMore = async () => {
      if (busy.current) return;
      busy.current = true;
      try {
        for (;;) {
          const page = await get<EntryPage>(`/v1/sessions/${id}/entries?after=${kept.current.at(-1)?.seq ?? 0}&limit=${PAGE}`);
          if (page.entries.length) setEntries((kept.current = [...kept.current, ...page.entries]));
          if (page.next === null) break;
        }
        setError("");
      } catch (failure) {
        setError(wordsOf(failure));
      }
      busy.current = false;
    };
    void fetchMore();
  }, [id, changed]);
  useEffect(() => void get<Session>(`/v1/sessions/${id}`).then(setSession, () => undefined), [id]);
  return { entries, session, error };
}

function Tape({ id }: { id: string }): VNode {
  const { entries, session, error } = useTape(id);
  const [chosen, setChosen] = useState(0);
  const [top, setTop] = useState(0);
  const pane = useRef<HTMLDivElement>(null);
  const height = pane.current?.clientHeight ?? 600;
  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const shown = entries.slice(first, first + Math.ceil(height / ROW) + 2 * SPARE);
  const current = entries[chosen - 1]?.seq === chosen ? entries[chosen - 1] : entries.find((each) => each.seq === chosen);
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[event.key];
    if (!step || !entries.length) return;
    event.preventDefault();
    const next = Math.min(entries.at(-1)!.seq, Math.max(1, (chosen || 1) + step));
    setChosen(next);
    pane.current!.scrollTop = Math.max(0, (next - 1) * ROW - height / 2);
  };
  return (
    <div class="page wide">
      <PageHead title={session?.title ? `Timeline: ${session.title}` : "Timeline"}><a class="button quiet" href={href("chat", id)}>Open the conversation</a></PageHead>
      <Problem text={error} />
      <div class="tape">
        <div class="tape-list" ref={pane} tabIndex={0} role="listbox" aria-label={`${entries.length} entries`} aria-activedescendant={chosen ? `entry-${chosen}` : undefined}
          onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={pressed}>
          <svg class="tape-space" width="1" height={entries.length * ROW} aria-hidden="true" />
          {shown.map((entry, at) => (
            <div key={entry.seq} id={`entry-${entry.seq}`} role="option" aria-selected={entry.seq === chosen} class={`tape-row k-${entry.kind.split(".")[0]}`}
              ref={(row) => { if (row) row.style.top = `${(first + at) * ROW}px`; }} onClick={() => setChosen(entry.seq)}>
              <span class="hint">{entry.seq}</span><span>{SAYS[entry.kind] ?? entry.kind}</span><bdi class="hint">{gist(entry)}</bdi>
            </div>
          ))}
        </div>
        <div class="tape-entry">{current ? <Detail key={current.seq} entry={current} id={id} /> : <p class="hint">Choose an entry to see what it says and to go back to it.</p>}</div>
      </div>
    </div>
  );
}

interface Rewound { diff?: string }

function Detail({ entry, id }: { entry: Entry; id: string }): VNode {
  const [error, setError] = useState("");
  const [preview, setPreview] = useState<Rewound | undefined>();
  const attempt = async (work: () => Promise<void>) => {
    setError("");
    try {
      await work();
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  const rewind = (dry: boolean) => attempt(async () => {
    const found = await post<Rewound>(`/v1/sessions/${id}/rewind`, { to: entry.seq, preview: dry });
    setPreview(dry ? found : undefined);
    if (!dry) go("chat", id);
  });
  return (
    <section aria-label={`Entry ${entry.seq}`}>
      <h2>{entry.seq}: {SAYS[entry.kind] ?? entry.kind}</h2>
      <dl class="facts"><dt>when</dt><dd>{when(entry.time_ms)}</dd><dt>by</dt><dd>{visible(entry.principal)}</dd><dt>kind</dt><dd class="mono">{entry.kind}</dd><dt>hash</dt><dd class="mono breaks">{entry.hash}</dd></dl>
      <div class="row">
        <button type="button" onClick={() => void attempt(async () => go("chat", (await branch(id, entry.seq)).session_id))}>Continue from here in a branch</button>
        <button type="button" class="quiet" onClick={() => void rewind(true)}>Go back to here…</button>
      </div>
      <Problem text={error} />
      {preview && (
        <div class="problem plain">
          <p>Files that this session changed since are put back, and what came after no longer counts. The timeline keeps all of it.</p>
          {preview.diff && <Diff text={visible(preview.diff)} />}
          <div class="row"><button type="button" class="no" onClick={() => void rewind(false)}>Go back now</button><button type="button" class="quiet" onClick={() => setPreview(undefined)}>Leave it</button></div>
        </div>
      )}
      <Code text={visible(JSON.stringify(entry.event, null, 2))} language="json" />
    </section>
  );
}
