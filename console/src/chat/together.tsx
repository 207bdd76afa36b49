// Calls of one turn that need approval: one question with a line for each, answered together or one alone.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import { refreshLists } from "../core/store";
import * as palyra from "../core/verbs";
import { sentence, toolWords, visible } from "../core/words";
import { Badge, Labels, Problem } from "../ui/parts";
import type { ApprovalPreview } from "../types";
import { useAnswerKeys } from "./answer_keys";
import { ApprovalCard, canUndo, DEAF_MS, Expires, Meta, Origins, RiskBadge, What, type Line } from "./approval";

const RISKS = ["low", "medium", "high", "critical"];

export function Together({ lines, keys = false }: { lines: readonly Line[]; keys?: boolean }): VNode {
  const [without, setWithout] = useState<ReadonlySet<string>>(new Set());
  const [alone, setAlone] = useState<ReadonlySet<string>>(new Set());
  const [whole, setWhole] = useState<Readonly<Record<string, ApprovalPreview>>>({});
  const [session, setSession] = useState(false);
  const [busy, setBusy] = useState(true);
  const [error, setError] = useState("");
  const alive = useRef(true);
  useEffect(() => {
    const timer = setTimeout(() => setBusy(false), DEAF_MS);
    return () => {
      alive.current = false;
      clearTimeout(timer);
    };
  }, []);
  const idOf = ({ request }: Line) => request.approval_id;
  const previewOf = (line: Line) => whole[idOf(line)]?.preview ?? line.request.preview;
  // What is not shown whole cannot be approved.
  const hidden = (line: Line) => !!previewOf(line).length;
  const joint = lines.filter((each) => !alone.has(idOf(each)));
  const out = joint.filter((each) => without.has(idOf(each)));
  const chosen = joint.filter((each) => !without.has(idOf(each)) && !hidden(each));
  const risk = RISKS[Math.max(...lines.map(({ request }) => RISKS.indexOf(request.risk)))] ?? "critical";
  const expires = Math.min(...lines.map(({ request }) => request.expires_ms || Infinity));

  const flip = (set: ReadonlySet<string>, id: string) => {
    const next = new Set(set);
    if (!next.delete(id)) next.add(id);
    return next;
  };
  const showAll = (id: string) => void palyra.previewApproval(id).then(
    (found) => setWhole((before) => ({ ...before, [id]: found })),
    (failure: unknown) => setError(wordsOf(failure)),
  );
  const answer = async (which: readonly Line[], decision: "allow" | "deny") => {
    const seen = Object.fromEntries(which.flatMap((each) => (whole[idOf(each)]?.preview.digest ? [[idOf(each), whole[idOf(each)]!.preview.digest!]] : [])));
    const given = decision === "deny" ? { decision } : { decision, scope: session ? "session" as const : "once" as const, seen };
    const { problems = [] } = await palyra.answerGroup(idOf(which[0]!), { ...given, only: which.map(idOf) });
    return problems.map((each) => each.message);
  };
  const say = async (decision: "allow" | "deny") => {
    setBusy(true);
    setError("");
    try {
      const wrong = decision === "deny" ? await answer(joint, "deny") : [...(out.length ? await answer(out, "deny") : []), ...await answer(chosen, "allow")];
      if (alive.current) setError(wrong.join("; "));
      await refreshLists().catch(() => undefined);
    } catch (failure) {
      if (alive.current) setError(wordsOf(failure));
    }
    if (alive.current) setBusy(false);
  };
  const armed = useAnswerKeys(keys, {
    approve: joint.length ? () => void say("allow") : undefined,
    deny: joint.length ? () => void say("deny") : undefined,
    ready: chosen.length > 0, busy,
  });
  const all = chosen.length === lines.length;

  return (
    <section class={`approval together risk-${risk}`} aria-label={`Approval: ${lines.length} tool calls`}>
      <header><h3>Approve {lines.length} tool calls?</h3><RiskBadge risk={risk} /></header>
      <p class="meta">The agent asked for these in one turn. Clear the box of a call to deny it.</p>
      <ul>
        {lines.map((line) => {
          const { request, proposed, origin } = line;
          const id = idOf(line);
          const name = `${sentence(toolWords(request.tool))}: ${visible(request.preview.title)}`;
          return (
            <li key={id} aria-label={name}>
              <div class="line-head">
                <label class="check-label">
                  {!alone.has(id) && <input type="checkbox" checked={!without.has(id)} disabled={busy} onChange={() => setWithout(flip(without, id))} />}
                  <span class={without.has(id) ? "left-out" : ""}><strong>{sentence(toolWords(request.tool))}</strong> <bdi>{visible(request.preview.title)}</bdi></span>
                </label>
                {alone.has(id) ? <span /> : <span class="row"><RiskBadge risk={request.risk} />{canUndo(request, proposed) && <Badge>Can be undone</Badge>}<Labels label={request.label} /></span>}
                <button type="button" class="quiet small" onClick={() => setAlone(flip(alone, id))}>{alone.has(id) ? "Answer together" : "Answer alone"}</button>
              </div>
              {alone.has(id) ? <ApprovalCard request={request} proposed={proposed} origin={origin} /> : !without.has(id) && (
                <>
                  <Meta request={request} preview={previewOf(line)} />
                  <What preview={previewOf(line)} titled={false} />
                  {origin && proposed && <Origins given={proposed.arguments} origin={origin} />}
                  {hidden(line) && <p class="row inside" role="status"><strong>Only the beginning and the end are shown.</strong>{whole[id] ? <span>This is too long to be shown whole: deny it, and ask for smaller parts.</span> : <button type="button" onClick={() => showAll(id)}>Show everything</button>}</p>}
                </>
              )}
            </li>
          );
        })}
      </ul>
      <Problem text={error} />
      {joint.length > 0 && (
        <div class="answers">
          <button type="button" class="yes main" disabled={busy || !chosen.length} aria-keyshortcuts={keys ? "a" : undefined} onClick={() => void say("allow")}>{all ? `Approve all ${lines.length}` : `Approve ${chosen.length} of ${lines.length}`}{keys && <kbd aria-hidden="true">A</kbd>}</button>
          <select aria-label="Scope" value={session ? "session" : "once"} onChange={(event) => setSession(event.currentTarget.value === "session")}><option value="once">Once</option><option value="session">This session</option></select>
          <button type="button" class="no" disabled={busy} aria-keyshortcuts={keys ? "d" : undefined} onClick={() => void say("deny")}>{joint.length === lines.length ? "Deny all" : `Deny ${joint.length}`}{keys && <kbd aria-hidden="true">D</kbd>}</button>
          {expires < Infinity && <Expires ms={expires} />}
          <p class="armed" role="status">{armed ? "Press A again to approve; any other key cancels." : ""}</p>
        </div>
      )}
    </section>
  );
}
