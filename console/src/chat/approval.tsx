// An approval: what would happen, how risky it is, where it goes, and the answers. No answer is chosen beforehand, and none by mistake.
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import { refreshLists, status } from "../core/store";
import * as palyra from "../core/verbs";
import { count, sentence, shortPath, visible, when } from "../core/words";
import { Diff, Output } from "../ui/code";
import { filesOf } from "../ui/diff";
import { Badge, Labels, Problem } from "../ui/parts";
import type { Answer, ApprovalPreview, ApprovalRequested, ApprovalResolved, Preview, ToolProposed } from "../types";
import { useAnswerKeys } from "./answer_keys";
import { ArgumentFields, type Arguments } from "./arguments";
import { BoundFields, UNBOUNDED, bounded, type Bounds } from "./bounds";
import { covers } from "./covers";
import { filesOfCall, leftOut } from "./patch_files";

/** A card that appears under a moving finger must not be answered by it. */
export const DEAF_MS = 350;
const HOUR_MS = 3_600_000;
const TYPING_MS = 300;
type Width = "once" | "session" | "timed" | "always";
const WIDTHS: readonly (readonly [Width, string, string])[] = [
  ["once", "Once", "Approve"],
  ["session", "This session", "Approve for session"],
  ["timed", "1 hour", "Approve for 1 hour"],
  ["always", "Always", "Approve always"],
];
const RISK: Record<string, string> = { low: "Low risk", medium: "Medium risk", high: "High risk", critical: "Critical risk" };
const QUESTIONS: Record<string, string> = {
  "fs.write": "Approve file write?", "fs.patch": "Approve file change?", "shell.run": "Approve command?", "shell.stop": "Approve stopping a command?",
  "http.fetch": "Approve web request?", "http.post": "Approve sending data?", "message.send": "Approve message?", "memory.write": "Approve new memory?",
  "memory.forget": "Approve forgetting?", "schedule.create": "Approve schedule?", "schedule.cancel": "Approve cancelling a schedule?", "agent.spawn": "Approve subagent?",
};
const LOCAL = /^(fs|memory|artifact|session)\./;
/** Calls that are undone from a checkpoint. */
export const FILES = /^fs\.(write|patch)$/;

export function canUndo(request: ApprovalRequested, proposed: Line["proposed"]): boolean {
  return proposed?.effect ? proposed.effect === "reversible" : FILES.test(request.tool);
}

export function RiskBadge({ risk }: { risk: string }): VNode {
  return <Badge tone={risk === "low" ? "good" : risk === "medium" ? "warn" : "bad"}>{RISK[risk] ?? risk}</Badge>;
}

export async function answer(approvalId: string, given: Answer): Promise<void> {
  await palyra.answer(approvalId, given);
  await refreshLists().catch(() => undefined);
}

/** The question that a card asks, in one line. */
export function question(request: ApprovalRequested): string {
  if (request.about === "in_doubt") return "Did this happen?";
  if (request.about === "budget") return "Approve more spending?";
  return QUESTIONS[request.tool] ?? (request.tool.startsWith("browser.") ? "Approve browser action?" : `Approve ${request.tool}?`);
}

/** Exactly what would run, or ran, with its length and digest where only a part is shown. */
export function What({ preview, titled = true }: { preview: Preview; titled?: boolean }): VNode {
  const body = visible(preview.body ?? "");
  return (
    <>
      {titled && preview.kind !== "diff" && <p class="what" dir="auto"><bdi>{visible(preview.title)}</bdi></p>}
      {body && (preview.kind === "diff" ? <Diff text={body} all /> : <Output text={body} label={preview.kind === "command" ? "command" : "details"} all />)}
      {!!preview.length && <p class="hint inside">{count(preview.length)} characters in all. SHA-256 of the arguments that run: <span class="mono" title={preview.digest}>{preview.digest?.slice(0, 16)}…</span></p>}
    </>
  );
}

/** `resolution`: the answer, if there is one. Edited arguments are shown as edited, with the proposal beside them. */
export function Previewed({ request, resolution }: { request: ApprovalRequested; resolution?: ApprovalResolved | null | undefined }): VNode {
  const edited = resolution?.preview;
  return (
    <>
      {edited && <p class="inside"><Badge tone="warn">Edited</Badge> Approved with edited arguments; this is what runs.</p>}
      <What preview={edited ?? request.preview} />
      {edited && <details class="more"><summary>As proposed</summary><What preview={request.preview} /></details>}
    </>
  );
}

