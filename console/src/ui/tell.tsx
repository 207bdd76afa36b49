// Whether this browser says so when something happens while nobody looks. It is asked for by a click, never by itself.
import type { VNode } from "preact";
import { allowed, askToTell, telling } from "../core/telling";

export function Tell(): VNode | null {
  if (allowed.value === "unsupported") return null;
  return (
    <p class="row hint">
      {allowed.value === "denied" ? "This browser blocks notifications. Allow them in its settings for this page."
        : <label class="check-label"><input type="checkbox" checked={telling.value} onChange={(event) => void askToTell(event.currentTarget.checked)} /> Notify me when Palyra needs approval or has news</label>}
    </p>
  );
}
