// Pieces of forms: a field says what it wants, what is wrong with it, and tells screen readers both.
import type { ComponentChildren, VNode } from "preact";
import { useId, useState } from "preact/hooks";

interface Common {
  label: string;
  hint?: ComponentChildren;
  /** What is wrong, in words; said once somebody has left the field, or at once if `eager`. */
  wrong?: string;
  eager?: boolean;
}

function Around({ id, label, hint, wrong, children }: { id: string; label: string; hint?: ComponentChildren; wrong: string; children: ComponentChildren }): VNode {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      <p class="wrong" id={`${id}-wrong`} aria-live="polite">{wrong}</p>
    </div>
  );
}

function described(id: string, hint: unknown, wrong: string): string | undefined {
  return [hint ? `${id}-hint` : "", wrong ? `${id}-wrong` : ""].filter(Boolean).join(" ") || undefined;
}

export function TextField({ label, hint, wrong = "", eager = false, value, onInput, type = "text", placeholder, required, autocomplete = "off", list, mono }: Common & {
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "password" | "number" | "date" | "time" | "datetime-local";
  placeholder?: string;
  required?: boolean;
  autocomplete?: string;
  list?: readonly string[];
  mono?: boolean;
}): VNode {
  const id = useId();
  const [left, setLeft] = useState(false);
  const said = eager || left ? wrong : "";
  return (
    <Around id={id} label={label} hint={hint} wrong={said}>
      <input id={id} type={type as "text"} class={mono ? "mono" : ""} value={value} placeholder={placeholder} required={required} autocomplete={autocomplete} spellcheck={false} list={list && `${id}-list`}
        aria-invalid={said ? true : undefined} aria-describedby={described(id, hint, said)} onInput={(event) => onInput(event.currentTarget.value)} onBlur={() => setLeft(true)} />
      {list && <datalist id={`${id}-list`}>{list.map((each) => <option key={each} value={each} />)}</datalist>}
    </Around>
  );
}

export function SelectField<T extends string>({ label, hint, wrong = "", value, options, onChoose }: Common & {
  value: T;
  options: readonly (readonly [T, string])[];
  onChoose: (value: T) => void;
}): VNode {
  const id = useId();
  return (
    <Around id={id} label={label} hint={hint} wrong={wrong}>
      <select id={id} value={value} aria-describedby={described(id, hint, wrong)} onChange={(event) => onChoose(event.currentTarget.value as T)}>
        {options.map(([each, words]) => <option key={each} value={each}>{words}</option>)}
      </select>
    </Around>
  );
}

export function AreaField({ label, hint, wrong = "", value, onInput, rows = 3, placeholder, required }: Common & {
  value: string;
  onInput: (value: string) => void;
  rows?: number;
  placeholder?: string;
  required?: boolean;
}): VNode {
  const id = useId();
  return (
    <Around id={id} label={label} hint={hint} wrong={wrong}>
      <textarea id={id} rows={rows} value={value} placeholder={placeholder} required={required} aria-invalid={wrong ? true : undefined} aria-describedby={described(id, hint, wrong)} onInput={(event) => onInput(event.currentTarget.value)} />
    </Around>
  );
}

export function CheckField({ label, hint, checked, onChange }: { label: string; hint?: ComponentChildren; checked: boolean; onChange: (checked: boolean) => void }): VNode {
  const id = useId();
  return (
    <div class="field">
      <label class="check-label"><input type="checkbox" checked={checked} aria-describedby={hint ? id : undefined} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}</label>
      {hint && <p class="hint" id={id}>{hint}</p>}
    </div>
  );
}

/** How far something is. Without an end in sight, only that it goes on. */
export function Progress({ label, done, of, words }: { label: string; done: number; of?: number; words: string }): VNode {
  return (
    <div class="progress">
      {of ? <progress aria-label={label} value={Math.min(done, of)} max={of} /> : <progress aria-label={label} />}
      <span class="hint">{words}</span>
    </div>
  );
}
