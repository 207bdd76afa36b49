// One candidate: what was found, where it was said, what accepting it does, and the answers that are possible now.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { sentence, toolWords, visible, when } from "../core/words";
import { Diff, Output } from "../ui/code";
import { AreaField, TextField } from "../ui/form";
import { Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Labels, Problem } from "../ui/parts";
import { RISKS, STATES } from "./words";
import type { Candidate, Evidence, ShownCandidate } from "../types";

const LONGEST = 600;

export function Looked({ id, fresh, onAnswered }: { id: string; fresh: number; onAnswered: () => void }): VNode | null {
  const found = useLoaded(() => palyra.getCandidate(id), [id], fresh);
  if (!found.value) return found.error ? <Problem text={found.error} /> : <p role="status">Loading…</p>;
  return <Shown shown={found.value} onAnswered={() => { found.again(); onAnswered(); }} />;
}

function Shown({ shown, onAnswered }: { shown: ShownCandidate; onAnswered: () => void }): VNode {
  const { candidate } = shown;
  const [tone, state] = STATES[candidate.state ?? "proposed"];
  const risk = candidate.risk ?? "low";
  return (
    <article class="card" aria-label="Candidate">
      <h2 class="candidate"><bdi>{visible(candidate.content)}</bdi></h2>
      <div class="row">
        <Badge>{candidate.kind}</Badge><Badge tone={tone}>{state}</Badge>{candidate.automatic && <Badge>Automatic</Badge>}
        {risk !== "low" && <Badge tone={RISKS[risk] ?? ""}>{risk} risk</Badge>}<Labels label={candidate.label} />
        <span class="hint">{(candidate.confidence_bps / 100).toFixed(0)} % confidence, found by {candidate.found_by === "rules" || !candidate.found_by ? "rules" : visible(candidate.found_by)}, {when(candidate.created_ms ?? 0)}</span>
      </div>
      {candidate.reason && <p class="hint">{visible(statement(candidate.reason))}</p>}
      {candidate.conflicts_with && <Contradicted id={candidate.conflicts_with} />}
      <h3>Evidence</h3>
      <EvidenceList evidence={candidate.evidence ?? []} />
      {(candidate.steps ?? []).length > 0 && <Steps candidate={candidate} />}
      <h3>{candidate.state === "applied" ? "What accepting did" : "What accepting does"}</h3>
      {candidate.state === "applied" ? <Done candidate={candidate} would={shown.would} /> : <p><bdi>{visible(statement(shown.would))}</bdi></p>}
      {shown.diff && <Diff text={visible(shown.diff)} />}
      <Problem text={shown.problem ? `Cannot apply this now: ${visible(shown.problem)}` : ""} />
      <Answers key={candidate.state} shown={shown} onAnswered={onAnswered} />
    </article>
  );
}

/** The words, and the way to the entry of the tape where they stand. */
function EvidenceList({ evidence }: { evidence: Evidence[] }): VNode {
  return (
    <ul class="evidence" aria-label="Evidence">
      {evidence.map((each) => (
        <li key={`${each.session_id}${each.seq}`}>
          {each.quote && <blockquote><bdi>{visible(each.quote)}</bdi></blockquote>}
          <a href={href("timeline", each.session_id, String(each.seq))}>Entry {each.seq} on the timeline</a> · <a href={href("chat", each.session_id)}>Open session</a>
        </li>
      ))}
      {!evidence.length && <li class="hint">No evidence recorded.</li>}
    </ul>
  );
}

function Steps({ candidate }: { candidate: Candidate }): VNode {
  return (
    <>
      <h3>Steps</h3>
      <ol aria-label="Steps">
        {candidate.steps!.map((each, at) => <li key={at}>{visible(toolWords(each.tool))}{Object.keys(each.arguments ?? {}).length > 0 && <Output label={visible(each.tool)} text={visible(JSON.stringify(each.arguments, undefined, 1))} />}</li>)}
      </ol>
      <p class="hint">Succeeded in {(candidate.runs ?? []).length} runs. “…” marks the parts that differed.</p>
    </>
  );
}

