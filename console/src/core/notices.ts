// What the owner was told without asking: how much of it is unread, and the newest. Told on the stream; what one tab reads is read in all.
// And how much of what was learned waits for them.
import { effect, signal } from "@preact/signals";
import type { Notice } from "../types";
import { access, oneAtATime, online } from "./api";
import * as palyra from "./verbs";
import { lastChange, lastEntry } from "./store";

export const notices = signal<Notice[] | undefined>(undefined);
export const unread = signal(0);
export const moreNotices = signal("");
export const toReview = signal(0);

const PAGE = 30;
const tabs = new BroadcastChannel("palyra.notices");
tabs.onmessage = () => void refreshNotices();

let marks = 0;

export const refreshNotices: () => Promise<void> = oneAtATime(async () => {
  const before = marks;
  const found = await palyra.listNotices({ limit: PAGE }).catch(() => undefined);
  if (!found) return;
  // Something was read meanwhile, and this may not know it yet.
  if (marks !== before) return void refreshNotices();
  unread.value = found.unread;
  notices.value = found.notices;
  moreNotices.value = last(found.notices);
});

export async function showOlderNotices(): Promise<void> {
  const found = await palyra.listNotices({ limit: PAGE, before: moreNotices.peek() });
  notices.value = [...(notices.peek() ?? []), ...found.notices];
  moreNotices.value = last(found.notices);
}

/** Mark one as read; without one, all. */
export async function markRead(notice?: Notice): Promise<void> {
  if (notice?.read_ms) return;
  await palyra.readNotices(notice ? { notice_id: notice.notice_id } : {});
  marks++;
  const now = Date.now();
  notices.value = notices.peek()?.map((each) => (!each.read_ms && (!notice || each.notice_id === notice.notice_id) ? { ...each, read_ms: now } : each));
  unread.value = notice ? Math.max(0, unread.peek() - 1) : 0;
  tabs.postMessage("read");
}

/** The page that a notice is about: only ever one of the console's own. */
export function pageOf(link: string | undefined): string {
  return /^#((?:\/[\w-]+)+)$/.exec(link ?? "")?.[1] ?? "";
}

function last(page: Notice[]): string {
  return page.length === PAGE ? page.at(-1)!.notice_id : "";
}

const countToReview = oneAtATime(async () => {
  const found = await palyra.listCandidates({ limit: 1 }).catch(() => undefined);
  if (found) toReview.value = (found.counts.pending_review ?? 0) + (found.counts.conflicted ?? 0);
});

effect(() => {
  if (access.value !== "in" || !online.value) return;
  void refreshNotices();
  void countToReview();
});
effect(() => {
  const { what } = lastChange.value;
  if ((!what || what.includes("learning")) && access.peek() === "in") void countToReview();
});
effect(() => {
  if (lastEntry.value?.kind === "owner.notified") void refreshNotices();
});
