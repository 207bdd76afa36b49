// The sessions: by date, pinned first, found by name and by what was said, and changed one by one or several at once.
import { computed, signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { argument, go, href } from "../core/router";
import { listed, moreSessions, pending, refreshLists, sessions, showMoreSessions } from "../core/store";
import { visible } from "../core/words";
import { Menu } from "../ui/menu";
import { laterPart } from "../ui/page";
import { Ago, Badge, marked, Problem, Skeleton } from "../ui/parts";
import type { Said, Session } from "../types";
import type { Deletable } from "./deleting";

/** Loaded when somebody asks for it first. */
export const DeleteDialog = laterPart<{ which: readonly Deletable[]; onClose: () => void }>(() => import("./deleting").then((it) => it.DeleteDialog));

const SEARCH_MS = 250;
const DAY_MS = 86_400_000;
const waiting = computed(() => new Set(pending.value.map((each) => each.session_id)));
const query = signal("");
const archived = signal(false);

/** The heading that a session stands under. */
export function dayOf(ms: number, now = Date.now()): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (ms >= midnight) return "Today";
  if (ms >= midnight - DAY_MS) return "Yesterday";
  if (ms >= midnight - 6 * DAY_MS) return "Previous 7 days";
  return new Date(ms).toLocaleDateString("en-US", { month: "long", year: "numeric" });
}

function grouped(rows: readonly Session[]): [string, Session[]][] {
  const found = new Map<string, Session[]>();
  const kept = rows.filter((each) => each.kept);
  if (kept.length) found.set("Pinned", kept);
  for (const each of rows) if (!each.kept) found.set(dayOf(each.updated_ms), [...(found.get(dayOf(each.updated_ms)) ?? []), each]);
  return [...found];
}

export function SessionList({ current }: { current: string }): VNode {
  const [found, setFound] = useState<Said[] | undefined>();
  const [searching, setSearching] = useState(false);
  const [error, setError] = useState("");
  const [put, setPut] = useState<Session[] | undefined>();
  const [picked, setPicked] = useState<ReadonlySet<string> | undefined>();
  const [doomed, setDoomed] = useState<readonly Session[] | undefined>();
  const wanted = query.value.trim();
  useEffect(() => {
    setError("");
    setSearching(!!wanted);
    if (!wanted) return setFound(undefined);
    let stale = false;
    const timer = setTimeout(() => {
      void palyra.searchSessions({ q: wanted.slice(0, 500) }).then(
        (page) => { if (!stale) setFound(page.found); },
        (failure: unknown) => { if (!stale) setError(wordsOf(failure)); },
      ).finally(() => { if (!stale) setSearching(false); });
    }, SEARCH_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [wanted]);
  const inArchive = archived.value;
  useEffect(() => {
    if (!inArchive) return setPut(undefined);
    let stale = false;
    void palyra.listSessions({ archived: true, limit: 100 }).then(
      (page) => { if (!stale) setPut(page.sessions); },
      (failure: unknown) => { if (!stale) setError(wordsOf(failure)); },
    );
    return () => { stale = true; };
  }, [inArchive, sessions.value]);

  const lowered = wanted.toLowerCase();
  const rows = inArchive ? (put ?? []) : sessions.value;
  const named = rows.filter((each) => !lowered || (each.title ?? "").toLowerCase().includes(lowered));
  const change = async (ids: Iterable<string>, what: Parameters<typeof palyra.changeSession>[1] & object) => {
    setError("");
    try {
      for (const id of ids) {
        // What was sealed must be in the journal again before anything about it can change.
        if (what.archived === false && rows.find((each) => each.session_id === id)?.segment_id) await palyra.restoreSession(id);
        await palyra.changeSession(id, what);
        if (what.archived && id === argument.peek()) go("chat");
      }
    } catch (failure) {
      setError(wordsOf(failure));
    }
    setPicked(undefined);
    await refreshLists().catch(() => undefined);
  };
  const toggle = (id: string) => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    setPicked(next);
  };
  const also = found?.filter((each) => !named.some((row) => row.session_id === each.session_id)) ?? [];
  return (
    <nav class="sessions" aria-label="Sessions">
      <a class="button main" href={href("chat")}>New session</a>
      <div class="find-row"><input type="search" aria-label="Search sessions" placeholder="Search sessions" value={query.value} onInput={(event) => (query.value = event.currentTarget.value)} /></div>
      <div class="tools-row">
        <button type="button" class="quiet small" aria-pressed={inArchive} onClick={() => (archived.value = !inArchive)}>{inArchive ? "Back to sessions" : "Archived"}</button>
        {rows.length > 1 && <button type="button" class="quiet small" aria-pressed={!!picked} onClick={() => setPicked(picked ? undefined : new Set())}>{picked ? "Cancel" : "Select"}</button>}
        {searching && <span class="spin" role="status"><span class="unseen">Searching…</span></span>}
      </div>
      {picked && (
        <div class="tools-row">
          <button type="button" class="small" disabled={!picked.size} onClick={() => void change(picked, { archived: !inArchive })}>{inArchive ? "Restore" : "Archive"} {picked.size || ""}</button>
          <button type="button" class="small" disabled={!picked.size} onClick={() => void change(picked, { kept: true })}>Pin</button>
          <button type="button" class="small no" disabled={!picked.size} onClick={() => setDoomed(rows.filter((each) => picked.has(each.session_id)))}>Delete…</button>
          <button type="button" class="quiet small" onClick={() => setPicked(new Set(named.map((each) => each.session_id)))}>Select all</button>
        </div>
      )}
      {doomed && <DeleteDialog which={doomed} onClose={() => { setDoomed(undefined); setPicked(undefined); }} />}
      <Problem text={error} />
      {!listed.value && <Skeleton label="Loading sessions…" lines={6} />}
      {grouped(named).map(([day, group]) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul>{group.map((each) => <Row key={each.session_id} session={each} current={current} wanted={wanted} picked={picked?.has(each.session_id)} onPick={toggle} change={change} onDelete={() => setDoomed([each])} />)}</ul>
        </section>
      ))}
      {also.length > 0 && (
        <section aria-label="In messages">
          <h2>In messages</h2>
          <ul>{also.map((each) => (
            <li key={`${each.session_id}${each.seq}`}>
              <a href={href("chat", each.session_id)}><bdi class="session-title">{visible(each.title || "Untitled")}</bdi><bdi class="snippet">{marked(visible(each.snippet), wanted)}</bdi></a>
            </li>
          ))}</ul>
        </section>
      )}
      {lowered && !named.length && found?.length === 0 && <p class="hint">No sessions match “{wanted}”. <button type="button" class="quiet small" onClick={() => (query.value = "")}>Clear search</button></p>}
      {listed.value && !rows.length && !lowered && <p class="hint">{inArchive ? "No archived sessions." : "No sessions yet. Write a message to start one."}</p>}
      {moreSessions.value && !lowered && !inArchive && <button type="button" class="quiet" onClick={() => void showMoreSessions()}>Show older</button>}
    </nav>
  );
}

