// The inbox of approvals, worked through with the keyboard or one thumb, and the answers given before.
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { answer, ApprovalCard, DEAF_MS, FILES, Meta, type Origin, Previewed, question, reasonOf, RiskBadge, What } from "../chat/approval";
import { originAmong, type Said } from "../chat/origins";
import { Together } from "../chat/together";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { go, href, query, setQuery } from "../core/router";
import { lastEntry, listed, pending, sessions } from "../core/store";
import { many, toolWords, visible, when } from "../core/words";
import { Ago, Badge, Choice, Empty, Labels, PageHead, Problem, Skeleton } from "../ui/parts";
import { Tell } from "../ui/tell";
import type { Approval, ApprovalPreview, Entry, InputReceived, ToolFinished, ToolProposed } from "../types";

const OLDER = 100;

function fits(each: Approval): boolean {
  if (query.value.get("risk") === "high" && (each.request.risk === "low" || each.request.risk === "medium")) return false;
  const tool = query.value.get("tool");
  if (tool && each.request.tool !== tool) return false;
  const wanted = (query.value.get("q") ?? "").trim().toLowerCase();
  return !wanted || `${each.request.tool} ${each.request.preview.title} ${each.request.why}`.toLowerCase().includes(wanted);
}

export function ApprovalsPage(): VNode {
  const chosen = query.value.get("tool") ?? "";
  const tools = [...new Set(pending.value.map((each) => each.request.tool).concat(chosen || []))].sort();
  const answered = query.value.get("tab") === "answered";
  return (
    <div class="page">
      <PageHead title="Approvals" beside={pending.value.length > 0 && <Badge tone="warn">{pending.value.length} waiting</Badge>}>
        <Choice label="Status" value={answered ? "answered" : "open"} options={[["open", "Waiting"], ["answered", "Answered"]]} onChoose={(value) => setQuery({ tab: value === "open" ? "" : value })} />
        <div class="row only-wide"><Choice label="Risk" value={query.value.get("risk") === "high" ? "high" : "any"} options={[["any", "Any risk"], ["high", "High risk only"]]} onChoose={(value) => setQuery({ risk: value === "any" ? "" : value })} />
        <select aria-label="Tool" value={chosen} onChange={(event) => setQuery({ tool: event.currentTarget.value })}>
          <option value="">All tools</option>
          {tools.map((each) => <option value={each}>{toolWords(each)}</option>)}
        </select>
        <input type="search" aria-label="Filter approvals" placeholder="Filter" value={query.value.get("q") ?? ""} onInput={(event) => setQuery({ q: event.currentTarget.value })} /></div>
      </PageHead>
      {answered ? <Answered /> : <Open />}
    </div>
  );
}

function Open(): VNode {
  const [at, setAt] = useState(0);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const shown = pending.value.filter(fits);
  const rows = questionsOf(shown);
  const current = rows[Math.min(at, rows.length - 1)];
  const chosen = shown.filter((each) => picked.has(each.approval_id));
  const has = (row: readonly Approval[]) => row.every((each) => picked.has(each.approval_id));
  const toggle = (row: readonly Approval[]) => {
    const next = new Set(picked);
    const taken = has(row);
    for (const { approval_id } of row) if (taken) next.delete(approval_id); else next.add(approval_id);
    setPicked(next);
  };

  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLElement && event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !current) return;
      if (event.key === "j" || event.key === "ArrowDown") setAt(Math.min(at + 1, rows.length - 1));
      else if (event.key === "k" || event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
      else if (event.key === "x") toggle(current);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });

  if (!listed.value) return <Skeleton label="Loading…" lines={8} />;
  if (!shown.length)
    return pending.value.length
      ? <Empty><h2>No match</h2><p>{many(pending.value.length, "approval")} waiting, but none matches the filter.</p><div class="row"><button type="button" onClick={() => setQuery({ q: "", tool: "", risk: "" })}>Clear filter</button></div></Empty>
      : <Empty><h2>Nothing needs approval</h2><p>When Palyra wants to change files, run commands or send something, it asks here first.</p><div class="row"><button type="button" class="main" onClick={() => go("chat")}>Open chat</button><a class="button" href={href("policies")}>What needs approval?</a></div><Tell /></Empty>;
  const session = current && sessions.value.find((each) => each.session_id === current[0]!.session_id);
  return (
    <>
      <div class="inbox">
        <div>
          <ul class="inbox-list" aria-label="Waiting approvals">
            {rows.map((row, number) => {
              const [each] = row as [Approval];
              const title = row.length > 1 ? `${row.length} tool calls` : visible(each.request.preview.title);
              return (
                <li key={each.approval_id} class={row === current ? "current" : ""}>
                  <input type="checkbox" aria-label={`Select ${title}`} checked={has(row)} onChange={() => toggle(row)} />
                  <button type="button" class="plain" aria-current={row === current} onClick={() => setAt(number)}>
                    <bdi>{title}</bdi><span class="hint">{[...new Set(row.map(({ request }) => toolWords(request.tool)))].join(", ")} · <Ago ms={each.requested_ms} /></span>
                  </button>
                </li>
              );
            })}
          </ul>
          {shown.length > 1 && picked.size === 0 && <button type="button" class="quiet small" onClick={() => setPicked(new Set(shown.map((each) => each.approval_id)))}>Select all {shown.length}</button>}
        </div>
        {chosen.length > 0 && <Selected key="selected" chosen={chosen} onClear={() => setPicked(new Set())} />}
        {current && !chosen.length && (
          <div>
            <h2 class="unseen">Approval</h2>
            <p class="hint"><a href={href("chat", current[0]!.session_id)}>{visible(session?.title || "Open session")}</a> · <Ago ms={current[0]!.requested_ms} /> · <a href={href("timeline", current[0]!.session_id, String(current[0]!.seq ?? ""))} class="whole">Show on timeline</a></p>
            <Asked key={current[0]!.request.group || current[0]!.approval_id} approvals={current} />
          </div>
        )}
      </div>
      <Tell />
    </>
  );
}

