// How the states of channels, messages and replies are said.
import type { ChannelStatus, StoredMessage as Message, Reply } from "../types";

type Tone = readonly [string, string];

const CONNECTIONS: Record<ChannelStatus["connection"]["state"], Tone> = {
  connected: ["good", "connected"], connecting: ["", "connecting"], lost: ["warn", "lost, tries again"], failed: ["bad", "refused"], off: ["", "off"],
};

export function stateOf(channel: ChannelStatus): Tone {
  return channel.paused ? ["warn", "paused"] : !channel.enabled ? ["", "switched off"] : CONNECTIONS[channel.connection.state];
}

export const MESSAGES: Record<Message["state"], Tone> = {
  received: ["", "received"], held: ["", "held a moment"], queued: ["", "under way"], answered: ["good", "answered"], refused: ["warn", "refused"], failed: ["bad", "failed and told"],
};

export const REPLIES: Record<Reply["state"], Tone> = {
  waiting: ["", "waits"], sending: ["", "being sent"], sent: ["good", "sent"], dead: ["bad", "could not be delivered"], dropped: ["", "given up"],
};

export const REPLY_KINDS: Record<Reply["kind"], string> = {
  answer: "answer", failure: "failure notice", approval: "question", command: "answer to a command", edit: "changed text", message: "message", pairing: "about pairing", told: "word to the sender",
};
