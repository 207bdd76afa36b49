// The journal: checked from the first entry to the last while one looks on, taken away as a file, and kept a second time.
import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { withKey, wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { sessions, status } from "../core/store";
import { told } from "../core/streamed";
import { count, lasting, size, visible, when } from "../core/words";
import { Progress, SelectField, TextField } from "../ui/form";
import { Page, Part, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem, spoken } from "../ui/parts";
import { Table } from "../ui/table";
import type { BackedUp, Verified } from "../types";

export function JournalPage(): VNode {
  return (
    <Page title="Journal">
      <p>Everything that happened is an entry of the journal. Each entry carries the hash of the one before it, so nothing can be changed or taken out without it showing.</p>
      <Verify />
      <Export />
      <Backups />
    </Page>
  );
}

function Verify(): VNode {
  const [done, setDone] = useState(0);
  const [report, setReport] = useState<Verified | undefined>();
  const [took, setTook] = useState(0);
  const [error, setError] = useState("");
  const running = useRef<AbortController | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const verify = async () => {
    const stop = (running.current = new AbortController());
    const began = performance.now();
    setBusy(true);
    setDone(0);
    setReport(undefined);
    setError("");
    try {
      status.value = await palyra.status();
      const found = await told<{ entries: number }, Verified>(palyra.verifyJournalEventsPath(), (progress) => setDone(progress.entries), { signal: stop.signal });
      setReport(found);
      setTook(Math.round(performance.now() - began));
      spoken.value = found.ok ? "The journal is whole." : "The journal is damaged.";
    } catch (failure) {
      if (!stop.signal.aborted) setError(wordsOf(failure));
    }
    setBusy(false);
  };
  return (
    <Part id="verify" title="Is it whole?">
      <div class="row">
        <button type="button" class="main" disabled={busy} onClick={() => void verify()}>Check every entry</button>
        {busy && <button type="button" class="quiet" onClick={() => running.current?.abort()}>Stop checking</button>}
      </div>
      {busy && <Progress label="Entries checked" done={done} of={status.value?.entries ?? 0} words={`${count(done)} of ${count(status.value?.entries ?? 0)} entries`} />}
      <Problem text={error} />
      {report && <Found report={report} took={took} />}
    </Part>
  );
}

function Found({ report, took }: { report: Verified; took: number }): VNode {
  if (report.ok) return <p class="notice good" role="status">Whole: {count(report.entries)} entries on {count(report.tapes)} tapes, checked in {lasting(took)}.</p>;
  const bad = report.bad;
  return (
    <div class="problem" role="alert">
      <div>
        <p><strong>The journal was changed or is damaged.</strong></p>
        {bad && <p>The first bad entry is number {count(bad.seq)} of tape <span class="mono">{bad.tape}</span> (place {count(bad.position)} in the journal): {bad.problem}. {sessions.value.some((each) => each.session_id === bad.tape) && <a href={href("timeline", bad.tape)}>See that tape</a>}</p>}
        {report.pages.map((each) => <p key={each}>The file: {each}</p>)}
        {report.guards.map((each) => <p key={each}>A safeguard is gone: {each}</p>)}
        <p>Stop the daemon with <code>palyra stop --daemon</code>, then bring back the newest backup that is whole: <code>palyra journal restore</code>.</p>
      </div>
    </div>
  );
}

function Export(): VNode {
  const [session, setSession] = useState("");
  const path = palyra.exportJournalPath(session ? { session_id: session } : {});
  return (
    <Part id="export" title="Take it with you">
      <p class="hint">One entry a line, as JSON, in order. Secrets were taken out before anything was written.</p>
      <SelectField label="What" value={session} onChoose={setSession}
        options={[["", "The whole journal"], ...sessions.value.map((each) => [each.session_id, visible(each.title || "Untitled")] as const)]} />
      <a class="button" href={withKey(path)} download={`palyra-${session || "journal"}.ndjson`}>Download</a>
    </Part>
  );
}

function Backups(): VNode {
  const [folder, setFolder] = useState("");
  const [made, setMade] = useState<BackedUp | undefined>();
  const { error, busy, attempt } = useAttempt();
  const kept = useLoaded(() => palyra.listBackups());
  const wrong = folder && !folder.startsWith("/") ? "Begin with a slash: it is a folder on the computer where Palyra runs." : "";
  const backup = () => attempt(async () => {
    setMade(undefined);
    setMade(await palyra.backUpJournal(folder ? { folder } : {}));
    kept.again();
  });
  return (
    <Part id="backup" title="Backups">
      <form class="form" onSubmit={(event) => { event.preventDefault(); if (!wrong) void backup(); }}>
        <TextField label="Another folder" mono value={folder} onInput={setFolder} wrong={wrong} eager placeholder="where Palyra keeps its backups"
          hint="Leave it empty to keep it with the others. A folder on another disk, such as /mnt/backup, survives this one." />
        <button type="submit" disabled={busy || Boolean(wrong)}>{busy ? "Copying and checking…" : "Make a backup"}</button>
      </form>
      <Problem text={error || kept.error} />
      {made && <p class="notice good" role="status">{count(made.entries)} entries are copied and checked: <span class="mono breaks">{made.path}</span></p>}
      {kept.value && kept.value.backups.length > 0 && (
        <Table label="Backups" rows={kept.value.backups} keyOf={(each) => each.name} sorted="made" down
          columns={[
            { key: "name", words: "File", draw: (each) => <span class="mono">{each.name}</span>, by: (each) => each.name },
            { key: "made", words: "Made", draw: (each) => when(each.made_ms), by: (each) => each.made_ms },
            { key: "size", words: "Size", numeric: true, draw: (each) => size(each.bytes), by: (each) => each.bytes },
            { key: "get", words: "", draw: (each) => <a href={withKey(palyra.downloadBackupPath(each.name))} download={each.name}>Download</a> },
          ]} />
      )}
      {kept.value && !kept.value.backups.length && <p class="hint">There is none yet. <Badge>{kept.value.folder}</Badge></p>}
    </Part>
  );
}
