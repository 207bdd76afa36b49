// The inbox of open questions, worked through with the keyboard, and what was answered before.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { answer, ApprovalCard, Previewed } from "../chat/approval";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { lastEntry, listed, pending } from "../core/store";
import { ago, toolWords, visible, when } from "../core/words";
import { Badge, Choice, Empty, PageHead, Problem } from "../ui/parts";
import { Tell } from "../ui/tell";
import type { Approval, ToolProposed } from "../types";

const tab = signal<"open" | "answered">("open");
const risk = signal<"any" | "high">("any");
const words = signal("");
const tool = signal("");
const OLDER = 100;

function fits(each: Approval): boolean {
  if (risk.value === "high" && each.request.risk === "low") return false;
  if (tool.value && each.request.tool !== tool.value) return false;
  const wanted = words.value.trim().toLowerCase();
  return !wanted || `${each.request.tool} ${each.request.preview.title} ${each.request.why}`.toLowerCase().includes(wanted);
}

export function ApprovalsPage(): VNode {
  const tools = [...new Set(pending.value.map((each) => each.request.tool).concat(tool.value || []))].sort();
  return (
    <div class="page">
      <PageHead title="Approvals">
        <Choice label="Which" value={tab.value} options={[["open", "Open"], ["answered", "Answered"]]} onChoose={(value) => (tab.value = value)} />
        <Choice label="Risk" value={risk.value} options={[["any", "Any risk"], ["high", "Riskier"]]} onChoose={(value) => (risk.value = value)} />
        <select aria-label="Kind of step" value={tool.value} onChange={(event) => (tool.value = event.currentTarget.value)}>
          <option value="">Every kind of step</option>
          {tools.map((each) => <option value={each}>{toolWords(each)}</option>)}
        </select>
        <input type="search" aria-label="Filter approvals" placeholder="Filter" value={words.value} onInput={(event) => (words.value = event.currentTarget.value)} />
      </PageHead>
      <Tell />
      {tab.value === "open" ? <Open /> : <Answered />}
    </div>
  );
}

function Open(): VNode {
  const [at, setAt] = useState(0);
  const [armed, setArmed] = useState("");
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState("");
  const shown = pending.value.filter(fits);
  const current = shown[Math.min(at, shown.length - 1)];
  const attempt = async (work: () => Promise<void>) => {
    setError("");
    setArmed("");
    try {
      await work();
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  const denyPicked = () => attempt(async () => {
    for (const id of picked) await answer(id, { decision: "deny" });
    setPicked(new Set());
  });
  const toggle = (id: string) => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    setPicked(next);
  };

  // Before the next key can come: a second press must know of the first.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select, button, summary, a, [contenteditable]") && event.key === "Enter") return;
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select")) return;
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !current) return;
      if (event.key === "j" || event.key === "ArrowDown") setAt(Math.min(at + 1, shown.length - 1));
      else if (event.key === "k" || event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
      else if (event.key === "x") toggle(current.approval_id);
      else if (event.key === "d" && current.request.about === "tool") void attempt(() => answer(current.approval_id, { decision: "deny" }));
      else if (event.key === "a" && current.request.about === "tool") {
        // A yes takes two presses about the same question: one is easily a slip.
        if (current.request.preview.length) setError("Only a part of this is shown: show everything on the card first.");
        else if (armed === current.approval_id) void attempt(() => answer(current.approval_id, { decision: "allow", scope: "once" }));
        else setArmed(current.approval_id);
        event.preventDefault();
        return;
      } else return;
      setArmed("");
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });

  if (!shown.length) return <Empty><p>{listed.value ? (pending.value.length ? "Nothing fits the filter." : "Nothing waits for you.") : "Loading…"}</p></Empty>;
  return (
    <>
      <p class="hint keys"><kbd>j</kbd> <kbd>k</kbd> move · <kbd>d</kbd> deny · <kbd>a</kbd> twice to allow once · <kbd>x</kbd> pick</p>
      <Problem text={error} />
      <p role="status" class="armed">{armed ? "Press a again to allow this once; any other key takes it back." : ""}</p>
      {shown.length > 1 && picked.size === 0 && <div class="row"><button type="button" class="quiet small" onClick={() => setPicked(new Set(shown.map((each) => each.approval_id)))}>Pick all {shown.length}</button></div>}
      {picked.size > 0 && <div class="row"><button type="button" class="no" onClick={() => void denyPicked()}>Deny the {picked.size} picked</button><button type="button" class="quiet" onClick={() => setPicked(new Set())}>Pick none</button></div>}
      <div class="inbox">
        <ul class="inbox-list" aria-label="Open questions">
          {shown.map((each, number) => (
            <li key={each.approval_id} class={each === current ? "current" : ""}>
              <input type="checkbox" aria-label={`Pick ${each.request.preview.title}`} checked={picked.has(each.approval_id)} onChange={() => toggle(each.approval_id)} />
              <button type="button" class="plain" aria-current={each === current} onClick={() => setAt(number)}>
                <bdi>{visible(each.request.preview.title)}</bdi><span class="hint">{toolWords(each.request.tool)} · {ago(each.requested_ms)}</span>
              </button>
            </li>
          ))}
        </ul>
        {current && (
          <div>
            <Asked key={current.approval_id} approval={current} />
            <p><a href={href("chat", current.session_id)}>Open the conversation</a> · <a href={href("timeline", current.session_id, String(current.seq ?? ""))}>See the moment on the timeline</a></p>
          </div>
        )}
      </div>
    </>
  );
}

