// Where the person is: the part of the address behind the #, so that no page needs the server to know it.
// The key that a login leaves in the address is taken out of it before the address is read, however the build divides the modules.
import "./key";
import { computed, signal } from "@preact/signals";

/** What else stands behind a #, as the key of a login link does, is no page. */
function pageHash(): string {
  return location.hash.startsWith("#/") ? location.hash : "";
}

const hash = signal(pageHash());
addEventListener("hashchange", () => (hash.value = pageHash()));

const parts = computed(() => {
  const [path = "", search = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  return { path, search };
});

/** The address in parts: `#/chat/01…` is ["chat", "01…"]. */
export const route = computed(() => parts.value.path.split("/").filter(Boolean).map(decodeSafely));
export const page = computed(() => route.value[0] ?? "chat");
export const argument = computed(() => route.value[1] ?? "");
export const second = computed(() => route.value[2] ?? "");

/** Filters and tabs of a page: `#/approvals?tab=answered`. Somebody who sends or reloads the address sees the same. */
export const query = computed(() => new URLSearchParams(parts.value.search));

/** Write the address in place: the way back leads out of the page and not through every change. */
export function rewrite(next: string): void {
  // Between a step back and the news of it, what was left must not write over where somebody is.
  if (pageHash() !== hash.peek()) return;
  history.replaceState(null, "", next);
  hash.value = pageHash();
}

/** Change some filters in the address, without a new step in the history. An empty value removes one. */
export function setQuery(given: Record<string, string>): void {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(given)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const search = next.toString();
  rewrite(`#/${parts.peek().path}${search ? `?${search}` : ""}`);
}

export function go(...parts: string[]): void {
  location.hash = "/" + parts.map(encodeURIComponent).join("/");
}

export function href(...parts: string[]): string {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

function decodeSafely(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
