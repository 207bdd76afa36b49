// How much room there is: some parts are built differently on a phone, or fold by themselves on a small desktop.
import { signal, type ReadonlySignal } from "@preact/signals";

function matching(query: string): ReadonlySignal<boolean> {
  const media = matchMedia(query);
  const found = signal(media.matches);
  media.addEventListener("change", () => (found.value = media.matches));
  return found;
}

export const phone = matching("(max-width: 720px)");
/** The navigation is a rail, unless somebody opens it. */
export const narrow = matching("(max-width: 1100px)");
/** Details lie over the page instead of beside it. */
export const small = matching("(max-width: 1320px)");
