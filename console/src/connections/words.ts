// How workers, listeners and scopes are said.
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
  client: "Client: asks in its own sessions, approves nothing", viewer: "Viewer: reads every session, memory and the journal, changes nothing", operator: "Operator: everything but tokens, policies and approving for good", owner: "Owner: everything", connector: "Connector", worker: "Worker",
};
