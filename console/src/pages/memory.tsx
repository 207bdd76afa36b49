// What is remembered: browsing, searching with the reasons of each find, correcting and forgetting.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { href, query as address, setQuery } from "../core/router";
import { lastEntry } from "../core/store";
import { visible, when } from "../core/words";
import { useLoaded } from "../ui/page";
import { Ago, Badge, Choice, Empty, Labels, PageHead, Problem, Skeleton } from "../ui/parts";
import type { Entry, Item, ScoreParts } from "../types";

interface Row {
  item: Item;
  score?: number;
  parts?: ScoreParts;
}
const SEARCH_MS = 250;
const ORIGINS: Record<string, string> = { user: "from you", tool: "saved by the agent", learned: "learned from a conversation", import: "imported" };
const EMPTY = {
  active: "No memories yet. Add one above, or tell the agent to remember something: it is used in all your sessions.",
  review: "Nothing to review. Memories from untrusted sources, or that read like instructions, wait here for your approval.",
  forgotten: "No forgotten memories.",
};

export function MemoryPage(): VNode {
  const tab = address.value.get("tab");
  const state = tab === "review" || tab === "forgotten" ? tab : "active";
  const query = address.value.get("q") ?? "";
  const [text, setText] = useState(query.trim());
  const [error, setError] = useState("");
  const changed = lastEntry.value?.kind.startsWith("memory.") ? lastEntry.value.position : 0;
  useEffect(() => {
    const timer = setTimeout(() => setText(query.trim()), query ? SEARCH_MS : 0);
    return () => clearTimeout(timer);
  }, [query]);
  const found = useLoaded(async (): Promise<readonly Row[]> => (text ? (await palyra.searchMemory({ limit: 50, text })).found
    : (await palyra.listMemory({ state })).items.map((item) => ({ item }))), [state, text], changed);
  const rows = found.value;
  const attempt = (work: Promise<unknown>) => void work.then(() => { setError(""); found.again(); }, (failure: unknown) => setError(wordsOf(failure)));
  return (
    <div class="page">
      <PageHead title="Memory">
        <Choice label="Status" value={state} options={[["active", "Active"], ["review", "Needs review"], ["forgotten", "Forgotten"]]} onChoose={(value) => setQuery({ tab: value === "active" ? "" : value })} />
        <input type="search" aria-label="Search memory" placeholder="Search memory" value={query} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
      </PageHead>
      <form class="row add-one" onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem("text") as HTMLInputElement;
        if (field.value.trim()) attempt(palyra.addMemory({ text: field.value.trim() }).then(() => (field.value = "")));
      }}>
        <input name="text" aria-label="New memory" placeholder="New memory" class="grow" /><button type="submit" class="main">Add memory</button>
      </form>
      <Problem text={error || found.error} />
      {!rows && !found.error && <Skeleton label="Loading…" lines={6} />}
      {rows && !rows.length && <Empty><p>{text ? "No results. Try other words." : EMPTY[state]}</p></Empty>}
      <ul class="history">{rows?.map((row) => <Remembered key={row.item.memory_id} row={row} attempt={attempt} />)}</ul>
    </div>
  );
}

function Remembered({ row: { item, score, parts }, attempt }: { row: Row; attempt: (work: Promise<unknown>) => void }): VNode {
  const [text, setText] = useState<string | undefined>();
  return (
    <li class="remembered">
      <div class="said-and-do">
        {text === undefined ? <p dir="auto"><bdi>{visible(item.text)}</bdi></p>
          : <textarea aria-label="Edited text" rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
        <Actions item={item} text={text} setText={setText} attempt={attempt} />
      </div>
      <div class="row">
        <Badge>{item.kind}</Badge><Labels label={item.label} />{item.pinned && <Badge tone="good">Pinned</Badge>}
        <span class="hint">{item.updated_ms ? <Ago ms={item.updated_ms} /> : ""}{item.origin ? `, ${ORIGINS[item.origin] ?? item.origin}` : ""}{item.source ? ` (${visible(item.source)})` : ""}</span>
        {score !== undefined && <span class="hint">Score {score.toFixed(2)}</span>}
      </div>
      {parts && <Score parts={parts} />}
      {item.why && <p class="hint">{visible(item.why)}</p>}
      <Believed item={item} />
    </li>
  );
}

function Actions({ item, text, setText, attempt }: { item: Item; text: string | undefined; setText: (text: string | undefined) => void; attempt: (work: Promise<unknown>) => void }): VNode {
  const id = item.memory_id;
  return (
    <div class="row">
      {item.state === "forgotten" && <button type="button" onClick={() => attempt(palyra.reviewMemory(id, { decision: "accept" }))}>Restore</button>}
      {item.state === "review" && <><button type="button" onClick={() => attempt(palyra.reviewMemory(id, { decision: "accept" }))}>Approve</button><button type="button" onClick={() => attempt(palyra.reviewMemory(id, { decision: "reject" }))}>Reject</button></>}
      {text === undefined ? <button type="button" class="quiet small" onClick={() => setText(item.text)}>Edit</button>
        : <><button type="button" class="small" onClick={() => { attempt(palyra.changeMemory(id, { text })); setText(undefined); }}>Save</button><button type="button" class="quiet small" onClick={() => setText(undefined)}>Cancel</button></>}
      {item.state !== "forgotten" && <button type="button" class="quiet small" onClick={() => attempt(palyra.changeMemory(id, { pinned: !item.pinned }))}>{item.pinned ? "Unpin" : "Pin"}</button>}
      {item.state !== "forgotten" && <button type="button" class="quiet small" onClick={() => attempt(palyra.forgetMemory(id))}>Forget</button>}
    </div>
  );
}

const PARTS: Record<keyof ScoreParts, string> = {
  words: "keywords", meaning: "meaning", own: "combined", neighbour: "context", recency: "recency", confidence: "confidence",
};

/** What a score is made of, part by part. */
function Score({ parts }: { parts: ScoreParts }): VNode {
  return (
    <ul class="score" aria-label="Score details">
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
      <summary class="hint">Where does this come from?</summary>
      <Problem text={error} />
      {found && (
        <dl class="facts">
          <dt>Source</dt><dd>{ORIGINS[item.origin ?? ""] ?? "unknown"}{item.source ? `: ${visible(item.source)}` : ""}</dd>
          <dt>Confidence</dt><dd>{((item.confidence_bps ?? 10_000) / 100).toFixed(0)} %</dd>
          <dt>Created</dt><dd>{when(item.created_ms ?? 0)}</dd>
          <dt>Evidence</dt>
          <dd>{found.sources.length ? found.sources.map(({ entry, position }) => entry && isTape(entry)
            ? <a href={href("timeline", entry.tape, String(entry.seq))}>entry {entry.seq} of the session</a> : <span>entry {position} of the journal</span>) : "none: added directly"}</dd>
          {found.versions.map((each) => <><dt>Earlier</dt><dd><bdi>{visible(each.text)}</bdi> <span class="hint">{when(each.updated_ms ?? each.created_ms ?? 0)}</span></dd></>)}
        </dl>
      )}
    </details>
  );
}
