// When a page that shows what no session tells of should look again: when it is told of a change, and when it was not listening.
import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Topic } from "../core/live";
import { lastChange } from "../core/store";

/** A number that grows whenever something of these may be new, while somebody looks; what nobody saw is looked at when somebody does. */
export function useChanged(...topics: readonly Topic[]): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let missed = false;
    let first = true;
    const again = () => {
      missed = document.hidden;
      if (!missed) setTurn((last) => last + 1);
    };
    const stop = effect(() => {
      const { what } = lastChange.value;
      if (!first && (!what || what.some((each) => topics.includes(each)))) again();
      first = false;
    });
    const back = () => { if (missed) again(); };
    document.addEventListener("visibilitychange", back);
    return () => {
      stop();
      document.removeEventListener("visibilitychange", back);
    };
  }, []);
  return turn;
}
