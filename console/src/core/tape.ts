// The tape of a session, page by page: what is looked at is fetched, and a tape of any length costs the same.
import { signal } from "@preact/signals";
import type { Entry, Session } from "../types";
import { wordsOf } from "./api";
import * as palyra from "./verbs";

const PAGE = 100;

export class Tape {
  readonly session = signal<Session | undefined>(undefined);
  /** The number of the last entry. */
  readonly head = signal(0);
  /** Changes when something has come. */
  readonly tick = signal(0);
  readonly error = signal("");
  private readonly pages = new Map<number, readonly Entry[]>();
  private readonly coming = new Map<number, Promise<void>>();
  /** The pages of the list that is looked at, and those around a chosen entry. No others are kept. */
  private inView: ReadonlySet<number> = new Set();
  private around: ReadonlySet<number> = new Set();

  constructor(readonly id: string) {}

  async open(): Promise<void> {
    try {
      const session = await palyra.getSession(this.id);
      this.session.value = session;
      this.grow(session.head_seq ?? 0);
      this.error.value = "";
    } catch (failure) {
      this.error.value = wordsOf(failure);
    }
  }

  grow(head: number): void {
    if (head > this.head.peek()) this.head.value = head;
  }

  at(seq: number): Entry | undefined {
    const page = this.pages.get(pageOf(seq));
    return page?.[(seq - 1) % PAGE];
  }

  /** What is there of this stretch, in order. */
  between(from: number, to: number): Entry[] {
    const found: Entry[] = [];
    for (let seq = Math.max(1, from); seq <= Math.min(to, this.head.peek()); seq++) {
      const entry = this.at(seq);
      if (entry) found.push(entry);
    }
    return found;
  }

  /** Fetch what is missing of what is in view: entries that a filter leaves may lie far apart. */
  async show(seqs: readonly number[]): Promise<void> {
    this.inView = new Set(seqs.map(pageOf));
    await this.bring(this.inView);
  }

  /** Fetch what is missing of the stretch around an entry; an empty stretch lets the last one go. */
  async want(from: number, to: number): Promise<void> {
    const first = pageOf(Math.max(1, from));
    const last = Math.min(to, this.head.peek());
    this.around = new Set(last > 0 ? Array.from({ length: Math.max(0, pageOf(last) - first + 1) }, (_, at) => first + at) : []);
    await this.bring(this.around);
  }

  private async bring(pages: Iterable<number>): Promise<void> {
    const work: Promise<void>[] = [];
    for (const page of pages) {
      const known = this.pages.get(page);
      const whole = Math.min(PAGE, this.head.peek() - page * PAGE);
      if (!known || known.length < whole) work.push(this.fetch(page));
    }
    await Promise.all(work);
    this.forget();
  }

  private forget(): void {
    for (const page of this.pages.keys()) if (!this.inView.has(page) && !this.around.has(page)) this.pages.delete(page);
  }

  private fetch(page: number): Promise<void> {
    const under = this.coming.get(page);
    if (under) return under;
    const known = this.head.peek();
    let more = false;
    const work = palyra.listEntries(this.id, { after: page * PAGE, limit: PAGE }).then(
      ({ entries }) => {
        this.pages.set(page, entries);
        this.grow(entries.at(-1)?.seq ?? 0);
        this.forget();
        this.error.value = "";
        this.tick.value++;
        // The tape grew while this was under way, and whoever wanted that waits for it here.
        more = this.head.peek() > known && entries.length < Math.min(PAGE, this.head.peek() - page * PAGE);
      },
      (failure: unknown) => void (this.error.value = wordsOf(failure)),
    ).finally(() => this.coming.delete(page)).then(() => (more ? this.fetch(page) : undefined));
    this.coming.set(page, work);
    return work;
  }
}

function pageOf(seq: number): number {
  return Math.floor((seq - 1) / PAGE);
}
