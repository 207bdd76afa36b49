// What is remembered: browsing, searching with the reasons of each find, correcting and forgetting.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { lastEntry } from "../core/store";
import { ago, visible, when } from "../core/words";
import { Badge, Choice, Empty, Labels, PageHead, Problem } from "../ui/parts";
import type { Entry, Item, ScoreParts } from "../types";

interface Row {
  item: Item;
  score?: number;
  parts?: ScoreParts;
}
const SEARCH_MS = 250;
const ORIGINS: Record<string, string> = { user: "you said so", tool: "the agent noted it", learned: "learned from a conversation", import: "imported" };
const EMPTY = {
  active: "Nothing is remembered yet. What you write above, or tell the agent to remember, is known in all your conversations.",
  review: "Nothing waits for you. What comes from outside, or reads like an order, is kept here until you say yes.",
  forgotten: "Nothing was forgotten.",
};

export function MemoryPage(): VNode {
  const [state, setState] = useState<"active" | "review" | "forgotten">("active");
  const [query, setQuery] = useState("");
  const [rows, setRows] = useState<Row[] | undefined>();
  const [error, setError] = useState("");
  const [turn, setTurn] = useState(0);
  const changed = lastEntry.value?.kind.startsWith("memory.") ? lastEntry.value.position : 0;
  useEffect(() => {
    const look = async () => {
      const text = query.trim();
      try {
        setRows(text ? (await palyra.searchMemory({ limit: 50, text })).found
          : (await palyra.listMemory({ state })).items.map((item) => ({ item })));
        setError("");
      } catch (failure) {
        setError(wordsOf(failure));
      }
    };
    const timer = setTimeout(() => void look(), query ? SEARCH_MS : 0);
    return () => clearTimeout(timer);
  }, [state, query, changed, turn]);
  const attempt = (work: Promise<unknown>) => void work.then(() => setTurn((last) => last + 1), (failure: unknown) => setError(wordsOf(failure)));
  return (
    <div class="page">
      <PageHead title="Memory">
        <Choice label="Which" value={state} options={[["active", "Remembered"], ["review", "To be looked at"], ["forgotten", "Forgotten"]]} onChoose={setState} />
        <input type="search" aria-label="Search memory" placeholder="Search memory" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      </PageHead>
      <form class="row" onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem("text") as HTMLInputElement;
        if (field.value.trim()) attempt(palyra.addMemory({ text: field.value.trim() }).then(() => (field.value = "")));
      }}>
        <input name="text" aria-label="Something to remember" placeholder="Something to remember" class="grow" /><button type="submit">Remember</button>
      </form>
      <Problem text={error} />
      {rows && !rows.length && <Empty><p>{query ? "Nothing found. Try other words." : EMPTY[state]}</p></Empty>}
      <ul class="history">{rows?.map((row) => <Remembered key={row.item.memory_id} row={row} attempt={attempt} />)}</ul>
    </div>
  );
}