/** The card of a question, with the arguments it is about: they stand on the tape just before it, and can be edited. */
function Asked({ approval }: { approval: Approval }): VNode {
  const [found, setFound] = useState<Record<string, unknown> | undefined>();
  useEffect(() => {
    const after = Math.max(0, (approval.seq ?? 0) - NEARBY);
    void palyra.listEntries(approval.session_id, { after, limit: NEARBY }).then(({ entries }) => {
      const proposed = entries.findLast((each) => each.kind === "tool.proposed" && (each.event as ToolProposed).call_id === approval.request.call_id);
      setFound((proposed?.event as ToolProposed | undefined)?.arguments);
    }, () => undefined);
  }, [approval.approval_id]);
  return <ApprovalCard request={approval.request} {...(found ? { arguments: found } : {})} />;
}

const NEARBY = 60;
const DECISIONS: Record<string, string> = { allow: "allowed", deny: "denied", expired: "expired", withdrawn: "no longer needed", happened: "had happened", again: "done again", skip: "left out" };

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
      {shown && !shown.length && <Empty><p>Nothing was answered yet.</p></Empty>}
      <ul class="history">
        {shown?.map((each) => (
          <li key={each.approval_id}>
            <details>
              <summary><Badge tone={each.decision === "allow" ? "good" : each.decision === "deny" ? "bad" : ""}>{DECISIONS[each.decision ?? ""] ?? each.decision}</Badge> <bdi>{visible((each.resolution?.preview ?? each.request.preview).title)}</bdi> <span class="hint">{ago(each.resolved_ms ?? each.requested_ms)}</span></summary>
              <Previewed request={each.request} resolution={each.resolution} />
              <p class="hint">Answered {when(each.resolved_ms ?? 0)}{each.resolution?.surface ? ` in ${each.resolution.surface}` : ""}{each.resolution?.reason ? `: ${visible(each.resolution.reason)}` : ""}. <a href={href("chat", each.session_id)}>Open the conversation</a> · <a href={href("timeline", each.session_id, String(each.seq ?? ""))}>See the moment on the timeline</a></p>
            </details>
          </li>
        ))}
      </ul>
      {next && <button type="button" class="quiet" onClick={older}>Show older ones</button>}
    </>
  );
}
