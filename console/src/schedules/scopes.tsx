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
  const wrong = kind === "path_prefix" && value && !value.startsWith("/") ? "By its whole path." : "";
  const ready = Boolean(tool) && (kind === "tool" || Boolean(value.trim())) && !wrong && scopes.length < MOST;
  const add = () => {
    onChange([...scopes, kind === "tool" ? { tool, kind } : { tool, kind, value: value.trim() }]);
    setTool("");
    setKind("tool");
    setValue("");
  };
  return (
    <fieldset>
      <legend>What it may do without asking</legend>
      <p class="hint">It is what you could answer a question with, said beforehand. What policy denies stays denied.</p>
      <ul class="plain-list" aria-label="Allowed beforehand">{scopes.map((each, at) => <li key={at} class="row"><bdi>{visible(scopeWords(each))}</bdi><button type="button" class="quiet small" aria-label={`Take back: ${scopeWords(each)}`} onClick={() => onChange(scopes.filter((_, other) => other !== at))}>Take back</button></li>)}</ul>
      <div class="row fields">
        <SelectField label="Step" value={tool} options={[["", "choose one"], ...tools.map((each) => [each, toolWords(each)] as const)]} onChoose={setTool} />
        <SelectField label="About" value={kind} options={SUBJECTS} onChoose={setKind} />
        {kind !== "tool" && <TextField label="Which" mono value={value} onInput={setValue} wrong={wrong} />}
      </div>
      <button type="button" disabled={!ready} onClick={add}>Allow this</button>
    </fieldset>
  );
}
