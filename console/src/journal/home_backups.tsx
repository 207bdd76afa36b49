// Backups of the home: how they stand, one more, whether the newest can be restored, and how often.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { ago, count, size, when } from "../core/words";
import { SelectField, TextField } from "../ui/form";
import { Part, useAttempt, useLoaded } from "../ui/page";
import { Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { HomeBackupList } from "../types";

export function HomeBackups(): VNode {
  const kept = useLoaded(() => palyra.listHomeBackups());
  const { error, busy, attempt } = useAttempt();
  const now = () => attempt(async () => { await palyra.makeBackup(); kept.again(); }, "The home was backed up.");
  const check = () => attempt(async () => { await palyra.checkBackup({}); kept.again(); }, "The backup was checked.");
  const found = kept.value;
  const last = found?.status.last;
  const drill = found?.status.drill;
  return (
    <Part id="home-backup" title="Home backups">
      {found && <p class="hint">{found.every ? `Scheduled ${found.every}` : "Not scheduled"}, to <span class="mono breaks">{found.target}</span>. Keeps {count(found.keep)}. {found.encrypted ? "Encrypted, with keys." : "Not encrypted: keys stay in the home folder."} {found.drill ? `Restore drill: ${found.drill}.` : "No restore drill."}</p>}
      <div class="row">
        <button type="button" disabled={busy} onClick={() => void now()}>Back up home</button>
        <button type="button" class="quiet" disabled={busy || !found?.backups.length} onClick={() => void check()}>Check newest</button>
      </div>
      {found && <Settings key={[found.every, found.keep, found.drill, found.target].join()} now={found} onSaved={kept.again} />}
      <Problem text={error || kept.error || found?.problem || (found?.status.problem ? `Last backup failed: ${found.status.problem}` : "")} />
      {last && <p>Last backup: <span title={when(last.made_ms)}>{ago(last.made_ms)}</span>, {count(last.entries)} entries, {size(last.bytes)}.</p>}
      {drill && (drill.ok
        ? <p class="notice good" role="status" title={when(drill.checked_ms ?? 0)}>{`Restored and verified ${ago(drill.checked_ms ?? 0)}: ${count(drill.entries ?? 0)} entries.`}</p>
        : <Problem text={`${drill.name} cannot be restored: ${drill.problem}`} />)}
      {found && found.backups.length > 0 && (
        <Table label="Archives" rows={found.backups} keyOf={(each) => each.name} sorted="made" down
          columns={[
            { key: "name", words: "File", draw: (each) => <span class="mono">{each.name}</span>, by: (each) => each.name },
            { key: "made", words: "Created", draw: (each) => when(each.made_ms), by: (each) => each.made_ms },
            { key: "size", words: "Size", numeric: true, draw: (each) => size(each.bytes), by: (each) => each.bytes },
          ]} />
      )}
    </Part>
  );
}

const OFTEN: readonly (readonly [string, string])[] = [["", "Off"], ["hourly", "Hourly"], ["daily", "Daily"], ["weekly", "Weekly"], ["monthly", "Monthly"]];

/** What may be chosen, and what the file says if that is something else. */
function often(now: string): readonly (readonly [string, string])[] {
  return OFTEN.some(([each]) => each === now) ? OFTEN : [...OFTEN, [now, `Every ${now}`]];
}

function Settings({ now, onSaved }: { now: HomeBackupList; onSaved: () => void }): VNode {
  const [draft, setDraft] = useState({ every: now.every, keep: String(now.keep), drill: now.drill, target: now.target });
  const { error, busy, attempt } = useAttempt();
  const set = (some: Partial<typeof draft>) => setDraft({ ...draft, ...some });
  const keep = Number(draft.keep);
  const wrong = Number.isInteger(keep) && keep >= 1 && keep <= 10_000 ? "" : "Enter a number from 1 to 10,000.";
  const changes: Record<string, string | number> = {};
  if (draft.every !== now.every) changes["backups.every"] = draft.every;
  if (keep !== now.keep) changes["backups.keep"] = keep;
  if (draft.drill !== now.drill) changes["backups.drill"] = draft.drill;
  if (draft.target.trim() !== now.target) changes["backups.target"] = draft.target.trim();
  const save = () => attempt(async () => { await palyra.changeConfig({ changes }); onSaved(); }, "Saved.");
  return (
    <details>
      <summary>Backup settings</summary>
      <form class="form wide" aria-label="Backup settings" onSubmit={(event) => { event.preventDefault(); void save(); }}>
        <div class="row fields">
          <SelectField label="Back up" value={draft.every} options={often(now.every)} onChoose={(every) => set({ every })} />
          <SelectField label="Restore drill" value={draft.drill} options={often(now.drill)} onChoose={(drill) => set({ drill })} />
          <TextField label="Backups to keep" type="number" value={draft.keep} onInput={(value) => set({ keep: value })} wrong={wrong} eager />
        </div>
        <TextField label="Target" mono value={draft.target} onInput={(target) => set({ target })}
          hint={<>A folder, <code>s3://BUCKET/PREFIX</code> or <code>sftp://USER@HOST/FOLDER</code>. Passphrase and keys are set with <code>palyra config set</code>.</>} />
        <Problem text={error} />
        <button type="submit" class="main" disabled={busy || Boolean(wrong) || !Object.keys(changes).length}>Save settings</button>
      </form>
    </details>
  );
}
