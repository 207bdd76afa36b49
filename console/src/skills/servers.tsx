// MCP servers: how they are, what they offer, and what they say anew that waits for a yes.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { visible } from "../core/words";
import { Diff, Output } from "../ui/code";
import { go } from "../core/router";
import { takeOver } from "../policies/files";
import { Sure, useAttempt } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { ServerStatus, ToolUse } from "../types";
import { ArgumentRoles } from "./arguments";

const STATES: Record<string, readonly [string, string]> = {
  disabled: ["", "Disabled"], starting: ["", "Starting"], ready: ["good", "Ready"], waiting: ["warn", "Retrying"], failed: ["bad", "Failed"], stopped: ["", "Stopped"],
};

/** A policy that lets calls of a server's tools ask, instead of being denied. It is saved in the editor, or not. */
function permit(server: string): string {
  return `@id("mcp-${server}")\n@reason("the tools of the MCP server ${server} ask first")\npermit (principal, action == Action::"run", resource)\nwhen { resource.source == "mcp:${server}" };\n`;
}

export function Server({ server, onChanged }: { server: ServerStatus; onChanged: () => void }): VNode {
  const { error, busy, attempt } = useAttempt();
  const [tone, words] = STATES[server.state] ?? ["", server.state];
  const pending = server.pending ?? [];
  const [edited, setEdited] = useState<Record<string, ToolUse>>({});
  const edit = (tool: string) => (use: ToolUse) => setEdited({ ...edited, [tool]: use });
  const accept = (fingerprint: string, said: string) => attempt(async () => {
    await palyra.acceptMcpServer(server.name, { fingerprint, uses: edited });
    setEdited({});
    onChanged();
  }, said);
  const save = (tool: string, use: ToolUse) => attempt(async () => {
    await palyra.setMcpArguments(server.name, { tool, use });
    setEdited({});
    onChanged();
  }, `Arguments of ${tool} saved.`);
  const restart = () => attempt(async () => {
    await palyra.restartMcpServer(server.name);
    onChanged();
  }, `${server.name} restarted.`);
  const enable = (enabled: boolean) => attempt(async () => {
    await palyra.changeMcpServer(server.name, { enabled });
    onChanged();
  }, enabled ? "Enabled." : "Disabled.");
  return (
    <li class="card">
      <div class="row"><strong>{server.name}</strong><Badge tone={tone}>{words}</Badge>{pending.length > 0 && <Badge tone="warn">{pending.length} need review</Badge>}</div>
      <dl class="facts">
        <dt>Server</dt><dd><bdi>{visible(server.server || "unknown")}</bdi></dd>
        <dt>{server.transport === "http" ? "Address" : "Program"}</dt><dd class="mono breaks">{visible(server.where || "–")}</dd>
        {server.package && <><dt>Package</dt><dd class="mono breaks">{visible(server.package)}</dd></>}
        {server.tier && <><dt>Sandbox</dt><dd>tier {server.tier}</dd></>}
        <dt>Tools</dt><dd>{(server.tools ?? []).length ? (server.tools ?? []).map((each) => <span key={each} class="badge mono">{visible(each)}</span>) : "none"}</dd>
      </dl>
      <Problem text={server.state === "ready" ? "" : (server.detail ?? "")} />
      {(server.problems ?? []).map((each) => <p key={each} class="hint">{visible(each)}</p>)}
      <Problem text={error} />
      {pending.length > 0 && (
        <div class="form">
          <p>The agent cannot use these tools until you accept them. Each later change needs a new review.</p>
          {pending.map((each) => (
            <details key={each.fingerprint}>
              <summary><span class="mono">{visible(each.tool)}</span> <Badge tone="warn">{each.new ? "New" : "Changed"}</Badge> {visible(each.words ?? "")}</summary>
              <Diff text={visible(each.change)} />
              {each.use && <ArgumentRoles tool={each.tool} use={edited[each.tool] ?? each.use} disabled={busy} onChange={edit(each.tool)} />}
              <button type="button" class="yes" disabled={busy} onClick={() => void accept(each.fingerprint, `${each.tool} accepted.`)}>Accept tool</button>
            </details>
          ))}
          {pending.length > 1 && <button type="button" class="yes" disabled={busy} onClick={() => void accept(server.fingerprint ?? "", "All accepted.")}>Accept all {pending.length}</button>}
        </div>
      )}
      {Object.entries(server.uses ?? {}).map(([tool, use]) => (
        <details key={tool}>
          <summary>Arguments of <span class="mono">{visible(tool)}</span></summary>
          <ArgumentRoles tool={tool} use={edited[tool] ?? use} disabled={busy} onChange={edit(tool)} />
          <button type="button" disabled={busy || !edited[tool]} onClick={() => void save(tool, edited[tool] ?? use)}>Save arguments</button>
        </details>
      ))}
      {server.log && <details><summary>Log</summary><Output label="log" text={visible(server.log)} /></details>}
      <div class="row">
        {server.state !== "disabled" && <button type="button" class="quiet small" disabled={busy} onClick={() => void restart()}>Restart</button>}
        <button type="button" class="quiet small" disabled={busy} onClick={() => void enable(server.state === "disabled")}>{server.state === "disabled" ? "Enable" : "Disable"}</button>
        {(server.tools ?? []).length > 0 && <button type="button" class="quiet small" disabled={busy} title="Calls are denied until a policy permits them" onClick={() => void attempt(async () => { await takeOver("mcp.cedar", permit(server.name)); go("policies", "files"); })}>Permit calls…</button>}
        <Sure words="Remove…" question={`Remove ${server.name}? Its folder and what you accepted stay.`} yes="Remove" disabled={busy} onYes={() => void attempt(async () => { await palyra.removeMcpServer(server.name); onChanged(); }, "Removed.")} />
      </div>
    </li>
  );
}
