// How workers, listeners and scopes are said, and when there may be news of them.
import type { Lease, Listener, Token, WorkerShown } from "../types";

type Tone = readonly [string, string];

export function stateOf(it: WorkerShown): Tone {
  if (it.state === "revoked") return ["bad", "revoked"];
  if (it.state === "draining") return ["warn", it.connected ? "draining" : "draining, away"];
  return it.connected ? ["good", "connected"] : ["warn", "away"];
}

export const LEASES: Record<Lease["state"], Tone> = { held: ["", "runs"], done: ["good", "done"], cancelled: ["warn", "cancelled"], lost: ["bad", "lost"] };

export const DOORS: Record<Listener["name"], string> = { http: "HTTP, WebSockets and this console", http3: "HTTP/3", grpc: "gRPC", workers: "Workers" };

export const SCOPES: Record<Token["scope"], string> = {
  viewer: "Viewer: reads", operator: "Operator: everything but tokens, policies and the whole journal", owner: "Owner: everything", connector: "Connector", worker: "Worker",
};

/** What runs at workers, and who uses tokens, may be another when these are on a tape. */
export const NEWS = /^tool\.(started|finished)$|^run\./;
// What no tape of ours tells of: workers that come and go, tokens that only look, certificates.
export const PULSE_MS = 3000;
