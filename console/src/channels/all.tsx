// Every channel with how it is: connected or not, what is under way, what could not be delivered.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { ago, count, visible } from "../core/words";
import { useChanged } from "../ui/fresh";
import { useAttempt, useLoaded } from "../ui/page";
import { Badge, Empty, Problem } from "../ui/parts";
import { stateOf } from "./words";
import type { ChannelStatus } from "../types";

export function All(): VNode {
  const found = useLoaded(() => palyra.listChannels(), [], useChanged("channels", "settings"));
  const { error, busy, attempt } = useAttempt();
  const rows = found.value?.channels ?? [];
  const hold = (paused: boolean) => attempt(async () => { await palyra.pauseChannels({ paused }); found.again(); }, paused ? "All channels are paused." : "Channels resumed.");
  return (
    <>
      <Problem text={found.error || error} />
      {!found.value ? !found.error && <p role="status">Loading…</p> : !rows.length ? (
        <Empty><h2>No channels yet</h2><p>A channel lets you and people you approve talk to Palyra in Discord, Slack, Telegram, Matrix, e-mail or a program of your own.</p><div class="row"><a class="button main" href={href("channels", "new")}>Add channel</a></div></Empty>
      ) : (
        <>
          <ul class="cards side" aria-label="Channels">{rows.map((each) => <Card key={each.name} it={each} />)}</ul>
          <div class="row">
            <button type="button" class="quiet small" disabled={busy} onClick={() => void hold(true)}>Pause all</button>
            <button type="button" class="quiet small" disabled={busy} onClick={() => void hold(false)}>Resume all</button>
            <span class="hint">Applies to every channel.</span>
          </div>
        </>
      )}
    </>
  );
}

function Card({ it }: { it: ChannelStatus }): VNode {
  const [tone, words] = stateOf(it);
  const of = (...names: string[]) => names.reduce((sum, name) => sum + (it.messages?.[name] ?? 0), 0);
  const dead = it.outbox?.dead ?? 0;
  return (
    <li class="card">
      <div class="row"><a href={href("channels", "at", it.name)}><strong>{it.name}</strong></a><span class="hint">{it.kind}</span><Badge tone={tone}>{words}</Badge>{dead > 0 && <a href={href("channels", "dead")}><Badge tone="bad">{count(dead)} undelivered</Badge></a>}</div>
      <p class="hint">
        {it.connection.account && <>as <bdi class="mono breaks">{visible(it.connection.account)}</bdi> · </>}
        {count(of("answered"))} answered · {count(of("received", "held", "queued"))} in progress · {count(of("refused", "failed"))} rejected or failed
        {it.connection.heard_ms ? <> · last seen {ago(it.connection.heard_ms)}</> : null}
      </p>
      {it.connection.detail && it.connection.state !== "connected" && <p class="breaks">{visible(it.connection.detail)}</p>}
    </li>
  );
}
