// The list of candidates by their state, and the one that is looked at. Nothing moves up by itself: a second click hits what the first did.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { argument, go, href } from "../core/router";
import { sessions } from "../core/store";
import { toReview } from "../core/notices";
import { ago, count, visible } from "../core/words";
import { useChanged } from "../ui/fresh";
import { Part, useAttempt, useLoaded } from "../ui/page";
import { Empty, Problem } from "../ui/parts";
import { SelectField } from "../ui/form";
import { Looked } from "./candidate";
import { KINDS, STATES } from "./words";
import type { Candidate, Reflected } from "../types";

type Which = "waiting" | "applied" | "suppressed" | "rejected" | "rolled_back" | "all";
const WHICH: readonly (readonly [Which, string])[] = [
  ["waiting", "Needs review"], ["applied", "Applied"], ["suppressed", "Low confidence"], ["rejected", "Rejected"], ["rolled_back", "Rolled back"], ["all", "All"],
];
const which = signal<Which>("waiting");
const kind = signal<Candidate["kind"] | "any">("any");
const PAGE = 100;

function counted(counts: Record<string, number>, wanted: Which): number {
  const of = wanted === "waiting" ? ["pending_review", "conflicted"] : wanted === "all" ? Object.keys(counts) : [wanted];
  return of.reduce((sum, each) => sum + (counts[each] ?? 0), 0);
}

export function Review(): VNode {
  const fresh = useChanged("learning");
  const wanted = { state: which.value, kind: kind.value, limit: PAGE };
  const key = JSON.stringify(wanted);
  const found = useLoaded(() => palyra.listCandidates(wanted), [key], fresh);
  const [older, setOlder] = useState<{ key: string; rows: Candidate[]; next: string } | undefined>();
  const { error, busy, attempt } = useAttempt();
  const beyond = older?.key === key ? older : undefined;
  const rows = [...(found.value?.candidates ?? []), ...(beyond?.rows ?? [])];
  const next = beyond ? beyond.next : (found.value?.next ?? "");
  const current = argument.value || rows[0]?.candidate_id || "";
  const detail = useRef<HTMLDivElement>(null);
  const open = (id: string) => {
    go("learning", id);
    // On a narrow screen it lies below the list.
    requestAnimationFrame(() => detail.current?.scrollIntoView({ block: "nearest" }));
  };
  const more = () => attempt(async () => {
    const page = await palyra.listCandidates({ ...wanted, before: next });
    setOlder({ key, rows: [...(beyond?.rows ?? []), ...page.candidates], next: page.next ?? "" });
  });
  const counts = found.value?.counts ?? {};
  useEffect(() => { if (found.value) toReview.value = counted(found.value.counts, "waiting"); }, [found.value]);
  return (
    <>
      <p>Palyra reviews finished conversations for things worth remembering. Each find is a suggestion until you accept it, and every change can be rolled back.</p>
      <div class="row fields">
        <SelectField label="Status" value={which.value} options={WHICH.map(([each, words]) => [each, `${words} (${count(counted(counts, each))})`] as const)} onChoose={(each) => { which.value = each; go("learning"); }} />
        <SelectField label="Kind" value={kind.value} options={[["any", "All kinds"], ...KINDS]} onChoose={(each) => { kind.value = each; go("learning"); }} />
      </div>
      <Problem text={found.error || error} />
      {found.value && !rows.length && <Empty><p>{which.value === "waiting" ? "Nothing to review. New suggestions appear here after conversations." : "None."}</p></Empty>}
      <div class="inbox">
        <div>
          <ul class="inbox-list" aria-label="Candidates">
            {rows.map((each) => (
              <li key={each.candidate_id} class={each.candidate_id === current ? "current" : ""}>
                <button type="button" class="plain" aria-current={each.candidate_id === current} onClick={() => open(each.candidate_id)}>
                  <bdi>{visible(each.content)}</bdi><span class="hint">{each.kind} · {STATES[each.state ?? "proposed"][1]} · {ago(each.updated_ms ?? 0)}</span>
                </button>
              </li>
            ))}
          </ul>
          {next && <button type="button" class="quiet" disabled={busy} onClick={() => void more()}>Show older</button>}
        </div>
        <div ref={detail}>{current && <Looked key={current} id={current} fresh={fresh} onAnswered={() => { if (!argument.peek()) go("learning", current); found.again(); }} />}</div>
      </div>
      <ReadNow onRead={found.again} />
    </>
  );
}

/** Reading a conversation at once, which otherwise happens when it has rested for a while. */
function ReadNow({ onRead }: { onRead: () => void }): VNode | null {
  const [chosen, choose] = useState("");
  const [found, setFound] = useState<Reflected | undefined>();
  const [said, say] = useState("");
  const { error, busy, attempt } = useAttempt();
  const all = sessions.value;
  useEffect(() => { if (!chosen && all[0]) choose(all[0].session_id); }, [all]);
  if (!all.length) return null;
  const read = () => attempt(async () => {
    say("");
    setFound(undefined);
    const last = (await palyra.listRuns(chosen, { limit: 50 })).runs.find((each) => each.state === "done");
    if (!last) return say("No finished run in it yet.");
    const reflected = await palyra.reflectOnRun(last.run_id);
    setFound(reflected);
    say(`${reflected.candidates.length ? `Found ${count(reflected.candidates.length)}` : "Found nothing new"} in your last message there.${reflected.note ? ` ${visible(reflected.note)}` : ""}`);
    onRead();
  });
  return (
    <Part id="read" title="Review a session now">
      <form class="row fields" onSubmit={(event) => { event.preventDefault(); void read(); }}>
        <SelectField label="Session" value={chosen} options={all.map((each) => [each.session_id, visible(each.title || "untitled").slice(0, 80)] as const)} onChoose={choose} />
        <button type="submit" disabled={busy || !chosen}>{busy ? "Reviewing…" : "Review now"}</button>
      </form>
      <Problem text={error} />
      <p role="status">{said}</p>
      <ul class="plain-list" aria-label="Found">{found?.candidates.map((each) => <li key={each.candidate_id}><a href={href("learning", each.candidate_id)}><bdi>{visible(each.content)}</bdi></a> <span class="hint">{STATES[each.state ?? "proposed"][1]}</span></li>)}</ul>
    </Part>
  );
}
