// Channels at a glance: connection, last message, how long answers take, and what waits.
import type { VNode } from "preact";
import { href } from "../core/router";
import * as palyra from "../core/verbs";
import { ago, count, lasting, visible, when } from "../core/words";
import type { ChannelStatus, StoredMessage } from "../types";
import { useChanged } from "../ui/fresh";
import { useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";

const RECENT = 30;
const STATES: Record<ChannelStatus["connection"]["state"], readonly [string, string]> = {
  connected: ["good", "Connected"], connecting: ["", "Connecting"], failed: ["bad", "Failed"], lost: ["warn", "Disconnected"], off: ["", "Off"],
};

interface Row {
  channel: ChannelStatus;
  recent: readonly StoredMessage[];
}

export function ChannelHealth(): VNode {
  const found = useLoaded(async (): Promise<Row[]> => {
    const { channels } = await palyra.listChannels();
    return Promise.all(channels.map(async (channel) => ({ channel, recent: (await palyra.listChannelMessages({ channel: channel.name, limit: RECENT })).messages })));
  }, [], useChanged("channels"));
  return (
    <section class="box" aria-labelledby="part-channels">
      <div class="box-head"><h2 id="part-channels">Channels</h2><a class="hint" href={href("channels")}>All channels</a></div>
      <Problem text={found.error} />
      {found.value && !found.value.length && <p class="hint">No channels. <a href={href("channels")}>Add a channel</a></p>}
      {found.value && found.value.length > 0 && <Table label="Channels" rows={found.value} keyOf={(row) => row.channel.name} columns={[
        { key: "name", words: "Channel", draw: ({ channel }) => <a href={href("channels", channel.name)}><bdi>{visible(channel.name)}</bdi></a>, by: ({ channel }) => channel.name },
        { key: "state", words: "State", draw: ({ channel }) => (channel.paused ? <Badge tone="warn">Paused</Badge> : <Badge tone={STATES[channel.connection.state][0]} title={visible(channel.connection.detail ?? "")}>{STATES[channel.connection.state][1]}</Badge>) },
        { key: "last", words: "Last message", draw: ({ recent }) => (recent[0] ? <span title={when(recent[0].received_ms)}>{ago(recent[0].received_ms)}</span> : "none"), by: ({ recent }) => recent[0]?.received_ms ?? 0 },
        { key: "lag", words: "Lag", numeric: true, draw: ({ recent }) => lag(recent) },
        { key: "waits", words: "Waiting", numeric: true, draw: ({ channel }) => <>{count(sum(channel.messages, ["received", "held", "queued"]) + sum(channel.outbox, ["waiting", "sending"]))}{channel.outbox?.dead ? <> <Badge tone="bad">{count(channel.outbox.dead)} dead</Badge></> : ""}</> },
      ]} />}
    </section>
  );
}

function sum(counts: Record<string, number> | undefined, names: readonly string[]): number {
  return names.reduce((all, name) => all + (counts?.[name] ?? 0), 0);
}

/** The median time from a message to its answer, of the recent ones. */
function lag(recent: readonly StoredMessage[]): string {
  const times = recent.filter((each) => each.state === "answered" && each.ended_ms).map((each) => each.ended_ms! - each.received_ms).sort((a, b) => a - b);
  return times.length ? lasting(times[times.length >> 1]!) : "–";
}
