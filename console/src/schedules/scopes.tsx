// What a schedule may do without asking, said beforehand: a tool, and what it may be about.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { status } from "../core/store";
import { toolWords, visible } from "../core/words";
import { SelectField, TextField } from "../ui/form";
import { scopeWords, SUBJECTS } from "./words";
import type { Subject } from "../types";

const MOST = 16;
type Kind = Subject["kind"];

export function ScopeFields({ scopes, onChange }: { scopes: Subject[]; onChange: (scopes: Subject[]) => void }): VNode {
  const tools = [...(status.value?.tools ?? [])].sort();
  const [tool, setTool] = useState("");
  const [kind, setKind] = useState<Kind>("tool");
  const [value, setValue] = useState("");
  const wrong = kind === "path_prefix" && value && !value.startsWith("/") ? "Enter an absolute path." : "";
  const ready = Boolean(tool) && (kind === "tool" || Boolean(value.trim())) && !wrong && scopes.length < MOST;
  const add = () => {
    onChange([...scopes, kind === "tool" ? { tool, kind } : { tool, kind, value: value.trim() }]);
    setTool("");
    setKind("tool");
    setValue("");
  };
  return (
    <fieldset>
      <legend>Allowed without approval</legend>
      <p class="hint">Grants given in advance. What policy denies stays denied.</p>
      <ul class="plain-list" aria-label="Grants">{scopes.map((each, at) => <li key={at} class="row"><bdi>{visible(scopeWords(each))}</bdi><button type="button" class="quiet small" aria-label={`Remove: ${scopeWords(each)}`} onClick={() => onChange(scopes.filter((_, other) => other !== at))}>Remove</button></li>)}</ul>
      <div class="row fields">
        <SelectField label="Tool" value={tool} options={[["", "Choose…"], ...tools.map((each) => [each, toolWords(each)] as const)]} onChoose={setTool} />
        <SelectField label="Limited to" value={kind} options={SUBJECTS} onChoose={setKind} />
        {kind !== "tool" && <TextField label="Value" mono value={value} onInput={setValue} wrong={wrong} />}
      </div>
      <button type="button" disabled={!ready} onClick={add}>Add grant</button>
    </fieldset>
  );
}