/** Why it is asked, as sentences: the policy joins reasons that begin in small letters. */
export function reasonOf({ why }: ApprovalRequested): string {
  return visible(why).split(". ").map(sentence).join(". ");
}

/** How risky, what it changes, whether it can be undone and where it goes: one line. */
export function Meta({ request, preview }: { request: ApprovalRequested; preview: Preview }): VNode {
  const files = preview.kind === "diff" ? filesOf(preview.body ?? "").length : 0;
  const host = request.subjects?.find((each) => each.kind === "host" || each.kind === "recipient");
  const { sinks = [], sends_private = false, sources = [] } = request.flow ?? {};
  const folder = status.value?.workspace;
  return (
    <p class="meta">
      {files > 0 && <span>Changes {files === 1 ? "1 file" : `${files} files`}{folder ? ` in ${visible(shortPath(folder))}` : ""}</span>}
      {host ? <span>Goes to <strong>{visible(host.value ?? "")}</strong></span> : LOCAL.test(request.tool) && !sinks.length ? <span>Stays on this machine</span> : null}
      {request.flow && <span class={sends_private ? "bad" : ""}>{sends_private ? "Private data could leave: " : "Data read before could go on: "}{sources.map((each) => visible(each.source)).join(", ") || "this conversation"}{sinks.length > 0 && ` → ${sinks.map(visible).join(", ")}`}</span>}
      {request.risk !== "low" || request.about !== "tool" || !files ? <span>{reasonOf(request)}</span> : null}
    </p>
  );
}

interface Drafted { found?: ApprovalPreview; error: string; busy: boolean }

