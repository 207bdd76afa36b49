/**
 * A client of the Palyra daemon: its verbs as methods, and watching that survives broken connections.
 *
 *     const palyra = new Palyra({ url: "http://127.0.0.1:7142", token });
 *     console.log((await palyra.ask("what is in this folder?")).text);
 */
import { VERBS } from "./verbs.js";

const ENDS = ["run.completed", "run.failed", "run.cancelled"];
// The daemon sends a heartbeat every 15 seconds: three missed ones are a dead connection.
const SILENCE_MS = 45_000;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;

/** What the daemon refused, or that nobody answered (`unreachable`). `retryable`: the same may succeed later. */
export class PalyraError extends Error {
  constructor({ code = "internal", message = "", retryable = false, details = {} }, status = 0) {
    super(message);
    this.name = "PalyraError";
    Object.assign(this, { code, retryable, details, status });
  }
}

export class Palyra {
  #url;
  #token;
  #fetch;

  constructor({ url = "http://127.0.0.1:7142", token = "", fetch = globalThis.fetch } = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = (...args) => fetch(...args);
  }

  /** Any endpoint, with plain JSON both ways. */
  async request(method, path, { query, body, signal } = {}) {
    const response = await this.#send(method, path, { query, body, signal });
    const text = await response.text();
    return text ? JSON.parse(text) : undefined;
  }

  /** What is not JSON, as it came. */
  async fetchBytes(method, path, { query, body, signal } = {}) {
    return (await this.#send(method, path, { query, body, signal })).blob();
  }

  /** Send what is not JSON; the answer is. */
  async upload(method, path, data, { query, media = "application/octet-stream", signal } = {}) {
    const response = await this.#send(method, path, { query, data, headers: { "Content-Type": media }, signal });
    const text = await response.text();
    return text && response.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : text || undefined;
  }

  /** The events of one answer, until it ends. `watch` goes on over broken connections. */
  async *events(method, path, { query, body, signal } = {}) {
    yield* this.#messages(method, path, { query, body, signal });
  }

  async #send(method, path, { query, body, data, signal, headers = {} }) {
    const said = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
    const tail = said.length ? `?${new URLSearchParams(said.map(([name, value]) => [name, String(value)]))}` : "";
    const sent = { ...headers };
    if (this.#token) sent.Authorization = `Bearer ${this.#token}`;
    if (body !== undefined) sent["Content-Type"] = "application/json";
    let response;
    try {
      response = await this.#fetch(`${this.#url}${path}${tail}`, {
        method, headers: sent, signal, body: body === undefined ? data : JSON.stringify(body),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      const message = `no answer from ${this.#url} (${error.cause?.code ?? error.message}): is the daemon running?`;
      throw new PalyraError({ code: "unreachable", message, retryable: true });
    }
    if (response.ok) return response;
    const answer = await response.json().catch(() => ({}));
    throw new PalyraError(answer.error ?? { message: `the daemon answered ${response.status} without saying why` }, response.status);
  }

  /**
   * Everything behind a cursor, then as it happens, over any number of broken connections; no gap, no duplicate entry.
   * Entries have `seq`; live events have none. With `until` it ends with that run.
   */
  async *watch(sessionId, { after = 0, until, signal, patienceMs = 60_000 } = {}) {
    let [cursor, waited, wait] = [after, 0, FIRST_WAIT_MS];
    while (!signal?.aborted) {
      try {
        for await (const { id, data } of this.#messages("GET", `/v1/sessions/${encodeURIComponent(sessionId)}/events`, { query: { until }, cursor, signal })) {
          [waited, wait] = [0, FIRST_WAIT_MS];
          if (id && Number(id) <= cursor) continue;
          if (id) cursor = Number(id);
          const item = JSON.parse(data);
          yield item;
          if (until && id && item.run_id === until && ENDS.includes(item.kind)) return;
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof PalyraError && !error.retryable) throw error;
        if (waited >= patienceMs) throw error;
      }
      await new Promise((done) => setTimeout(done, wait));
      [waited, wait] = [waited + wait, Math.min(wait * 2, LONGEST_WAIT_MS)];
    }
  }

  /** The events of one connection. One that is silent for too long is broken off. */
  async *#messages(method, path, { query, body, cursor, signal }) {
    const dead = new AbortController();
    const stop = () => dead.abort();
    signal?.addEventListener("abort", stop);
    let alarm;
    const alive = () => { clearTimeout(alarm); alarm = setTimeout(stop, SILENCE_MS); };
    try {
      alive();
      const headers = { Accept: "text/event-stream", ...(cursor === undefined ? {} : { "Last-Event-ID": String(cursor) }) };
      const response = await this.#send(method, path, { query, body, headers, signal: dead.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let kept = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        alive();
        const blocks = (kept + value).split("\n\n");
        kept = blocks.pop();
        for (const block of blocks) {
          const fields = Object.fromEntries(block.split("\n").filter((line) => line && line[0] !== ":").map(field));
          if (fields.data !== undefined) yield fields;
        }
      }
    } finally {
      clearTimeout(alarm);
      signal?.removeEventListener("abort", stop);
      dead.abort();
    }
  }

  /** Say something and wait for the answer. `on` is told of everything that happens; the rest goes with the message. */
  async ask(text, { sessionId, on, signal, ...more } = {}) {
    const session = sessionId ?? (await this.resolveSession()).session_id;
    const submitted = await this.submit(session, { text, ...more });
    for await (const item of this.watch(session, { after: submitted.seq, until: submitted.run_id, signal })) {
      on?.(item);
      if (item.run_id !== submitted.run_id || !ENDS.includes(item.kind)) continue;
      if (item.kind === "run.completed") return { text: item.event.text, sessionId: session, runId: submitted.run_id };
      const details = { reason: item.event.reason, run_id: submitted.run_id, session_id: session };
      throw new PalyraError({ code: item.kind, message: item.event.message ?? item.event.reason, details });
    }
    throw new PalyraError({ code: "aborted", message: "the watch was ended before the answer came" });
  }
}

function field(line) {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
}

const ASKS = { bytes: "fetchBytes", events: "events" };

for (const [name, [method, path, how, media]] of Object.entries(VERBS)) {
  const places = path.match(/\{\w+\}/g) ?? [];
  // The parts of the path come first, then the bytes of an upload, then what is given: in the address where there are no
  // effects, else as the body.
  Palyra.prototype[name] = function verb(...args) {
    const where = places.reduce((rest, place, at) => rest.replace(place, encodeURIComponent(args[at])), path);
    const [first, second] = args.slice(places.length);
    if (how === "upload") return this.upload(method, where, first, { query: second, media });
    const given = method === "GET" || method === "DELETE" ? { query: first } : { body: first ?? {} };
    return this[ASKS[how] ?? "request"](method, where, given);
  };
}