function Row({ session, current, wanted, picked, onPick, change, onDelete }: {
  session: Session;
  current: string;
  wanted: string;
  /** Whether it is selected; undefined while nobody selects. */
  picked: boolean | undefined;
  onPick: (id: string) => void;
  change: (ids: Iterable<string>, what: { title?: string; kept?: boolean; archived?: boolean }) => Promise<void>;
  onDelete: () => void;
}): VNode {
  const [naming, setNaming] = useState(false);
  const id = session.session_id;
  const title = visible(session.title || "Untitled");
  const state = waiting.value.has(id) ? <Badge tone="warn">Needs approval</Badge> : session.active ? <Badge tone="info">Working</Badge> : session.segment_id ? <Badge title="Its entries lie in a sealed file. Restore it to read it.">Sealed</Badge> : null;
  const about = <small>{state}<Ago ms={session.updated_ms} />{session.channel && <bdi>· {visible(session.channel)}</bdi>}</small>;
  if (naming) {
    const done = (given: string) => {
      setNaming(false);
      if (given.trim() && given !== session.title) void change([id], { title: given.trim() });
    };
    return <li><input class="rename" aria-label="New name" ref={(it) => it?.select()} defaultValue={session.title ?? ""} onBlur={(event) => done(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Enter") event.currentTarget.blur(); else if (event.key === "Escape") setNaming(false); }} /></li>;
  }
  if (picked !== undefined) return <li><label class="picked"><input type="checkbox" checked={picked} onChange={() => onPick(id)} /><span><bdi class="session-title">{title}</bdi>{about}</span></label></li>;
  return (
    <li class={id === current ? "here" : ""}>
      <a href={href("chat", id)} aria-current={id === current ? "page" : undefined}>
        <bdi class="session-title">{wanted ? marked(title, wanted) : title}</bdi>{about}
      </a>
      <Menu label={`Actions for ${title}`}>
        {!session.segment_id && <><button type="button" onClick={() => setNaming(true)}>Rename</button><button type="button" onClick={() => void change([id], { kept: !session.kept })}>{session.kept ? "Unpin" : "Pin"}</button></>}
        <button type="button" onClick={() => void change([id], { archived: !session.archived })}>{session.archived ? "Restore" : "Archive"}</button>
        {!session.segment_id && <><a href={href("timeline", id)}>Timeline</a><button type="button" class="no" onClick={onDelete}>Delete…</button></>}
      </Menu>
    </li>
  );
}
