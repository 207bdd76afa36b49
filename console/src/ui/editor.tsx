// A place to write text of many lines, with their numbers, and what is wrong with which of them.
import type { VNode } from "preact";
import { useId, useRef } from "preact/hooks";

export interface Fault {
  line: number;
  message: string;
  /** Where it is, if not in this text. */
  file?: string;
}

export function Editor({ label, value, onInput, faults, readOnly = false }: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  faults: readonly Fault[];
  readOnly?: boolean;
}): VNode {
  const id = useId();
  const text = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLPreElement>(null);
  const lines = value.split("\n").length;
  const wrong = new Set(faults.filter((each) => !each.file).map((each) => each.line));
  const go = (line: number) => {
    const area = text.current!;
    const start = value.split("\n").slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (value.split("\n")[line - 1]?.length ?? 0));
    area.scrollTop = Math.max(0, (line - 4) * (area.scrollHeight / lines));
  };
  return (
    <div class="editor-whole">
      <div class={wrong.size ? "editor faulty" : "editor"}>
        <pre ref={numbers} aria-hidden="true">{Array.from({ length: lines }, (_, at) => <span key={at} class={wrong.has(at + 1) ? "bad" : ""}>{at + 1}{"\n"}</span>)}</pre>
        <textarea ref={text} id={id} aria-label={label} class="mono" rows={Math.min(28, Math.max(12, lines + 1))} value={value} readOnly={readOnly} spellcheck={false} wrap="off"
          autocapitalize="off" autocomplete="off" aria-invalid={faults.length > 0 || undefined} aria-describedby={`${id}-faults`}
          onInput={(event) => onInput(event.currentTarget.value)} onScroll={(event) => { numbers.current!.scrollTop = event.currentTarget.scrollTop; }} />
      </div>
      <ul class="faults" id={`${id}-faults`} aria-live="polite">
        {faults.map((each, at) => (
          <li key={at}>{each.line > 0 && !each.file ? <button type="button" class="quiet small" onClick={() => go(each.line)}>Line {each.line}</button> : <strong>{each.file}{each.line ? `, line ${each.line}` : ""}</strong>} {each.message}</li>
        ))}
      </ul>
    </div>
  );
}
