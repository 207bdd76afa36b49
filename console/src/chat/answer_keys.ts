// The keys that answer an approval: A approves at the second press, D denies, E edits.
import { useLayoutEffect, useState } from "preact/hooks";

const TYPING = "input:not([type=checkbox]), textarea, select, dialog";

export interface AnswerKeys {
  /** Nothing where the question is not a yes or no to a call. */
  approve: (() => void) | undefined;
  deny: (() => void) | undefined;
  edit?: (() => void) | undefined;
  /** Why nobody can say yes yet. */
  blocked?: string;
  onBlocked?: (words: string) => void;
  /** Whether a yes would be taken now, and whether any answer would. */
  ready: boolean;
  busy: boolean;
}

/** Gives whether A was pressed once: a yes takes two presses about the same question, as one is easily a slip. */
export function useAnswerKeys(on: boolean, keys: AnswerKeys): boolean {
  const [armed, setArmed] = useState(false);
  // Before the next key can come: a second press must know of the first.
  useLayoutEffect(() => {
    if (!on) return;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      if (event.key !== "a") setArmed(false);
      if (event.target instanceof Element && event.target.closest(TYPING)) return;
      if (event.key === "a" && keys.approve) {
        if (keys.blocked) keys.onBlocked?.(keys.blocked);
        else if (armed && keys.ready && !keys.busy) keys.approve();
        else setArmed(true);
      } else if (keys.busy) return;
      else if (event.key === "d" && keys.deny) keys.deny();
      else if (event.key === "e" && keys.edit) keys.edit();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
  return armed;
}