type Whole = Readonly<Record<string, ApprovalPreview>>;

/** Several approvals under each other, answered at once. Only what stands here whole, and was scrolled to its end, is approved. */
function Selected({ chosen, onClear }: { chosen: readonly Approval[]; onClear: () => void }): VNode {
  const [whole, setWhole] = useState<Whole>({});
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => setBusy(false), DEAF_MS);
    return () => clearTimeout(timer);
  }, []);
  const names = chosen.map((each) => each.approval_id).join();
  useEffect(() => {
    for (const each of chosen)
      if (each.request.preview.length && !whole[each.approval_id])
        void palyra.previewApproval(each.approval_id).then((found) => setWhole((before) => ({ ...before, [each.approval_id]: found })), (failure: unknown) => setError(wordsOf(failure)));
  }, [names]);
  const previews = new Map(chosen.map((each) => [each.approval_id, whole[each.approval_id]?.preview ?? each.request.preview]));
  const complete = (each: Approval) => each.request.about === "tool" && !previews.get(each.approval_id)!.length;
  const able = chosen.filter(complete);
  useEffect(() => {
    const watcher = new IntersectionObserver((entries) => {
      const now = entries.filter((each) => each.isIntersecting).map((each) => (each.target as HTMLElement).dataset.end!);
      if (now.length) setSeen((before) => new Set([...before, ...now]));
    });
    for (const end of box.current?.querySelectorAll("[data-end]") ?? []) watcher.observe(end);
    return () => watcher.disconnect();
  }, [names, able.length]);
  const unseen = able.filter((each) => !seen.has(each.approval_id)).length;
  const say = async (which: readonly Approval[], decision: "allow" | "deny") => {
    setError("");
    setBusy(true);
    const failed: string[] = [];
    for (const each of which) {
      const digest = whole[each.approval_id]?.preview.digest;
      await answer(each.approval_id, { decision, ...(decision === "allow" ? { scope: "once", ...(digest ? { seen: digest } : {}) } : {}) })
        .catch((failure: unknown) => failed.push(`${visible(each.request.preview.title)}: ${wordsOf(failure)}`));
    }
    setError(failed.join(" · "));
    setBusy(false);
  };
  return (
    <div ref={box} class="selected">
      <h2 class="unseen">Selected approvals</h2>
      <div class="row bulk"><strong>{chosen.length} selected</strong>
        <button type="button" class="quiet" onClick={onClear}>Clear selection</button>
        <button type="button" class="yes main" disabled={busy || !able.length || unseen > 0} onClick={() => void say(able, "allow")}>Approve {able.length}</button>
        <button type="button" class="no" disabled={busy} onClick={() => void say(chosen, "deny")}>Deny {chosen.length}</button>
        <span class="hint" role="status">{unseen ? `Scroll through all of them to approve: ${able.length - unseen} of ${able.length} seen.` : able.length < chosen.length ? `${chosen.length - able.length} cannot be approved here: not shown whole.` : ""}</span>
      </div>
      <Problem text={error} />
      {chosen.map((each) => (
        <section key={each.approval_id} class={`approval risk-${each.request.risk}`} aria-label={`Selected: ${visible(each.request.preview.title)}`}>
          <header><h3>{question(each.request)}</h3><RiskBadge risk={each.request.risk} />{FILES.test(each.request.tool) && <Badge>Can be undone</Badge>}<Labels label={each.request.label} /><a class="hint" href={href("chat", each.session_id)}>Open session</a></header>
          <Meta request={each.request} preview={previews.get(each.approval_id)!} />
          <What preview={previews.get(each.approval_id)!} />
          {!complete(each) && <p class="inside" role="status"><strong>Not shown whole.</strong> It is not approved with the others; open it alone to answer it.</p>}
          <span data-end={each.approval_id} />
        </section>
      ))}
    </div>
  );
}

