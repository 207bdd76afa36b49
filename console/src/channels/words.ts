// How the states of channels, messages and replies are said.
import type { ChannelStatus, StoredMessage as Message, Reply } from "../types";

type Tone = readonly [string, string];

const CONNECTIONS: Record<ChannelStatus["connection"]["state"], Tone> = {
  connected: ["good", "Connected"], connecting: ["", "Connecting"], lost: ["warn", "Reconnecting"], failed: ["bad", "Rejected"], off: ["", "Off"],
};

export function stateOf(channel: ChannelStatus): Tone {
  return channel.paused ? ["warn", "Paused"] : !channel.enabled ? ["", "Disabled"] : CONNECTIONS[channel.connection.state];
}

export const MESSAGES: Record<Message["state"], Tone> = {
  received: ["", "Received"], held: ["", "Held"], queued: ["", "In progress"], answered: ["good", "Answered"], refused: ["warn", "Rejected"], failed: ["bad", "Failed"],
};

export const REPLIES: Record<Reply["state"], Tone> = {
  waiting: ["", "Queued"], sending: ["", "Sending"], sent: ["good", "Sent"], dead: ["bad", "Undelivered"], dropped: ["", "Dropped"],
};

export const REPLY_KINDS: Record<Reply["kind"], string> = {
  answer: "reply", failure: "error notice", approval: "approval request", command: "command reply", edit: "edit", message: "message", pairing: "pairing", told: "notice to the sender",
};
