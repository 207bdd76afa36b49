// A question to a person: what would happen, why it is asked, and the answers. No answer is chosen beforehand, and none by mistake.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { refreshLists } from "../core/store";
import { count, toolWords, visible, when } from "../core/words";
import { Diff, Output } from "../ui/code";
import { Badge, Labels, Problem } from "../ui/parts";
import type { Answer, ApprovalPreview, ApprovalRequested, ApprovalResolved, Subject, Preview } from "../types";

/** A card that appears under a moving finger must not be answered by it. */
const DEAF_MS = 350;
const HOUR_MS = 3_600_000;
const TYPING_MS = 300;
type Width = "once" | "session" | "timed" | "always";
const WIDTHS: readonly (readonly [Width, string])[] = [
  ["once", "only this once"],
  ["session", "in this session"],
  ["timed", "for one hour"],
  ["always", "always"],
];
const RISK: Record<string, string> = { low: "low risk", medium: "some risk", high: "high risk", critical: "very high risk" };

export async function answer(approvalId: string, given: Answer): Promise<void> {
  await palyra.answer(approvalId, given);
  await refreshLists().catch(() => undefined);
}

function covers(subject: Subject): string {
  switch (subject.kind) {
    case "path_prefix": return `${toolWords(subject.tool)} in ${subject.value}`;
    case "program": return `the program ${subject.value}`;
    case "command": return `exactly this command`;
    case "host": return `the site ${subject.value}`;
    case "recipient": return `messages to ${subject.value}`;
    default: return `everything that can ${toolWords(subject.tool)}`;
  }
}

/** What would run, or ran: all that is there of it, with its length and digest where that is only a part. */
export function What({ preview }: { preview: Preview }): VNode {
  const body = visible(preview.body ?? "");
  return (
    <>
      <p class="what" dir="auto"><bdi>{visible(preview.title)}</bdi></p>
      {body && (preview.kind === "diff" ? <Diff text={body} all /> : <Output text={body} label={preview.kind === "command" ? "command" : "details"} all />)}
      {!!preview.length && <p class="hint">{count(preview.length)} characters in all. SHA-256 of what runs: <span class="mono" title={preview.digest}>{preview.digest?.slice(0, 16)}…</span></p>}
    </>
  );
}

/** `resolution`: the answer, if there is one. What was edited is shown as edited; what was proposed stays beside it. */
export function Previewed({ request, resolution }: { request: ApprovalRequested; resolution?: ApprovalResolved | null | undefined }): VNode {
  const edited = resolution?.preview;
  return (
    <>
      {edited && <p><Badge tone="warn">Edited</Badge> Approved with edited arguments; this is what runs.</p>}
      <What preview={edited ?? request.preview} />
      {edited && <details class="more"><summary>As proposed</summary><What preview={request.preview} /></details>}
      <p class="why">{visible(request.why)}</p>
      {request.flow && <Flow request={request} />}
    </>
  );
}

function Flow({ request }: { request: ApprovalRequested }): VNode {
  const { sources, sinks = [], sends_private } = request.flow!;
  return (
    <p class={sends_private ? "flow bad" : "flow"}>
      {sends_private ? "Private data could leave: " : "What was read could go on: "}
      {sources.map((each) => visible(each.source)).join(", ") || "this conversation"}
      {sinks.length > 0 && ` → ${sinks.map(visible).join(", ")}`}
    </p>
  );
}

interface Drafted { found?: ApprovalPreview; error: string }

