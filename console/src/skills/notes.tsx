// Notes for agents (AGENTS.md and the like): which the agent follows, what has changed since, and accepting exactly what is shown.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { ago, size, visible } from "../core/words";
import { Diff, Output } from "../ui/code";
import { Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Empty, Problem } from "../ui/parts";
import type { Note } from "../types";

const STATES: Record<Note["state"], readonly [string, string]> = {
  accepted: ["good", "Accepted"], changed: ["warn", "Changed"], new: ["warn", "Not accepted"], missing: ["", "Missing"], unusable: ["bad", "Unusable"],
};

export function Notes({ changes }: { changes: number }): VNode {
  const found = useLoaded(() => palyra.listNotes(), [changes]);
  return (
    <>
      <p>AGENTS.md, CLAUDE.md and other notes tell the agent how to work in a folder. The agent follows a file only with the content that you accepted; any change needs a new review.</p>
      <Problem text={found.error} />
      {found.value && !found.value.notes.length && <Empty><p>No project notes found in your folders.</p></Empty>}
      <ul class="cards" aria-label="Project notes">{found.value?.notes.map((each) => <One key={`${each.workspace}/${each.file}`} note={each} onChanged={found.again} />)}</ul>
      <button type="button" class="quiet" onClick={found.again}>Refresh</button>
    </>
  );
}

function One({ note, onChanged }: { note: Note; onChanged: () => void }): VNode {
  const [reviewing, setReviewing] = useState(false);
  const { error, busy, attempt } = useAttempt();
  const [tone, words] = STATES[note.state];
  const reject = () => attempt(async () => {
    await palyra.rejectNote({ workspace: note.workspace, file: note.file });
    onChanged();
  }, `${note.file} was rejected.`);
  return (
    <li class="card">
      <div class="row"><strong>{note.file}</strong><Badge tone={tone}>{words}</Badge>{note.accepted_ms ? <span class="hint">last accepted {ago(note.accepted_ms)}</span> : null}</div>
      <p class="mono breaks">{visible(note.workspace)}{note.size ? ` · ${size(note.size)}` : ""}{note.applies ? ` · ${visible(note.applies)}` : ""}</p>
      <Problem text={error || (note.problem ? `${note.file}: ${note.problem}` : "")} />
      <div class="row">
        {note.sha256 && <button type="button" class="quiet" aria-expanded={reviewing} onClick={() => setReviewing(!reviewing)}>{reviewing ? "Close" : "Review"}</button>}
        {note.accepted_sha256 && <Sure words="Reject…" question={`Stop following ${note.file}?`} yes="Reject" disabled={busy} onYes={() => void reject()} />}
      </div>
      {reviewing && <Review note={note} onChanged={onChanged} />}
    </li>
  );
}

function Review({ note, onChanged }: { note: Note; onChanged: () => void }): VNode {
  const found = useLoaded(() => palyra.listNotes({ workspace: note.workspace }), [note.workspace, note.sha256, note.state]);
  const { error, busy, attempt } = useAttempt();
  const now = found.value?.notes.find((each) => each.file === note.file);
  const accept = (shown: Note) => attempt(async () => {
    await palyra.acceptNote({ workspace: shown.workspace, file: shown.file, sha256: shown.sha256 ?? "" });
    onChanged();
  }, `${shown.file} is accepted.`).then((done) => { if (!done) found.again(); });
  if (!now) return <Problem text={found.error} />;
  return (
    <div class="form">
      <Problem text={error} />
      {now.diff ? <Diff text={now.diff} all /> : <Output label={now.file} text={now.text ?? ""} all />}
      {(now.state === "new" || now.state === "changed") && <button type="button" class="yes" disabled={busy} onClick={() => void accept(now)}>Accept {now.file}</button>}
    </div>
  );
}
