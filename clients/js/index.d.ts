import type { Entry, LiveEvent, Submission } from "./types.js";
import type { Message, Verbs } from "./verbs.js";

export type * from "./types.js";

/** What goes with a request. */
interface Sent {
  query?: object;
  body?: unknown;
  signal?: AbortSignal;
}

export declare class PalyraError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly details: { [name: string]: unknown };
  /** The HTTP status; 0 if nobody answered. */
  readonly status: number;
}

export interface Options {
  url?: string;
  token?: string;
  fetch?: typeof globalThis.fetch;
}

export interface WatchOptions {
  after?: number;
  until?: string;
  signal?: AbortSignal;
  /** How long to try while nobody answers. */
  patienceMs?: number;
}

export interface AskOptions extends Partial<Omit<Submission, "text">> {
  sessionId?: string;
  on?: (item: Entry | LiveEvent) => void;
  signal?: AbortSignal;
}

export interface Palyra extends Verbs {}

export declare class Palyra {
  constructor(options?: Options);
  request(method: string, path: string, options?: Sent): Promise<unknown>;
  fetchBytes(method: string, path: string, options?: Sent): Promise<Blob>;
  upload(method: string, path: string, data: BodyInit, options?: { query?: object; media?: string; signal?: AbortSignal }): Promise<unknown>;
  events(method: string, path: string, options?: Sent): AsyncGenerator<Message, void, void>;
  watch(sessionId: string, options?: WatchOptions): AsyncGenerator<Entry | LiveEvent, void, void>;
  ask(text: string, options?: AskOptions): Promise<{ text: string; sessionId: string; runId: string }>;
}