interface Found { proposed: ToolProposed | undefined; origin: Origin | undefined }

/** The card of a question with the calls that it is about and what stood before them, which is on the tape just before it. */
function Asked({ approvals }: { approvals: readonly Approval[] }): VNode {
  const [entries, setEntries] = useState<{ list: readonly Entry[]; all: boolean } | undefined>();
  const { session_id, seq = 0 } = approvals.at(-1)!;
  useEffect(() => {
    const after = Math.max(0, seq - NEARBY);
    void palyra.listEntries(session_id, { after, limit: NEARBY }).then(({ entries }) => setEntries({ list: entries, all: after === 0 }), () => setEntries({ list: [], all: false }));
  }, []);
  // Whole or not at all: a card that grows while it is read moves what is to be pressed.
  if (!entries) return <Skeleton label="Loading…" lines={8} />;
  const lines = approvals.map(({ request }) => ({ request, ...(entries.list.length ? foundIn(entries.list, request.call_id, entries.all) : {}) }));
  return lines.length > 1 ? <Together lines={lines} keys /> : <ApprovalCard key={lines[0]!.request.approval_id} {...lines[0]!} keys />;
}

/** Approvals as questions: the calls of one turn are one. */
function questionsOf(approvals: readonly Approval[]): Approval[][] {
  const found = new Map<string, Approval[]>();
  for (const each of approvals) {
    const id = each.request.group || each.approval_id;
    found.set(id, [...(found.get(id) ?? []), each]);
  }
  return [...found.values()].map((row) => row.sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0)));
}

function foundIn(entries: readonly Entry[], callId: string, all: boolean): Found {
  const calls = new Map<string, ToolProposed>();
  const before: Said[] = [];
  for (const { kind, event } of entries) {
    if (kind === "tool.proposed") calls.set((event as ToolProposed).call_id, event as ToolProposed);
    else if (kind === "input.received") before.push({ text: (event as InputReceived).text });
    else if (kind === "tool.finished") {
      const { call_id, text } = event as ToolFinished;
      const call = calls.get(call_id);
      if (call && text) before.push({ text, name: visible(String(Object.values(call.arguments)[0] ?? call.tool)).split("\n")[0]!.slice(0, 120) });
    }
  }
  return { proposed: calls.get(callId), origin: originAmong(before, all) };
}

const NEARBY = 500;
const DECISIONS: Record<string, string> = { allow: "Approved", deny: "Denied", expired: "Expired", withdrawn: "Withdrawn", happened: "It happened", again: "Run again", skip: "Skipped" };

function Answered(): VNode {
  const [rows, setRows] = useState<Approval[] | undefined>();
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState("");
  const changed = lastEntry.value?.kind === "approval.resolved" ? lastEntry.value.position : 0;
  useEffect(() => {
    let stale = false;
    void palyra.listApprovals({ pending: "false", limit: OLDER }).then(
      (page) => { if (!stale) { setRows(page.approvals); setNext(page.next); } },
      (failure: unknown) => { if (!stale) setError(wordsOf(failure)); },
    );
    return () => { stale = true; };
  }, [changed]);
  const older = () => void palyra.listApprovals({ pending: "false", limit: OLDER, before: next ?? "" }).then((page) => { setRows([...(rows ?? []), ...page.approvals]); setNext(page.next); }, (failure: unknown) => setError(wordsOf(failure)));
  const shown = rows?.filter(fits);
  return (
    <>
      <Problem text={error} />
      {!shown && !error && <Skeleton label="Loading…" lines={8} />}
      {shown && !shown.length && <Empty><h2>No answers yet</h2><p>Approved and denied calls are listed here.</p><div class="row"><button type="button" onClick={() => setQuery({ tab: "", q: "", tool: "", risk: "" })}>Show waiting</button></div></Empty>}
      <ul class="history">
        {shown?.map((each) => (
          <li key={each.approval_id}>
            <details>
              <summary><Badge tone={each.decision === "allow" ? "good" : each.decision === "deny" ? "bad" : ""}>{DECISIONS[each.decision ?? ""] ?? each.decision}</Badge> <bdi>{visible((each.resolution?.preview ?? each.request.preview).title)}</bdi> <span class="hint"><Ago ms={each.resolved_ms ?? each.requested_ms} /></span></summary>
              <p class="hint">{question(each.request)} {reasonOf(each.request)}</p>
              <Previewed request={each.request} resolution={each.resolution} />
              <p class="hint">Answered {when(each.resolved_ms ?? 0)}{each.resolution?.surface ? ` in ${each.resolution.surface}` : ""}{each.resolution?.reason ? `: ${visible(each.resolution.reason)}` : ""}. <a href={href("chat", each.session_id)}>Open session</a> · <a href={href("timeline", each.session_id, String(each.seq ?? ""))}>Show on timeline</a></p>
            </details>
          </li>
        ))}
      </ul>
      {next && <button type="button" class="quiet" onClick={older}>Show older</button>}
    </>
  );
}
