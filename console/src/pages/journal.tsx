// The journal: checked from the first entry to the last while one looks on, taken away as a file, and kept a second time.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { href, query, setQuery } from "../core/router";
import { sessions, status } from "../core/store";
import { told } from "../core/streamed";
import { count, lasting, size, visible, when } from "../core/words";
import { HomeBackups } from "../journal/home_backups";
import { Causes } from "../ui/causes";
import { Progress, SelectField, TextField } from "../ui/form";
import { Page, Part, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem, spoken } from "../ui/parts";
import { Download } from "../ui/stored";
import { Table } from "../ui/table";
import type { BackedUp, Verified } from "../types";

export function JournalPage(): VNode {
  return (
    <Page title="Journal">
      <p>Everything Palyra does is an entry in the journal. Each entry carries the hash of the one before it, so any change or removal is detected.</p>
      <Verify />
      <Why />
      <Export />
      <HomeBackups />
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
      spoken.value = found.ok ? "The journal is intact." : "The journal is damaged.";
    } catch (failure) {
      if (!stop.signal.aborted) setError(wordsOf(failure));
    }
    setBusy(false);
  };
  return (
    <Part id="verify" title="Integrity">
      <div class="row">
        <button type="button" class="main" disabled={busy} onClick={() => void verify()}>Verify journal</button>
        {busy && <button type="button" class="quiet" onClick={() => running.current?.abort()}>Cancel</button>}
      </div>
      {busy && <Progress label="Entries verified" done={done} of={status.value?.entries ?? 0} words={`${count(done)} of ${count(status.value?.entries ?? 0)} entries`} />}
      <Problem text={error} />
      {report && <Found report={report} took={took} />}
    </Part>
  );
}

function Found({ report, took }: { report: Verified; took: number }): VNode {
  if (report.ok) return <p class="notice good" role="status">Intact: {count(report.entries)} entries on {count(report.tapes)} tapes, verified in {lasting(took)}.</p>;
  const bad = report.bad;
  return (
    <div class="problem" role="alert">
      <div>
        <p><strong>The journal was changed or is damaged.</strong></p>
        {bad && <p>The first bad entry is number {count(bad.seq)} of tape <span class="mono">{bad.tape}</span> (place {count(bad.position)} in the journal): {bad.problem}. {sessions.value.some((each) => each.session_id === bad.tape) && <a href={href("timeline", bad.tape)}>Open timeline</a>}</p>}
        {report.pages.map((each) => <p key={each}>File: {each}</p>)}
        {report.guards.map((each) => <p key={each}>Missing safeguard: {each}</p>)}
        <p>Stop the daemon with <code>palyra stop --daemon</code>, then restore the newest intact backup: <code>palyra journal restore</code>.</p>
      </div>
    </div>
  );
}

/** From a file, a message, a run or an entry back to its causes. What is asked stands in the address. */
function Why(): VNode {
  const asked = query.value.get("why") ?? "";
  const [about, setAbout] = useState(asked);
  const [limit, setLimit] = useState(1);
  useEffect(() => setAbout(asked), [asked]);
  const ask = (event: Event) => {
    event.preventDefault();
    setLimit(1);
    setQuery({ why: about.trim() });
  };
  return (
    <Part id="why" title="Why?">
      <form class="form" onSubmit={ask}>
        <TextField label="What to explain" mono value={about} onInput={setAbout} placeholder="/home/me/project/notes.txt"
          hint="A file by its absolute path, SESSION:NUMBER, or the id of a message, a run, a call or an approval." />
        <button type="submit" disabled={!about.trim()}>Find causes</button>
      </form>
      {asked && <Causes about={asked} limit={limit} onMore={() => setLimit(Math.min(50, limit + 9))} />}
    </Part>
  );
}

function Export(): VNode {
  const [session, setSession] = useState("");
  const path = palyra.exportJournalPath(session ? { session_id: session } : {});
  return (
    <Part id="export" title="Export">
      <p class="hint">One entry per line as JSON, in order. Secrets are redacted before anything is written.</p>
      <SelectField label="Export" value={session} onChoose={setSession}
        options={[["", "The whole journal"], ...sessions.value.map((each) => [each.session_id, visible(each.title || "Untitled")] as const)]} />
      <Download quiet="button" path={path} name={`palyra-${session || "journal"}.ndjson`}>Download</Download>
      <p>Somebody gave you a proof bundle? <a href="/verify" target="_blank" rel="noopener">Check a bundle</a> in your browser; the page needs no login.</p>
    </Part>
  );
}

function Backups(): VNode {
  const [folder, setFolder] = useState("");
  const [made, setMade] = useState<BackedUp | undefined>();
  const { error, busy, attempt } = useAttempt();
  const kept = useLoaded(() => palyra.listBackups());
  const wrong = folder && !folder.startsWith("/") ? "Enter an absolute path on the computer where Palyra runs." : "";
  const backup = () => attempt(async () => {
    setMade(undefined);
    setMade(await palyra.backUpJournal(folder ? { folder } : {}));
    kept.again();
  });
  return (
    <Part id="backup" title="Journal copies">
      <form class="form" onSubmit={(event) => { event.preventDefault(); if (!wrong) void backup(); }}>
        <TextField label="Folder (optional)" mono value={folder} onInput={setFolder} wrong={wrong} eager placeholder="default backup folder"
          hint="Empty: the default folder. A folder on another disk, such as /mnt/backup, survives a disk failure." />
        <button type="submit" disabled={busy || Boolean(wrong)}>{busy ? "Copying and verifying…" : "Create backup"}</button>
      </form>
      <Problem text={error || kept.error} />
      {made && <p class="notice good" role="status">{count(made.entries)} entries copied and verified: <span class="mono breaks">{made.path}</span></p>}
      {kept.value && kept.value.backups.length > 0 && (
        <Table label="Backups" rows={kept.value.backups} keyOf={(each) => each.name} sorted="made" down
          columns={[
            { key: "name", words: "File", draw: (each) => <span class="mono">{each.name}</span>, by: (each) => each.name },
            { key: "made", words: "Created", draw: (each) => when(each.made_ms), by: (each) => each.made_ms },
            { key: "size", words: "Size", numeric: true, draw: (each) => size(each.bytes), by: (each) => each.bytes },
            { key: "get", words: "", draw: (each) => <Download path={palyra.downloadBackupPath(each.name)} name={each.name}>Download</Download> },
          ]} />
      )}
      {kept.value && !kept.value.backups.length && <p class="hint">No backups yet. <Badge>{kept.value.folder}</Badge></p>}
    </Part>
  );
}
