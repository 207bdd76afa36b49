// MCP servers: how they are, what they offer, and what they say anew that waits for a yes.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { visible } from "../core/words";
import { Diff, Output } from "../ui/code";
import { useAttempt } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { ServerStatus } from "../types";

const STATES: Record<string, readonly [string, string]> = {
  disabled: ["", "switched off"], starting: ["", "starting"], ready: ["good", "ready"], waiting: ["warn", "tries again"], failed: ["bad", "does not work"], stopped: ["", "stopped"],
};

export function Server({ server, onChanged }: { server: ServerStatus; onChanged: () => void }): VNode {
  const { error, busy, attempt } = useAttempt();
  const [tone, words] = STATES[server.state] ?? ["", server.state];
  const pending = server.pending ?? [];
  const accept = (fingerprint: string, said: string) => attempt(async () => {
    await palyra.acceptMcpServer(server.name, { fingerprint });
    onChanged();
  }, said);
  const restart = () => attempt(async () => {
    await palyra.restartMcpServer(server.name);
    onChanged();
  }, `${server.name} was started again.`);
  return (
    <li class="card">
      <div class="row"><strong>{server.name}</strong><Badge tone={tone}>{words}</Badge>{pending.length > 0 && <Badge tone="warn">{pending.length} wait for a yes</Badge>}</div>
      <dl class="facts">
        <dt>says it is</dt><dd><bdi>{visible(server.server || "nothing yet")}</bdi></dd>
        <dt>{server.transport === "http" ? "at" : "program"}</dt><dd class="mono breaks">{visible(server.where || "–")}</dd>
        {server.tier && <><dt>sandbox</dt><dd>tier {server.tier}</dd></>}
        <dt>tools</dt><dd>{(server.tools ?? []).length ? (server.tools ?? []).map((each) => <span key={each} class="badge mono">{visible(each)}</span>) : "none offered"}</dd>
      </dl>
      <Problem text={server.state === "ready" ? "" : (server.detail ?? "")} />
      {(server.problems ?? []).map((each) => <p key={each} class="hint">{visible(each)}</p>)}
      <Problem text={error} />
      {pending.length > 0 && (
        <div class="form">
          <p>These are not offered to the agent until you have read them. A server can change what it says at any time; each change asks again.</p>
          {pending.map((each) => (
            <details key={each.fingerprint}>
              <summary><span class="mono">{visible(each.tool)}</span> <Badge tone="warn">{each.new ? "new" : "changed"}</Badge> {visible(each.words ?? "")}</summary>
              <Diff text={visible(each.change)} />
              <button type="button" class="yes" disabled={busy} onClick={() => void accept(each.fingerprint, `${each.tool} is offered.`)}>Accept this</button>
            </details>
          ))}
          {pending.length > 1 && <button type="button" class="yes" disabled={busy} onClick={() => void accept(server.fingerprint ?? "", "All are offered.")}>Accept all {pending.length}</button>}
        </div>
      )}
      {server.log && <details><summary>What it wrote last</summary><Output label="log" text={visible(server.log)} /></details>}
      {server.state !== "disabled" && <button type="button" class="quiet small" disabled={busy} onClick={() => void restart()}>Start it again</button>}
    </li>
  );
}
