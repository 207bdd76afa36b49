// One candidate: what was found, where it was said, what accepting it does, and the answers that are possible now.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { toolWords, visible, when } from "../core/words";
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
        <Badge>{candidate.kind}</Badge><Badge tone={tone}>{state}</Badge>{candidate.automatic && <Badge>nobody was asked</Badge>}
        {risk !== "low" && <Badge tone={RISKS[risk] ?? ""}>{risk} risk</Badge>}<Labels label={candidate.label} />
        <span class="hint">{(candidate.confidence_bps / 100).toFixed(0)} % sure, found by {candidate.found_by === "rules" || !candidate.found_by ? "rules" : visible(candidate.found_by)}, {when(candidate.created_ms ?? 0)}</span>
      </div>
      {candidate.reason && <p class="hint">{visible(candidate.reason)}</p>}
      {candidate.conflicts_with && <Contradicted id={candidate.conflicts_with} />}
      <h3>Where it comes from</h3>
      <EvidenceList evidence={candidate.evidence ?? []} />
      {(candidate.steps ?? []).length > 0 && <Steps candidate={candidate} />}
      <h3>{candidate.state === "applied" ? "What accepting it did" : "What accepting it does"}</h3>
      {candidate.state === "applied" ? <Done candidate={candidate} would={shown.would} /> : <p><bdi>{visible(sentence(shown.would))}</bdi></p>}
      {shown.diff && <Diff text={visible(shown.diff)} />}
      <Problem text={shown.problem ? `It cannot be done now: ${visible(shown.problem)}` : ""} />
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
          <a href={href("timeline", each.session_id, String(each.seq))}>Entry {each.seq} on the timeline</a> · <a href={href("chat", each.session_id)}>the conversation</a>
        </li>
      ))}
      {!evidence.length && <li class="hint">Nothing is noted.</li>}
    </ul>
  );
}

function Steps({ candidate }: { candidate: Candidate }): VNode {
  return (
    <>
      <h3>The steps</h3>
      <ol aria-label="Steps">
        {candidate.steps!.map((each, at) => <li key={at}>{visible(toolWords(each.tool))}{Object.keys(each.arguments ?? {}).length > 0 && <Output label={visible(each.tool)} text={visible(JSON.stringify(each.arguments, undefined, 1))} />}</li>)}
      </ol>
      <p class="hint">It succeeded in {(candidate.runs ?? []).length} runs. “…” stands for what was different each time.</p>
    </>
  );
}

function Contradicted({ id }: { id: string }): VNode {
  const found = useLoaded(() => palyra.getMemory(id), [id]);
  return (
    <div class="problem plain">
      <p>This is remembered and says otherwise; accepting takes its place:</p>
      <blockquote><bdi>{found.value ? visible(found.value.text) : found.error || "…"}</bdi></blockquote>
    </div>
  );
}

function Done({ candidate, would }: { candidate: Candidate; would: string }): VNode {
  const { memory_id, replaced, skill, file } = candidate.effect ?? {};
  return (
    <ul aria-label="Effect">
      {memory_id && <li>It is remembered{candidate.kind === "preference" ? " and told to the agent every time" : ""}: <a href={href("memory")}>see the memory</a>{replaced ? ". It took the place of what was remembered before." : ""}</li>}
      {skill && <li>The skill <span class="mono">{visible(skill)}</span> was installed, in quarantine: <a href={href("skills")}>see the skills</a>. Its runs are kept as tests: <code class="breaks">palyra replay --suite {visible(file ?? "")}</code></li>}
      {file && !skill && <li>The policy file <span class="mono">{visible(file)}</span> is in force: <a href={href("policies", "files")}>see the policies</a></li>}
      {!memory_id && !skill && !file && <li>{candidate.reason ? "Nothing had to be done." : visible(sentence(would))}</li>}
    </ul>
  );
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
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
  const wrong = words !== undefined && !words.trim() ? "Say it in your words, or leave it as it is." : (words?.length ?? 0) > LONGEST ? `At most ${LONGEST} characters.` : "";
  return (
    <>
      <Problem text={error} />
      {words !== undefined && <AreaField label="In other words" value={words} onInput={setWords} wrong={wrong} />}
      {reason !== undefined && (
        <form onSubmit={(event) => { event.preventDefault(); does(() => palyra.rejectCandidate(id, { reason }), "Rejected."); }}>
          <TextField label="Why not? (you need not say)" value={reason} onInput={setReason} />
          <div class="row"><button type="submit" class="no" disabled={busy}>Reject it</button><button type="button" class="quiet" onClick={() => setReason(undefined)}>Leave it</button></div>
        </form>
      )}
      {reason === undefined && (
        <div class="row">
          {moves.includes("accept") && <button type="button" class="yes" disabled={busy || Boolean(wrong) || Boolean(problem)} onClick={() => does(() => palyra.acceptCandidate(id, changed ? { text: changed } : {}), "Accepted.")}>{candidate.conflicts_with ? "Accept in its place" : changed ? "Accept in these words" : candidate.state === "pending_review" || candidate.state === "conflicted" ? "Accept" : "Accept after all"}</button>}
          {moves.includes("reject") && <button type="button" class="no" disabled={busy} onClick={() => setReason("")}>Reject…</button>}
          {moves.includes("accept") && rewordable && words === undefined && <button type="button" class="quiet small" onClick={() => setWords(candidate.content)}>Say it in other words</button>}
          {moves.includes("roll_back") && <Sure words="Roll back…" question="What it did is taken back; the next prompt knows nothing of it." yes="Roll it back" disabled={busy} onYes={() => does(() => palyra.rollBackCandidate(id), "Rolled back.")} />}
        </div>
      )}
      {candidate.state === "rejected" && <p class="hint">It is not suggested again.</p>}
    </>
  );
}