function Remembered({ row: { item, score, parts }, attempt }: { row: Row; attempt: (work: Promise<unknown>) => void }): VNode {
  const [text, setText] = useState<string | undefined>();
  const id = item.memory_id;
  return (
    <li class="remembered">
      {text === undefined ? <p dir="auto"><bdi>{visible(item.text)}</bdi></p>
        : <textarea aria-label="Corrected text" rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
      <div class="row">
        <Badge>{item.kind}</Badge><Labels label={item.label} />{item.pinned && <Badge tone="good">kept in view</Badge>}
        <span class="hint">{item.updated_ms ? ago(item.updated_ms) : ""}{item.origin ? `, ${ORIGINS[item.origin] ?? item.origin}` : ""}{item.source ? ` (${visible(item.source)})` : ""}</span>
        {score !== undefined && <span class="hint">fits {score.toFixed(2)}</span>}
      </div>
      {parts && <Score parts={parts} />}
      {item.why && <p class="hint">{visible(item.why)}</p>}
      <div class="row">
        {item.state === "forgotten" && <button type="button" onClick={() => attempt(palyra.reviewMemory(id, { decision: "accept" }))}>Remember it again</button>}
        {item.state === "review" && <><button type="button" onClick={() => attempt(palyra.reviewMemory(id, { decision: "accept" }))}>Keep it</button><button type="button" onClick={() => attempt(palyra.reviewMemory(id, { decision: "reject" }))}>Reject it</button></>}
        {text === undefined ? <button type="button" class="quiet small" onClick={() => setText(item.text)}>Correct</button>
          : <><button type="button" class="small" onClick={() => { attempt(palyra.changeMemory(id, { text })); setText(undefined); }}>Save</button><button type="button" class="quiet small" onClick={() => setText(undefined)}>Leave it</button></>}
        {item.state !== "forgotten" && <button type="button" class="quiet small" onClick={() => attempt(palyra.changeMemory(id, { pinned: !item.pinned }))}>{item.pinned ? "No longer keep in view" : "Keep in view"}</button>}
        {item.state !== "forgotten" && <button type="button" class="quiet small" onClick={() => attempt(palyra.forgetMemory(id))}>Forget</button>}
      </div>
      <Believed item={item} />
    </li>
  );
}

const PARTS: Record<keyof ScoreParts, string> = {
  words: "the same words", meaning: "a similar meaning", own: "both together", neighbour: "what it stands beside", recency: "how new it is", confidence: "how sure it is",
};

/** What a score is made of, part by part. */
function Score({ parts }: { parts: ScoreParts }): VNode {
  return (
    <ul class="score" aria-label="Why it was found">
      {(Object.entries(PARTS) as [keyof ScoreParts, string][]).filter(([name]) => parts[name]).map(([name, said]) => (
        <li>{said} <meter min={0} max={1} value={Number(parts[name])} aria-label={said} /> <span class="hint">{Number(parts[name]).toFixed(2)}</span></li>
      ))}
    </ul>
  );
}

interface Source {
  entry?: Entry;
  position: number;
}

/** Where it comes from: the entries it was taken from, who said it, how sure it is, and what it said before. */
function Believed({ item }: { item: Item }): VNode {
  const [found, setFound] = useState<{ sources: Source[]; versions: Item[] } | undefined>();
  const [error, setError] = useState("");
  const look = async () => {
    try {
      const sources = await Promise.all((item.provenance ?? []).slice(0, 20).map((position) =>
        palyra.getEntry(position).then((entry): Source => ({ entry, position }), (): Source => ({ position }))));
      const versions = (await palyra.memoryHistory(item.memory_id)).items.filter((each) => each.memory_id !== item.memory_id);
      setFound({ sources, versions });
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  const isTape = (entry: Entry) => /^[0-9A-Z]{26}$/.test(entry.tape);
  return (
    <details onToggle={(event) => event.currentTarget.open && !found && void look()}>
      <summary class="hint">Why do you believe this?</summary>
      <Problem text={error} />
      {found && (
        <dl class="facts">
          <dt>from</dt><dd>{ORIGINS[item.origin ?? ""] ?? "unknown"}{item.source ? `: ${visible(item.source)}` : ""}</dd>
          <dt>sure</dt><dd>{((item.confidence_bps ?? 10_000) / 100).toFixed(0)} %</dd>
          <dt>since</dt><dd>{when(item.created_ms ?? 0)}</dd>
          <dt>entries</dt>
          <dd>{found.sources.length ? found.sources.map(({ entry, position }) => entry && isTape(entry)
            ? <a href={href("timeline", entry.tape, String(entry.seq))}>entry {entry.seq} of that session</a> : <span>entry {position} of the journal</span>) : "none: it was told directly"}</dd>
          {found.versions.map((each) => <><dt>before</dt><dd><bdi>{visible(each.text)}</bdi> <span class="hint">{when(each.updated_ms ?? each.created_ms ?? 0)}</span></dd></>)}
        </dl>
      )}
    </details>
  );
}
