// A button with a few actions behind it. It closes when somebody chooses, presses Escape or goes elsewhere.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Menu({ label, children, small = true }: { label: string; children: ComponentChildren; small?: boolean }): VNode {
  const [opened, setOpened] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!opened) return;
    const elsewhere = (event: Event) => { if (!box.current?.contains(event.target as Node)) setOpened(false); };
    for (const kind of ["pointerdown", "focusin"]) document.addEventListener(kind, elsewhere);
    return () => { for (const kind of ["pointerdown", "focusin"]) document.removeEventListener(kind, elsewhere); };
  }, [opened]);
  return (
    <div class={opened ? "menu opened" : "menu"} ref={box} onKeyDown={(event) => { if (event.key === "Escape" && opened) { event.stopPropagation(); setOpened(false); box.current?.querySelector("button")?.focus(); } }}>
      <button type="button" class={small ? "small" : ""} aria-label={label} aria-expanded={opened} title={label} onClick={() => setOpened(!opened)}>⋯</button>
      {opened && <div onClick={() => setOpened(false)}>{children}</div>}
    </div>
  );
}
