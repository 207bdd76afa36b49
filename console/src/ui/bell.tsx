// The bell beside the pages: what Palyra told without being asked. It is there at once: who presses Tab must not fall past it.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { unread } from "../core/notices";
import { route } from "../core/router";
import { Sign } from "./sign";
import { Told } from "./told";

const BELL = "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4M12 5V3";
const MOST_SHOWN = 99;

export function Bell(): VNode {
  const [opened, setOpened] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const here = route.value.join("/");
  const count = unread.value;
  const close = () => {
    setOpened(false);
    button.current?.focus();
  };
  useEffect(() => setOpened(false), [here]);
  useEffect(() => {
    if (!opened) return;
    panel.current?.focus();
    const elsewhere = (event: Event) => {
      const at = event.target as Node;
      if (!panel.current?.contains(at) && !button.current?.contains(at)) setOpened(false);
    };
    // Also where the keyboard goes: nothing stays open behind somebody's back.
    for (const kind of ["pointerdown", "focusin"]) document.addEventListener(kind, elsewhere);
    return () => { for (const kind of ["pointerdown", "focusin"]) document.removeEventListener(kind, elsewhere); };
  }, [opened]);
  return (
    <>
      <button type="button" class="bell" ref={button} aria-expanded={opened} aria-controls="notices" onClick={() => setOpened(!opened)}>
        <Sign path={BELL} /><span>Notices</span>
        {count > 0 && <span class="count">{count > MOST_SHOWN ? `${MOST_SHOWN}+` : count}<span class="unseen"> unread</span></span>}
      </button>
      {opened && <div class="told" id="notices" role="dialog" aria-label="Notices" tabIndex={-1} ref={panel} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } }}><Told /></div>}
    </>
  );
}
