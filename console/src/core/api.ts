// Talking to the daemon. Every failure becomes a Refused with words for a person; a 401 anywhere means logged out.
import { signal } from "@preact/signals";

export const access = signal<"unknown" | "in" | "out">("unknown");
/** Whether the daemon answers. Set by streams and by requests alike. */
export const online = signal(true);

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

// The cookie is only half of what lets this page in: browsers send it to every server on this machine. The other half came with
// the login link and is kept here, where no page of another port can look.
const KEPT = "palyra.key";

export function keepKey(key: string): void {
  localStorage.setItem(KEPT, key);
}

/** An address for what cannot send headers: streams, sockets and downloads. */
export function withKey(path: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}key=${encodeURIComponent(localStorage.getItem(KEPT) ?? "")}`;
}

export const UNREACHABLE = "Cannot reach Palyra. Start it with `palyra up`; this page reconnects by itself.";

/** The page's half of what lets it in, for requests. */
export function keyHeader(): Record<string, string> {
  return { "X-Palyra-Key": localStorage.getItem(KEPT) ?? "" };
}

interface ErrorWire {
  error?: { code?: string; message?: string; details?: Record<string, unknown> };
}

export async function send(method: string, path: string, body?: BodyInit, type?: string): Promise<Response> {
  const headers = keyHeader();
  if (type) headers["Content-Type"] = type;
  let response: Response;
  try {
    response = await fetch(path, { method, headers, ...(body === undefined ? {} : { body }) });
  } catch {
    online.value = false;
    throw new Refused(0, "unreachable", UNREACHABLE);
  }
  if (response.ok) {
    online.value = true;
    access.value = "in";
    return response;
  }
  if (response.status === 401) access.value = "out";
  const wire = (await response.json().catch(() => ({}))) as ErrorWire;
  const message = wire.error?.message ?? `Palyra answered with HTTP ${response.status}`;
  throw new Refused(response.status, wire.error?.code ?? "unknown", message, wire.error?.details ?? {});
}

/** A part of a path, whatever it is made of. */
export const part = (value: string | number) => encodeURIComponent(value);

/** An address with what was given; what is undefined is left out. */
export function withQuery(path: string, given: object = {}): string {
  const said = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  return said.length ? `${path}?${said.map(([name, value]) => `${name}=${part(String(value))}`).join("&")}` : path;
}

/** Ask for JSON. What has no effects says everything in its address. The verbs are made of this. */
export async function ask<T>(method: string, path: string, given?: object): Promise<T> {
  const inAddress = method === "GET" || method === "DELETE";
  const response = inAddress ? await send(method, withQuery(path, given)) : await send(method, path, JSON.stringify(given ?? {}), "application/json");
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** An answer as it came, byte by byte. */
export async function text(path: string): Promise<string> {
  return (await send("GET", path)).text();
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Something that is asked for again and again. Who asks while an answer is under way, which may be older than what they know of, gets
 * the next one; those who wait for that get the same. */
export function oneAtATime(ask: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  return function again(): Promise<void> {
    if (!running) return (running = ask().finally(() => (running = undefined)));
    next ??= running.catch(() => undefined).then(() => {
      next = undefined;
      return again();
    });
    return next;
  };
}
