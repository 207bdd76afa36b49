// How workers, listeners and scopes are said.
import type { Lease, Listener, Token, WorkerShown } from "../types";

type Tone = readonly [string, string];

export function stateOf(it: WorkerShown): Tone {
  if (it.state === "revoked") return ["bad", "Revoked"];
  if (it.state === "draining") return ["warn", it.connected ? "Draining" : "Draining, offline"];
  return it.connected ? ["good", "Connected"] : ["warn", "Offline"];
}

export const LEASES: Record<Lease["state"], Tone> = { held: ["info", "Running"], done: ["good", "Done"], cancelled: ["warn", "Cancelled"], lost: ["bad", "Lost"] };

export const DOORS: Record<Listener["name"], string> = { http: "HTTP, WebSockets and this console", http3: "HTTP/3", grpc: "gRPC", workers: "Workers" };

export const SCOPES: Record<Token["scope"], string> = {
  client: "Client: own sessions only, no approvals", viewer: "Viewer: reads everything, changes nothing", operator: "Operator: everything except tokens, policies and permanent approvals", owner: "Owner: everything", connector: "Connector", worker: "Worker",
};

/** Where workers come in, unless somebody says otherwise: on every network that this machine is in. */
export const WORKERS_AT = "0.0.0.0:7445";