/** What edited arguments would do, worked out anew while they are typed. */
function useDraft(approvalId: string, edited: string | undefined): Drafted {
  const [drafted, setDrafted] = useState<Drafted>({ error: "" });
  useEffect(() => {
    if (edited === undefined) return setDrafted({ error: "" });
    let stale = false;
    const timer = setTimeout(() => {
      let given: Record<string, unknown>;
      try {
        given = JSON.parse(edited) as Record<string, unknown>;
      } catch {
        return setDrafted((before) => ({ ...before, error: "The arguments are not valid JSON: check quotes, commas and brackets." }));
      }
      void palyra.previewApproval(approvalId, { arguments: given }).then(
        (found) => { if (!stale) setDrafted({ found, error: "" }); },
        (failure: unknown) => { if (!stale) setDrafted({ error: wordsOf(failure) }); },
      );
    }, TYPING_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [approvalId, edited]);
  return drafted;
}

function Draft({ draft, request }: { draft: Drafted; request: ApprovalRequested }): VNode {
  const { found, error } = draft;
  return (
    <div role="status" aria-label="As edited">
      <p><Badge tone="warn">Edited</Badge> {found ? "This is what would run." : "Looking at what this would do…"}</p>
      {found && <What preview={found.preview} />}
      {found?.verdict === "deny" ? <Problem text={`Policy denies this: ${found.why ?? ""}`} /> : <p class="why">{visible(found?.why ?? request.why)}</p>}
      <Problem text={error} />
    </div>
  );
}

interface Given {
  request: ApprovalRequested;
  arguments?: Record<string, unknown>;
  onAnswered?: () => void;
}

export function ApprovalCard({ request, arguments: proposed, onAnswered }: Given): VNode {
  const [busy, setBusy] = useState(true);
  const [error, setError] = useState("");
  const [width, setWidth] = useState<Width>("once");
  const [subject, setSubject] = useState(0);
  const [edited, setEdited] = useState<string | undefined>();
  const [reason, setReason] = useState("");
  const [whole, setWhole] = useState<ApprovalPreview | undefined>();
  const draft = useDraft(request.approval_id, edited);
  const alive = useRef(true);
  useEffect(() => {
    const timer = setTimeout(() => setBusy(false), DEAF_MS);
    return () => {
      alive.current = false;
      clearTimeout(timer);
    };
  }, []);

  const showAll = async () => {
    setError("");
    try {
      setWhole(await palyra.previewApproval(request.approval_id));
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  const shown = whole?.preview ?? request.preview;
  const subjects = (edited === undefined ? undefined : draft.found?.subjects) ?? request.subjects ?? [];
  // What is not shown whole cannot be approved. Whoever edits it has all of it before them.
  const hidden = request.about === "tool" && !!shown.length && edited === undefined;

  const say = async (decision: Answer["decision"]) => {
    const given: Answer = { decision, ...(reason ? { reason } : {}) };
    if (decision === "allow") {
      if (edited !== undefined) {
        try {
          given.arguments = JSON.parse(edited) as Record<string, unknown>;
        } catch {
          setError("The edited details are not valid: check quotes, commas and brackets, or take the edit back.");
          return;
        }
      }
      else if (whole?.preview.digest) given.seen = whole.preview.digest;
      given.scope = width;
      const chosen = subjects[subject];
      if (width !== "once" && chosen) given.subject = chosen;
      if (width === "timed") given.for_ms = HOUR_MS;
    }
    setBusy(true);
    setError("");
    try {
      await answer(request.approval_id, given);
      onAnswered?.();
    } catch (failure) {
      if (alive.current) setError(wordsOf(failure));
    }
    if (alive.current) setBusy(false);
  };

  return (
    <section class={`approval risk-${request.risk}`} aria-label={`Palyra asks: ${toolWords(request.tool)}`}>
      <header class="row">
        <strong>{request.about === "in_doubt" ? "Did this happen?" : "Palyra asks you"}</strong>
        <span>{toolWords(request.tool)}</span>
        <Badge tone={request.risk === "low" ? "" : request.risk === "medium" ? "warn" : "bad"}>{RISK[request.risk] ?? request.risk}</Badge>
        <Labels label={request.label} />
      </header>
      {edited === undefined ? <Previewed request={{ ...request, preview: shown }} /> : <Draft draft={draft} request={request} />}
      {hidden && (
        <p class="row" role="status"><strong>Only the beginning and the end are shown.</strong>
          {whole ? <span>It is too long to be shown whole: deny it, and ask for smaller parts.</span> : <button type="button" onClick={() => void showAll()}>Show everything</button>}
        </p>
      )}
      {request.about === "tool" && (
        <details class="more">
          <summary>More ways to answer</summary>
          <label>Allow
            <select value={width} onChange={(event) => setWidth(event.currentTarget.value as Width)}>
              {WIDTHS.map(([value, words]) => <option value={value}>{words}</option>)}
            </select>
          </label>
          {width !== "once" && subjects.length > 0 && (
            <label>This covers
              <select value={subject} onChange={(event) => setSubject(Number(event.currentTarget.value))}>
                {subjects.map((each, at) => <option value={at}>{visible(covers(each))}</option>)}
              </select>
            </label>
          )}
          {proposed && (edited === undefined
            ? <button type="button" class="quiet" onClick={() => setEdited(JSON.stringify(proposed, null, 2))}>Edit arguments</button>
            : <label>Arguments
                <textarea class="mono" rows={8} spellcheck={false} value={edited} onInput={(event) => setEdited(event.currentTarget.value)} />
                <button type="button" class="quiet" onClick={() => setEdited(undefined)}>Discard changes</button>
              </label>)}
          <label>Tell it why (if you like)
            <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        </details>
      )}
      <Problem text={error} />
      <div class="row answers">
        {request.about === "in_doubt" ? (
          <>
            <button type="button" disabled={busy} onClick={() => void say("happened")}>It happened</button>
            <button type="button" disabled={busy} onClick={() => void say("again")}>Do it again</button>
            <button type="button" disabled={busy} onClick={() => void say("skip")}>Leave it out</button>
          </>
        ) : (
          <>
            <button type="button" class="no" disabled={busy} onClick={() => void say("deny")}>Deny</button>
            <button type="button" class="yes" disabled={busy || hidden || (edited !== undefined && draft.found?.verdict === "deny")} title={hidden ? "Show everything first" : ""} onClick={() => void say("allow")}>
              {edited !== undefined ? "Allow as edited" : width === "once" ? "Allow once" : `Allow ${WIDTHS.find(([each]) => each === width)![1]}`}
            </button>
          </>
        )}
        {!!request.expires_ms && <span class="hint">open until {when(request.expires_ms)}</span>}
      </div>
    </section>
  );
}
