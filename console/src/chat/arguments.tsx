// The arguments of a call as text fields: a path is a line, a file's content is a page, a list is one field after the other.
import type { VNode } from "preact";
import { visible } from "../core/words";

export type Arguments = Record<string, unknown>;

const LONG = /^(content|text|body|search|replace|command|patch|message|prompt|code|task)$/;
const LONGER_THAN = 70;
const MOST_ROWS = 24;

export function ArgumentFields({ given, onChange }: { given: Arguments; onChange: (next: Arguments) => void }): VNode {
  return <>{Object.entries(given).map(([name, value]) => <Field key={name} name={name} value={value} onChange={(next) => onChange({ ...given, [name]: next })} />)}</>;
}

function Field({ name, value, onChange }: { name: string; value: unknown; onChange: (next: unknown) => void }): VNode {
  const words = visible(name);
  if (typeof value === "string") {
    const lines = value.split("\n").length;
    const long = lines > 1 || value.length > LONGER_THAN || LONG.test(name);
    return (
      <label>{words}
        {long
          ? <textarea rows={Math.min(MOST_ROWS, Math.max(3, lines + 1))} spellcheck={false} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
          : <input class="mono" spellcheck={false} autocomplete="off" value={value} onInput={(event) => onChange(event.currentTarget.value)} />}
      </label>
    );
  }
  if (typeof value === "number") return <label>{words}<input class="mono" type="number" step="any" value={value} onInput={(event) => { const typed = event.currentTarget.valueAsNumber; if (!Number.isNaN(typed)) onChange(typed); }} /></label>;
  if (typeof value === "boolean") return <label class="check-label"><input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} /> {words}</label>;
  if (Array.isArray(value))
    return (
      <fieldset>
        <legend>{words}</legend>
        {value.map((each: unknown, at) => (
          <div key={at} class="listed">
            <Field name={`${words} ${at + 1}`} value={each} onChange={(next) => onChange(value.map((old: unknown, place) => (place === at ? next : old)))} />
            {value.length > 1 && <button type="button" class="quiet small" aria-label={`Remove ${words} ${at + 1}`} onClick={() => onChange(value.filter((_, place) => place !== at))}>Remove</button>}
          </div>
        ))}
      </fieldset>
    );
  if (value && typeof value === "object") return <fieldset><legend>{words}</legend><ArgumentFields given={value as Arguments} onChange={onChange} /></fieldset>;
  return <p class="hint">{words}: none</p>;
}