/** What edited arguments would do, worked out by the daemon while they are typed. */
function useDraft(approvalId: string, edited: Arguments | undefined): Drafted {
  const [drafted, setDrafted] = useState<Drafted>({ error: "", busy: false });
  const said = edited && JSON.stringify(edited);
  useEffect(() => {
    if (said === undefined) return setDrafted({ error: "", busy: false });
    let stale = false;
    setDrafted((before) => ({ ...before, busy: true }));
    const timer = setTimeout(() => {
      void palyra.previewApproval(approvalId, { arguments: JSON.parse(said) as Arguments }).then(
        (found) => { if (!stale) setDrafted({ found, error: "", busy: false }); },
        (failure: unknown) => { if (!stale) setDrafted({ error: wordsOf(failure), busy: false }); },
      );
    }, TYPING_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [approvalId, said]);
  return drafted;
}

function Draft({ draft }: { draft: Drafted }): VNode {
  const { found, error } = draft;
  return (
    <div role="status" aria-label="As edited" class="drafted">
      <p class="hint"><Badge tone="warn">Edited</Badge> {found ? "This is what would run." : "Checking…"}</p>
      {found && <What preview={found.preview} />}
      {found?.verdict === "deny" && <Problem text={`Policy denies this: ${found.why ?? ""}`} />}
      {found?.verdict === "allow" && <p class="hint">Policy allows this without approval.</p>}
      <Problem text={error} />
    </div>
  );
}

/** Yes or no for each file of a call. What is left out does not run; the preview below shows what does. */
function FileChoice({ files, without, onChange }: { files: readonly string[]; without: ReadonlySet<string>; onChange: (without: ReadonlySet<string>) => void }): VNode {
  const toggle = (path: string) => {
    const next = new Set(without);
    if (!next.delete(path)) next.add(path);
    onChange(next);
  };
  return (
    <fieldset class="file-choice">
      <legend>Files to change</legend>
      {files.map((path) => (
        <label key={path} class="check-label"><input type="checkbox" checked={!without.has(path)} onChange={() => toggle(path)} /> <bdi class={without.has(path) ? "mono left-out" : "mono"}>{visible(path)}</bdi>{without.has(path) && <Badge tone="bad">Left out</Badge>}</label>
      ))}
      {without.size === files.length && <p class="hint" role="status">Every file is left out. Deny the call instead.</p>}
    </fieldset>
  );
}

export function Expires({ ms }: { ms: number }): VNode {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.round((ms - now) / 1000));
  const words = left >= 3600 ? `${Math.round(left / 3600)} h` : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  return <span class="expires" title={`Denied automatically at ${when(ms)}`}>Expires in {words}</span>;
}

/** Where the value of an argument stands word for word: in a message, in a result, or nowhere, so the model wrote it. */
export type Origin = (value: string) => string;

export function Origins({ given, origin }: { given: Arguments; origin: Origin }): VNode | null {
  const rows = Object.entries(given).flatMap(([name, value]): [string, string][] => (typeof value === "number" || (typeof value === "string" && value) ? [[name, String(value)]] : []));
  if (!rows.length) return null;
  return (
    <dl class="origins" aria-label="Where the arguments come from">
      {rows.map(([name, value]) => {
        const lines = value.split("\n").length - (value.endsWith("\n") ? 1 : 0);
        return <><dt key={name}>{visible(name)}</dt><dd class="mono">{lines > 1 ? `${lines} lines` : <bdi>{visible(value.trimEnd())}</bdi>}</dd><dd class="from">{origin(value)}</dd></>;
      })}
    </dl>
  );
}

/** A question: the call that waits, if it is known here (its arguments can be edited), and where they come from. */
export interface Line {
  request: ApprovalRequested;
  proposed?: Pick<ToolProposed, "arguments" | "effect"> | undefined;
  origin?: Origin | undefined;
}

interface Given extends Line {
  /** Whether A, D and E answer this one. */
  keys?: boolean;
  onAnswered?: () => void;
}

export function ApprovalCard({ request, proposed, origin, keys = false, onAnswered }: Given): VNode {
  const [deaf, setDeaf] = useState(true);
  const [answering, setAnswering] = useState(false);
  const [error, setError] = useState("");
  const [width, setWidth] = useState<Width>("once");
  const [subject, setSubject] = useState(0);
  const [bounds, setBounds] = useState<Bounds>(UNBOUNDED);
  const [typed, setTyped] = useState<Arguments | undefined>();
  const [without, setWithout] = useState<ReadonlySet<string>>(new Set());
  const [reason, setReason] = useState("");
  const [whole, setWhole] = useState<ApprovalPreview | undefined>();
  const files = filesOfCall(request.tool, proposed?.arguments);
  const none = files.length > 0 && without.size === files.length;
  const edited = typed ?? (without.size && !none ? leftOut(proposed!.arguments, without) : undefined);
  const draft = useDraft(request.approval_id, edited);
  const alive = useRef(true);
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => setDeaf(false), DEAF_MS);
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
  const subjects = (edited ? draft.found?.subjects : undefined) ?? request.subjects ?? [];
  // What is not shown whole cannot be approved. An editor shows all of it.
  const hidden = request.about === "tool" && !typed && !!(edited ? draft.found?.preview.length : shown.length);
  const busy = deaf || answering;
  const cannot = hidden || none || (edited !== undefined && (draft.busy || !draft.found || !!draft.error || draft.found.verdict === "deny"));
  const edit = () => {
    if (!proposed) return;
    setTyped(structuredClone(edited ?? proposed.arguments));
  };
  // With the drawing, not after it: whoever types at once would type into another field.
  useLayoutEffect(() => {
    if (typed) card.current?.querySelector<HTMLElement>(".edit-form textarea, .edit-form input")?.focus();
  }, [!typed]);

  const say = async (decision: Answer["decision"]) => {
    const why = reason || (decision === "allow" && !typed && without.size ? `left out: ${[...without].join(", ")}` : "");
    const given: Answer = { decision, ...(why ? { reason: why } : {}) };
    if (decision === "allow") {
      if (edited) given.arguments = edited;
      else if (whole?.preview.digest) given.seen = whole.preview.digest;
      given.scope = width;
      const chosen = subjects[subject];
      if (width !== "once" && chosen) given.subject = chosen;
      if (width === "timed") given.for_ms = HOUR_MS;
      if (width === "session" || width === "timed") Object.assign(given, bounded(chosen, bounds));
    }
    setAnswering(true);
    setError("");
    try {
      await answer(request.approval_id, given);
      onAnswered?.();
    } catch (failure) {
      if (alive.current) setError(wordsOf(failure));
    }
    if (alive.current) setAnswering(false);
  };

  const asksTool = request.about === "tool";
  const armed = useAnswerKeys(keys, {
    approve: asksTool ? () => void say("allow") : undefined,
    deny: asksTool ? () => void say("deny") : undefined,
    edit: proposed && !typed ? edit : undefined,
    blocked: hidden ? "Only a part of this is shown. Choose “Show everything” first." : "",
    onBlocked: setError, ready: !cannot, busy: answering,
  });

  const reversible = canUndo(request, proposed);
  return (
    <section ref={card} class={`approval risk-${request.risk}`} aria-label={`Approval: ${visible(request.preview.title)}`}>
      <header>
        <h3>{question(request)}</h3>
        <RiskBadge risk={request.risk} />
        {request.about === "tool" && (reversible ? <Badge>Can be undone</Badge> : proposed?.effect === "once" ? <Badge tone="warn">Cannot be undone</Badge> : null)}
        <Labels label={request.label} />
      </header>
      <Meta request={request} preview={shown} />
      {request.plan && <p class="hint inside">Not part of the plan: {visible(request.plan)}</p>}
      {files.length > 0 && !typed && <FileChoice files={files} without={without} onChange={setWithout} />}
      {typed && <div class="edit-form"><ArgumentFields given={typed} onChange={setTyped} /></div>}
      {edited ? <Draft draft={draft} /> : <Previewed request={{ ...request, preview: shown }} />}
      {hidden && (
        <p class="row inside" role="status"><strong>Only the beginning and the end are shown.</strong>
          {whole || edited ? <span>This is too long to be shown whole: deny it, and ask for smaller parts.</span> : <button type="button" onClick={() => void showAll()}>Show everything</button>}
        </p>
      )}
      {origin && proposed && !edited && <Origins given={proposed.arguments} origin={origin} />}
      {request.about === "tool" && (
        <details class="more">
          <summary>More options</summary>
          <p class="hint">Why this needs approval: {reasonOf(request)}{request.policies?.length ? ` (policy ${request.policies.map(visible).join(", ")})` : ""}</p>
          <label>Reason for the agent (optional)
            <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        </details>
      )}
      <Problem text={error} />
      <div class="answers">
        {request.about === "in_doubt" ? (
          <>
            <button type="button" disabled={busy} onClick={() => void say("happened")}>It happened</button>
            <button type="button" disabled={busy} onClick={() => void say("again")}>Run again</button>
            <button type="button" disabled={busy} onClick={() => void say("skip")}>Skip</button>
          </>
        ) : (
          <>
            <button type="button" class="yes main" disabled={busy || cannot} title={hidden ? "Show everything first" : ""} aria-keyshortcuts={keys ? "a" : undefined} onClick={() => void say("allow")}>
              {typed ? "Approve edited" : edited ? `Approve ${files.length - without.size} of ${files.length} files` : WIDTHS.find(([each]) => each === width)![2]}{keys && <kbd aria-hidden="true">A</kbd>}
            </button>
            {request.about === "tool" && <select aria-label="Scope" value={width} onChange={(event) => setWidth(event.currentTarget.value as Width)}>{WIDTHS.map(([value, words]) => <option value={value}>{words}</option>)}</select>}
            {width !== "once" && subjects.length > 0 && <select aria-label="Applies to" value={subject} onChange={(event) => setSubject(Number(event.currentTarget.value))}>{subjects.map((each, at) => <option value={at}>{visible(covers(each))}</option>)}</select>}
            {(width === "session" || width === "timed") && <BoundFields subject={subjects[subject]} given={bounds} onChange={setBounds} />}
            {proposed && request.about === "tool" && (typed
              ? <button type="button" onClick={() => setTyped(undefined)}>Discard changes</button>
              : <button type="button" disabled={busy} title="Edit arguments" aria-keyshortcuts={keys ? "e" : undefined} onClick={edit}>Edit{keys && <kbd aria-hidden="true">E</kbd>}</button>)}
            <button type="button" class="no" disabled={busy} aria-keyshortcuts={keys ? "d" : undefined} onClick={() => void say("deny")}>Deny{keys && <kbd aria-hidden="true">D</kbd>}</button>
          </>
        )}
        {!!request.expires_ms && <Expires ms={request.expires_ms} />}
        <p class="armed" role="status">{armed ? "Press A again to approve; any other key cancels." : ""}</p>
      </div>
    </section>
  );
}

