// Installing a skill: first what it asks for, and what of that is new; then a yes to exactly those bytes.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { visible } from "../core/words";
import { TextField } from "../ui/form";
import { useAttempt } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { Permission, Proposal, ShownSkill } from "../types";

const EFFECTS: Record<string, string> = { pure: "changes nothing", idempotent: "is safe to repeat", once: "cannot be undone" };
export const STATES: Record<string, readonly [string, string]> = { quarantined: ["warn", "Quarantined"], enabled: ["", "Enabled"], trusted: ["good", "Trusted"] };

function words({ tool, kind, value }: Permission): string {
  switch (kind) {
    case "effect": return `${tool}: a tool that ${EFFECTS[value] ?? value}`;
    case "host": return `${tool}: connect to ${value}`;
    case "read": return `${tool}: read ${value === "." ? "every file of the workspace" : `${value} in the workspace`}`;
    case "write": return `${tool}: write ${value === "." ? "every file of the workspace" : `${value} in the workspace`}`;
    case "secret": return `${tool}: use the secret ${value}`;
    case "limit": return `${tool}: raise a limit: ${value.replace("=", " ")}`;
  }
}

type Source = { file: File } | { path: string };

async function ask<T extends Proposal | ShownSkill>(source: Source, confirm: string): Promise<T> {
  const given = confirm ? { confirm } : {};
  const answer = "path" in source ? palyra.installSkill({ path: source.path, ...given }) : palyra.installSkillArchive(source.file, given);
  return (await answer) as T;
}

export function Install({ onInstalled }: { onInstalled: () => void }): VNode {
  const [path, setPath] = useState("");
  const [found, setFound] = useState<{ source: Source; proposal: Proposal } | undefined>();
  const [said, setSaid] = useState("");
  const { error, busy, attempt } = useAttempt();
  const look = (source: Source) => attempt(async () => {
    setSaid("");
    setFound(undefined);
    setFound({ source, proposal: await ask<Proposal>(source, "") });
  });
  const install = (source: Source, proposal: Proposal) => attempt(async () => {
    const { skill } = await ask<ShownSkill>(source, proposal.digest);
    setFound(undefined);
    setPath("");
    setSaid(`${skill.record.name} is ${proposal.updates ? "updated" : "installed"}: ${STATES[skill.state]![1]}.${skill.state === "quarantined" ? " Enable it so that the agent can use it." : ""}`);
    onInstalled();
  });
  const wrong = path && !path.startsWith("/") ? "Enter an absolute path on the computer where Palyra runs." : "";
  return (
    <>
      <div class="form">
        <div class="field">
          <label for="skill-file">Zip file</label>
          <input id="skill-file" type="file" accept=".zip,application/zip" onChange={(event) => { const file = event.currentTarget.files?.[0]; if (file) void look({ file }); event.currentTarget.value = ""; }} />
        </div>
        <form onSubmit={(event) => { event.preventDefault(); if (path && !wrong) void look({ path }); }}>
          <TextField label="Or a path on Palyra's computer" mono value={path} onInput={setPath} wrong={wrong} placeholder="/home/me/skills/word-count" />
          <button type="submit" disabled={busy || !path || Boolean(wrong)}>{busy ? "Loading…" : "Preview"}</button>
        </form>
      </div>
      <Problem text={error} />
      {said && <p class="notice good" role="status">{said}</p>}
      {found && <Proposed proposal={found.proposal} busy={busy} onInstall={() => void install(found.source, found.proposal)} onLeave={() => setFound(undefined)} />}
    </>
  );
}

function Proposed({ proposal, busy, onInstall, onLeave }: { proposal: Proposal; busy: boolean; onInstall: () => void; onLeave: () => void }): VNode {
  const added = new Set(proposal.added.map((each) => words(each)));
  const kept = proposal.permissions.map((each) => words(each)).filter((each) => !added.has(each));
  const [tone, state] = STATES[proposal.state]!;
  return (
    <section class="form" aria-label={`Permissions of ${proposal.name}`}>
      <h3><bdi>{visible(proposal.name)}</bdi> {proposal.version} {proposal.updates && !proposal.older_than && <Badge>Update</Badge>} {proposal.older_than && <Badge tone="bad">Older than the installed {visible(proposal.older_than)}</Badge>} <Badge tone={tone}>{state}</Badge></h3>
      <p><bdi>{visible(proposal.description)}</bdi></p>
      <p class="hint">{proposal.publisher ? `Signed by ${visible(proposal.publisher)} (trusted).` : proposal.signer ? "Signed by an unknown publisher." : "Not signed."}</p>
      <h4>Permissions</h4>
      <ul class="permissions">
        {[...added].map((each) => <li key={each} class="add"><Badge tone="warn">New</Badge> {visible(each)}</li>)}
        {kept.map((each) => <li key={each}>{visible(each)}</li>)}
        {(proposal.dropped ?? []).map((each) => <li key={words(each)} class="gone"><Badge>Removed</Badge> <s>{visible(words(each))}</s></li>)}
        {!proposal.permissions.length && <li>None: instructions only.</li>}
      </ul>
      {Object.keys(proposal.changes ?? {}).length > 0 && <details><summary>Files</summary><ul class="plain-list">{Object.entries(proposal.changes ?? {}).map(([file, how]) => <li key={file}><span class="mono">{visible(file)}</span> <Badge>{how}</Badge></li>)}</ul></details>}
      <p class="hint mono breaks">{proposal.digest}</p>
      <div class="row"><button type="button" class="yes" disabled={busy} onClick={onInstall}>{proposal.older_than ? "Downgrade" : proposal.updates ? "Update" : "Install"}</button><button type="button" class="quiet" onClick={onLeave}>Cancel</button></div>
    </section>
  );
}
