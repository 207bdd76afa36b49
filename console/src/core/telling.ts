// Telling somebody who looks elsewhere that Palyra asks. Only after a click that asked for it, and once for each question.
import { effect, signal } from "@preact/signals";
import { pending } from "./store";
import { toolWords, visible } from "./words";

const KEPT = "palyra.telling";
const LONGEST = 200;

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
    if (!before.has(each.approval_id)) void tell(each.approval_id, `Palyra asks: ${toolWords(each.request.tool)}`, each.request.preview.title);
});

/** Several tabs may say it: what has the same tag is one. */
async function tell(tag: string, title: string, text: string): Promise<void> {
  const options = { tag, body: visible(text).slice(0, LONGEST), data: { page: "approvals" } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) return worker.showNotification(title, options);
  const shown = new Notification(title, options);
  shown.onclick = () => {
    window.focus();
    location.hash = "/approvals";
  };
}
