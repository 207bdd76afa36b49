// What others wrote and the agent may use: skills, whose they are, MCP servers, and notes in projects.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { argument, go } from "../core/router";
import { lastEntry } from "../core/store";
import { visible } from "../core/words";
import { Installed } from "../skills/installed";
import { Install } from "../skills/installing";
import { Notes } from "../skills/notes";
import { AddServer } from "../skills/adding";
import { Server } from "../skills/servers";
import { TextField } from "../ui/form";
import { Page, Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Choice, Empty, Problem } from "../ui/parts";

export function SkillsPage(): VNode {
  const view = argument.value === "mcp" || argument.value === "notes" ? argument.value : "skills";
  const changes = useChanges();
  return (
    <Page title="Skills and MCP">
      <div class="tabs"><Choice label="View" value={view} options={[["skills", "Skills"], ["mcp", "MCP servers"], ["notes", "Project notes"]]} onChoose={(each) => go("skills", each)} /></div>
      {view === "mcp" ? <Servers /> : view === "notes" ? <Notes changes={changes} /> : <><Skills /><Publishers /></>}
    </Page>
  );
}

/** The place of the last change that anybody made to how the daemon is set up. */
function useChanges(): number {
  return lastEntry.value?.kind === "admin.changed" ? lastEntry.value.position : 0;
}

function Skills(): VNode {
  const found = useLoaded(() => palyra.listSkills(), [useChanges()]);
  return (
    <>
      <p>A skill is a folder with instructions and optional sandboxed programs. The agent uses only skills that you enable.</p>
      <Problem text={found.error} />
      {found.value && !found.value.skills.length && <Empty><p>No skills installed. Add one below.</p></Empty>}
      <ul class="cards" aria-label="Installed skills">{found.value?.skills.map((each) => <Installed key={each.record.name} skill={each} onChanged={found.again} />)}</ul>
      <Part id="install" title="Install or update"><Install onInstalled={found.again} /></Part>
    </>
  );
}

function Publishers(): VNode {
  const found = useLoaded(() => palyra.listPublishers(), [useChanges()]);
  const [name, setName] = useState("");
  const [key, setKey] = useState("");
  const { error, busy, attempt } = useAttempt();
  const wrong = key && !/^[A-Za-z0-9+/]{43}=$/.test(key.trim()) ? "A public key is 44 characters and ends with =." : "";
  const add = () => attempt(async () => {
    await palyra.addPublisher({ name, key: key.trim() });
    setName("");
    setKey("");
    found.again();
  }, "Added.");
  return (
    <Part id="publishers" title="Trusted publishers">
      <p class="hint">Skills signed by these publishers start trusted. Revoking one puts its skills back into quarantine.</p>
      <Problem text={found.error || error} />
      <ul class="plain-list">{found.value?.publishers.map((each) => <li key={each.name} class="row"><strong>{visible(each.name)}</strong><span class="mono hint breaks">{each.key}</span><Sure words="Revoke trust…" question={`Revoke trust in ${each.name}?`} yes="Revoke trust" disabled={busy} onYes={() => void attempt(async () => { await palyra.removePublisher({ name: each.name }); found.again(); })} /></li>)}</ul>
      <form class="form" onSubmit={(event) => { event.preventDefault(); if (!wrong) void add(); }}>
        <TextField label="Name" value={name} onInput={setName} required />
        <TextField label="Public key" mono value={key} onInput={setKey} wrong={wrong} required />
        <button type="submit" disabled={busy || !name || !key || Boolean(wrong)}>Add publisher</button>
      </form>
    </Part>
  );
}

function Servers(): VNode {
  const found = useLoaded(() => palyra.listMcpServers(), [useChanges()]);
  return (
    <>
      <p>Third-party programs that offer tools. They run in the sandbox, policy decides their calls, and you review every tool description.</p>
      <Problem text={found.error} />
      {found.value && !found.value.servers.length && <Empty><p>No MCP servers. Add one below.</p></Empty>}
      <ul class="cards" aria-label="MCP servers">{found.value?.servers.map((each) => <Server key={each.name} server={each} onChanged={found.again} />)}</ul>
      <button type="button" class="quiet" onClick={found.again}>Refresh</button>
      <Part id="add" title="Add a server"><AddServer onAdded={found.again} /></Part>
    </>
  );
}
