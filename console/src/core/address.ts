// State that belongs in the address: parts of the form name=value behind the page, as in #/timeline/01…/12/view=table.
import { computed } from "@preact/signals";
import { rewrite, route } from "./router";

export type Marks = Readonly<Record<string, string>>;

/** What the address says beside the page and what it shows. */
export const marks = computed<Marks>(() => Object.fromEntries(route.value.filter((part) => part.includes("=")).map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)])));

/** The address of a page with some state. Values that are empty are left out. */
export function addressOf(parts: readonly string[], state: Marks): string {
  const said = Object.entries(state).filter(([, value]) => value).map(([name, value]) => `${name}=${value}`);
  return "#/" + [...parts, ...said].map((part) => encodeURIComponent(part).replaceAll("%3D", "=")).join("/");
}

/** Change some of the state, in place. */
export function mark(changes: Marks, parts = route.peek().filter((part) => !part.includes("="))): void {
  const next = addressOf(parts, { ...marks.peek(), ...changes });
  if (next !== location.hash) rewrite(next);
}
