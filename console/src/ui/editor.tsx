// A place to write text of many lines: line numbers, colours, offers at the caret, and what is wrong where it is wrong.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export interface Fault {
  line: number;
  message: string;
  /** Where it is, if not in this text. */
  file?: string;
}

/** Something that can be typed next. `back`: how many characters before its end the caret then stands. */
export interface Offer { text: string; hint: string; shown?: string; back?: number }

export type Offering = (before: string, asked: boolean) => { typed: string; offers: readonly Offer[] };

interface Given {
  label: string;
  value: string;
  onInput: (value: string) => void;
  faults: readonly Fault[];
  readOnly?: boolean;
  colour?: (text: string) => ComponentChildren[];
  offering?: Offering;
}

interface Open { typed: string; offers: readonly Offer[]; at: number; line: number; column: number }

const LONGEST_COLOURED = 60_000;

export function Editor({ label, value, onInput, faults, readOnly = false, colour, offering }: Given): VNode {
  const id = useId();
  const text = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLPreElement>(null);
  const under = useRef<HTMLPreElement>(null);
  const caret = useRef<number | undefined>(undefined);
  const [open, setOpen] = useState<Open | undefined>();
  const lines = value.split("\n");
  const wrong = new Map(faults.filter((each) => !each.file && each.line > 0).map((each) => [each.line, each.message]));
  const painted = colour && value.length <= LONGEST_COLOURED;
  const drawn = useMemo(() => (painted ? lines.map((line, at) => (
    <span key={at} class={wrong.has(at + 1) ? "wrong-line" : undefined}>{colour!(line)}{wrong.has(at + 1) && <i class="said">{"  "}{wrong.get(at + 1)!.split(";")[0]}</i>}{"\n"}</span>
  )) : null), [value, faults, painted]);
  const follow = () => {
    const area = text.current!;
    for (const each of [numbers.current, under.current]) if (each) each.scrollTop = area.scrollTop;
    if (under.current) under.current.scrollLeft = area.scrollLeft;
  };
  const go = (line: number) => {
    const area = text.current!;
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
    area.scrollTop = Math.max(0, (line - 4) * (area.scrollHeight / lines.length));
  };
  const offer = (asked = false) => {
    const area = text.current!;
    const before = area.value.slice(0, area.selectionEnd);
    const found = offering && !readOnly && area.selectionStart === area.selectionEnd ? offering(before, asked) : undefined;
    if (!found?.offers.length) return setOpen(undefined);
    const rows = before.split("\n");
    setOpen({ ...found, at: 0, line: rows.length, column: rows.at(-1)!.length - found.typed.length });
  };
  const take = (chosen: Offer) => {
    const area = text.current!;
    const end = area.selectionEnd;
    const start = end - (open?.typed.length ?? 0);
    caret.current = start + chosen.text.length - (chosen.back ?? 0);
    setOpen(undefined);
    onInput(area.value.slice(0, start) + chosen.text + area.value.slice(end));
  };
  // Where the text is taken over from somebody else's hand, the caret goes with it.
  useLayoutEffect(() => {
    if (caret.current === undefined) return;
    text.current?.focus();
    text.current?.setSelectionRange(caret.current, caret.current);
    caret.current = undefined;
  }, [value]);
  useEffect(() => document.getElementById(`${id}-offer-${open?.at}`)?.scrollIntoView({ block: "nearest" }), [open?.at]);
  const pressed = (event: KeyboardEvent) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      return offer(true);
    }
    if (!open) return;
    const count = open.offers.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") setOpen({ ...open, at: (open.at + (event.key === "ArrowDown" ? 1 : count - 1)) % count });
    else if (event.key === "Enter" || event.key === "Tab") take(open.offers[open.at]!);
    else if (event.key === "Escape") setOpen(undefined);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const area = text.current;
  return (
    <div class="editor-whole">
      <div class={wrong.size ? "editor faulty" : "editor"}>
        <pre ref={numbers} aria-hidden="true">{lines.map((_, at) => <span key={at} class={wrong.has(at + 1) ? "bad" : ""}>{at + 1}{"\n"}</span>)}</pre>
        <div class={painted ? "written painted" : "written"}>
          {painted && <pre ref={under} class="under" aria-hidden="true">{drawn}</pre>}
          <textarea ref={text} id={id} aria-label={label} class="mono" rows={Math.min(28, Math.max(12, lines.length + 1))} value={value} readOnly={readOnly} spellcheck={false} wrap="off"
            autocapitalize="off" autocomplete="off" aria-invalid={faults.length > 0 || undefined} aria-describedby={`${id}-faults`}
            aria-autocomplete={offering ? "list" : undefined} aria-controls={open ? `${id}-offers` : undefined} aria-activedescendant={open ? `${id}-offer-${open.at}` : undefined}
            onInput={(event) => { onInput(event.currentTarget.value); offer(); }} onKeyDown={pressed} onScroll={() => { follow(); setOpen((before) => before && { ...before }); }} onBlur={() => setOpen(undefined)} onClick={() => setOpen(undefined)} />
          {open && area && (
            <ul class="offers" id={`${id}-offers`} role="listbox" aria-label="Suggestions" tabIndex={0} style={{ left: `calc(${open.column}ch + 0.5rem - ${area.scrollLeft}px)`, top: `calc(${open.line} * 1lh + 0.5rem - ${area.scrollTop}px)` }}>
              {open.offers.map((each, at) => <li key={each.text} id={`${id}-offer-${at}`} role="option" aria-selected={at === open.at} onPointerDown={(event) => { event.preventDefault(); take(each); }}><span>{each.shown ?? each.text}</span>{each.hint && <small>{each.hint}</small>}</li>)}
            </ul>
          )}
        </div>
      </div>
      <ul class="faults" id={`${id}-faults`} aria-live="polite">
        {faults.map((each, at) => (
          <li key={at}>{each.line > 0 && !each.file ? <button type="button" class="quiet small" onClick={() => go(each.line)}>Line {each.line}</button> : <strong>{each.file}{each.line ? `, line ${each.line}` : ""}</strong>} {each.message}</li>
        ))}
      </ul>
    </div>
  );
}
