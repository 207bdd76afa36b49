// What the daemon says while it happens. Each connection resumes behind the last entry that arrived, so none is missed or seen twice.
//
// A browser opens only six plain connections to one address, for all tabs together. So the stream over all sessions is held by one tab,
// which tells the others; the open session of each tab comes over a WebSocket, which does not count among the six.
import type { Entry, LiveEvent, StateChanged } from "../types";
import { access, online, withKey } from "./api";
import * as palyra from "./verbs";

type Hear = (entry: Entry) => void;
export type Topic = StateChanged["what"][number];
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 4000;
const PING_MS = 20_000;

/** Tries again with growing pauses, at once when the browser says the network is back. */
class Again {
  private wait = FIRST_WAIT_MS;
  private timer = 0;

  constructor(private readonly open: () => void) {}

  later(): void {
    this.stop();
    addEventListener("online", this.now);
    this.timer = window.setTimeout(this.now, this.wait * (0.8 + Math.random() * 0.4));
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
  }

  worked(): void {
    this.wait = FIRST_WAIT_MS;
  }

  stop(): void {
    clearTimeout(this.timer);
    removeEventListener("online", this.now);
  }

  private readonly now = (): void => {
    this.stop();
    this.open();
  };
}

/** A stream that was refused says nothing about why: asking plainly tells logged out from not there. */
async function lookWhy(): Promise<void> {
  await palyra.listSessions({ limit: 1 }).catch(() => undefined);
}

export class AllSessions {
  private cursor = 0;
  private source: EventSource | undefined;
  private readonly others = new BroadcastChannel("palyra.entries");
  private readonly again = new Again(() => void this.open());

  constructor(
    private readonly hear: Hear,
    private readonly catchUp: () => Promise<void>,
    /** Something of these topics is not what it was; without any: the connection is new, and all of them may be. */
    private readonly changed: (what?: readonly Topic[]) => void,
  ) {}

  /** What happened up to here, this page asks for itself. */
  from(position: number): void {
    this.cursor ||= position;
  }

  start(): void {
    this.others.onmessage = (message: MessageEvent<Entry | StateChanged | "again">) => {
      if (message.data === "again") {
        // What was away again before it could say: whoever holds the stream tells once more.
        void this.catchUp().catch(() => undefined);
        this.changed();
      } else if (message.data.kind === "state.changed") this.changed((message.data as StateChanged).what);
      else this.heard(message.data as Entry);
    };
    // Given up when the tab closes; the next tab that waits then continues.
    if (navigator.locks) void navigator.locks.request("palyra.entries", () => new Promise(() => void this.open()));
    else void this.open();
  }

  private async open(): Promise<void> {
    if (access.peek() === "out") return this.again.later();
    this.source?.close();
    try {
      if (!this.cursor) this.from((await palyra.status()).entries);
      await this.catchUp();
    } catch {
      return this.again.later();
    }
    const source = new EventSource(withKey(palyra.allEventsPath({ after: this.cursor })));
    this.source = source;
    source.addEventListener("entry", (event) => {
      const entry = JSON.parse((event as MessageEvent<string>).data) as Entry;
      this.heard(entry);
      this.others.postMessage(entry);
    });
    source.addEventListener("live", (event) => {
      const it = JSON.parse((event as MessageEvent<string>).data) as LiveEvent;
      if (it.kind !== "state.changed") return;
      this.changed(it.what);
      this.others.postMessage(it);
    });
    source.onopen = () => {
      online.value = true;
      this.again.worked();
      this.changed();
      this.others.postMessage("again");
    };
    source.onerror = () => {
      source.close();
      void lookWhy();
      this.again.later();
    };
  }

  private heard(entry: Entry): void {
    if (entry.position <= this.cursor) return;
    this.cursor = entry.position;
    this.hear(entry);
  }
}

interface Wire {
  type: "entry" | "live" | "pong" | "ack" | "error";
  entry?: Entry;
  event?: LiveEvent;
}

export interface Listener {
  cursor(): number;
  entry(entry: Entry): void;
  live(event: LiveEvent): void;
  /** The connection is new: deltas of a turn under way were missed. */
  resumed(): void;
}

/** The open session: its entries behind the listener's cursor, then entries and deltas as they come. */
export class OneSession {
  private socket: WebSocket | undefined;
  private closed = false;
  private pings = 0;
  private unanswered = false;
  private readonly again = new Again(() => this.open());

  constructor(
    private readonly sessionId: string,
    private readonly listener: Listener,
  ) {
    this.open();
  }

  close(): void {
    this.closed = true;
    this.again.stop();
    clearInterval(this.pings);
    this.socket?.close();
  }

  private open(): void {
    if (this.closed) return;
    if (access.peek() === "out") return this.again.later();
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${withKey(`/v1/sessions/${this.sessionId}/ws?after=${this.listener.cursor()}`)}`);
    this.socket = socket;
    socket.onopen = () => {
      online.value = true;
      this.again.worked();
      this.listener.resumed();
      this.keepAlive(socket);
    };
    socket.onmessage = (message: MessageEvent<string>) => this.heard(JSON.parse(message.data) as Wire);
    socket.onclose = () => {
      clearInterval(this.pings);
      if (this.closed) return;
      void lookWhy();
      this.again.later();
    };
  }

  private heard(wire: Wire): void {
    if (this.closed) return;
    this.unanswered = false;
    if (wire.type === "entry" && wire.entry) this.listener.entry(wire.entry);
    else if (wire.type === "live" && wire.event) this.listener.live(wire.event);
  }

  /** A computer that slept leaves sockets that look open: one that does not answer is closed, and the next one is opened. */
  private keepAlive(socket: WebSocket): void {
    clearInterval(this.pings);
    this.unanswered = false;
    this.pings = window.setInterval(() => {
      if (this.unanswered) return socket.close();
      this.unanswered = true;
      socket.send('{"type":"ping","id":"alive"}');
    }, PING_MS);
  }
}
