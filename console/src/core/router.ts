// Where the person is: the part of the address behind the #, so that no page needs the server to know it.
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

/** The address in parts: `#/chat/01…` is ["chat", "01…"]. */
export const route = computed(() => hash.value.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeSafely));
export const page = computed(() => route.value[0] ?? "chat");
export const argument = computed(() => route.value[1] ?? "");
export const second = computed(() => route.value[2] ?? "");

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