function Contradicted({ id }: { id: string }): VNode {
  const found = useLoaded(() => palyra.getMemory(id), [id]);
  return (
    <div class="problem plain">
      <p>This memory says otherwise. Accepting replaces it:</p>
      <blockquote><bdi>{found.value ? visible(found.value.text) : found.error || "…"}</bdi></blockquote>
    </div>
  );
}

function Done({ candidate, would }: { candidate: Candidate; would: string }): VNode {
  const { memory_id, replaced, skill, file } = candidate.effect ?? {};
  return (
    <ul aria-label="Effect">
      {memory_id && <li>Saved to memory{candidate.kind === "preference" ? " and included in every prompt" : ""}: <a href={href("memory")}>open Memory</a>{replaced ? ". It replaced an earlier memory." : ""}</li>}
      {skill && <li>The skill <span class="mono">{visible(skill)}</span> was installed in quarantine: <a href={href("skills")}>open Skills</a>. Its runs are kept as tests: <code class="breaks">palyra replay --suite {visible(file ?? "")}</code></li>}
      {file && !skill && <li>The policy file <span class="mono">{visible(file)}</span> is active: <a href={href("policies", "files")}>open Policies</a></li>}
      {!memory_id && !skill && !file && <li>{candidate.reason ? "No change was needed." : visible(statement(would))}</li>}
    </ul>
  );
}

function statement(text: string): string {
  return `${sentence(text)}.`;
}

function Answers({ shown: { candidate, moves = [], problem }, onAnswered }: { shown: ShownCandidate; onAnswered: () => void }): VNode {
  const id = candidate.candidate_id;
  const rewordable = candidate.kind === "fact" || candidate.kind === "preference";
  const [words, setWords] = useState<string | undefined>();
  const [reason, setReason] = useState<string | undefined>();
  const { error, busy, attempt } = useAttempt();
  const does = (work: () => Promise<unknown>, said: string) => void attempt(async () => {
    await work();
    onAnswered();
  }, said);
  const changed = words !== undefined && words.trim() !== candidate.content ? words.trim() : "";
  const wrong = words !== undefined && !words.trim() ? "Write the text, or cancel." : (words?.length ?? 0) > LONGEST ? `At most ${LONGEST} characters.` : "";
  return (
    <>
      <Problem text={error} />
      {words !== undefined && <AreaField label="Edited text" value={words} onInput={setWords} wrong={wrong} />}
      {reason !== undefined && (
        <form onSubmit={(event) => { event.preventDefault(); does(() => palyra.rejectCandidate(id, { reason }), "Rejected."); }}>
          <TextField label="Reason (optional)" value={reason} onInput={setReason} />
          <div class="row"><button type="submit" class="no" disabled={busy}>Reject</button><button type="button" class="quiet" onClick={() => setReason(undefined)}>Cancel</button></div>
        </form>
      )}
      {reason === undefined && (
        <div class="row">
          {moves.includes("accept") && <button type="button" class="yes" disabled={busy || Boolean(wrong) || Boolean(problem)} onClick={() => does(() => palyra.acceptCandidate(id, changed ? { text: changed } : {}), "Accepted.")}>{candidate.conflicts_with ? "Replace memory" : changed ? "Accept edited" : candidate.state === "pending_review" || candidate.state === "conflicted" ? "Accept" : "Accept anyway"}</button>}
          {moves.includes("reject") && <button type="button" class="no" disabled={busy} onClick={() => setReason("")}>Reject…</button>}
          {moves.includes("accept") && rewordable && words === undefined && <button type="button" class="quiet small" onClick={() => setWords(candidate.content)}>Edit text</button>}
          {moves.includes("roll_back") && <Sure words="Roll back…" question="Its changes are undone; the next prompt does not include it." yes="Roll back" disabled={busy} onYes={() => does(() => palyra.rollBackCandidate(id), "Rolled back.")} />}
        </div>
      )}
      {candidate.state === "rejected" && <p class="hint">Palyra does not suggest it again.</p>}
    </>
  );
}
