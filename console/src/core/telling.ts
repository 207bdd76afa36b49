// Telling somebody who looks elsewhere that Palyra asks or has news. Only after a click that asked for it, and once for each.
import { effect, signal } from "@preact/signals";
import type { OwnerNotified } from "../types";
import { pageOf } from "./notices";
import { lastEntry, pending } from "./store";
import { toolWords, visible } from "./words";

const KEPT = "palyra.telling";
const LONGEST = 200;
const NEWS: Record<OwnerNotified["about"], string> = {
  approval: "approval waiting", budget: "budget", channel: "channel", daemon: "daemon", incident: "incident", learning: "new learning", notes: "project notes need review", provider: "provider needs attention", schedule: "schedule",
};

export const allowed = signal<NotificationPermission | "unsupported">("Notification" in window ? Notification.permission : "unsupported");
export const telling = signal(allowed.value === "granted" && localStorage.getItem(KEPT) === "yes");

export async function askToTell(wanted: boolean): Promise<void> {
  if (wanted && allowed.value !== "granted") allowed.value = await Notification.requestPermission();
  telling.value = wanted && allowed.value === "granted";
  localStorage.setItem(KEPT, telling.value ? "yes" : "no");
}

let known: ReadonlySet<string> | undefined;

effect(() => {
  const open = pending.value;
  const before = known;
  known = new Set(open.map((each) => each.approval_id));
  // What was open already when the page came is in its title and in the list.
  if (!before || !telling.peek() || document.hasFocus()) return;
  for (const each of open)
    if (!before.has(each.approval_id)) void tell(each.approval_id, `Palyra needs approval: ${toolWords(each.request.tool)}`, each.request.preview.title, "/approvals");
});

effect(() => {
  const entry = lastEntry.value;
  if (entry?.kind !== "owner.notified" || !telling.peek() || document.hasFocus()) return;
  const told = entry.event as OwnerNotified;
  void tell(told.notice_id, `Palyra: ${NEWS[told.about] ?? told.about}`, told.text, pageOf(told.link) || "/chat");
});

/** Several tabs may say it: what has the same tag is one. */
async function tell(tag: string, title: string, text: string, page: string): Promise<void> {
  const options = { tag, body: visible(text).slice(0, LONGEST), data: { page: page.slice(1) } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) return worker.showNotification(title, options);
  const shown = new Notification(title, options);
  shown.onclick = () => {
    window.focus();
    location.hash = page;
  };
}
