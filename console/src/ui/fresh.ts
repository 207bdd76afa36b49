// When a page that lists something should look again: after entries of some kinds, and when somebody comes back to it.
import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { lastEntry } from "../core/store";

const SOON_MS = 250;
// What is done behind an entry, as noting how a firing ended, is done shortly after it.
const BEHIND_MS = 1500;

/** A number that grows whenever there may be something new. */
export function useFresh(kinds: RegExp): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let soon = 0;
    let behind = 0;
    let first = true;
    const again = () => setTurn((last) => last + 1);
    const stop = effect(() => {
      const kind = lastEntry.value?.kind ?? "";
      if (!first && kinds.test(kind)) {
        soon ||= window.setTimeout(() => { soon = 0; again(); }, SOON_MS);
        clearTimeout(behind);
        behind = window.setTimeout(again, BEHIND_MS);
      }
      first = false;
    });
    const back = () => { if (document.visibilityState === "visible") again(); };
    document.addEventListener("visibilitychange", back);
    return () => {
      stop();
      clearTimeout(soon);
      clearTimeout(behind);
      document.removeEventListener("visibilitychange", back);
    };
  }, []);
  return turn;
}
