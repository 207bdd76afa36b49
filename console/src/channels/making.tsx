// A new channel, step by step: what to do on the platform, what it must allow, and what Palyra needs to know of it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { sentence, visible } from "../core/words";
import { SelectField, TextField } from "../ui/form";
import { useAttempt, useLoaded } from "../ui/page";
import { Problem } from "../ui/parts";
import type { KindInfo, Setting } from "../types";

// What the form itself does.
const FOR_TERMINALS = /palyra (vault set|channels (add|test))/;
const NAME = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

export function NewOne(): VNode {
  const found = useLoaded(() => palyra.listChannelKinds());
  const [chosen, choose] = useState("");
  const kinds = found.value?.kinds ?? [];
  const kind = kinds.find((each) => each.name === chosen);
  return (
    <>
      <Problem text={found.error} />
      {found.value && <SelectField label="Platform" value={chosen} options={[["", "Choose…"], ...kinds.map((each) => [each.name, each.title] as const)]} onChoose={choose} />}
      {kind && <Guided key={kind.name} kind={kind} />}
      <p><a href={href("channels")}>All channels</a></p>
    </>
  );
}

function Guided({ kind }: { kind: KindInfo }): VNode {
  const [name, setName] = useState(kind.name);
  const [given, setGiven] = useState<Record<string, string>>({});
  const { error, busy, attempt } = useAttempt();
  const wrong = NAME.test(name) ? "" : "Use lower-case letters, digits and dashes.";
  const missing = kind.settings.some((each) => (each.required ?? true) && !given[each.name]?.trim());
  const save = () => attempt(async () => {
    const settings = Object.fromEntries(Object.entries(given).filter(([, value]) => value.trim()));
    const made = await palyra.saveChannel({ name, kind: kind.name, settings });
    go("channels", "at", made.name);
  }, "Saved. Connecting.");
  return (
    <form class="form wide" aria-label="New channel" onSubmit={(event) => { event.preventDefault(); if (!wrong && !missing) void save(); }}>
      <h2>On {visible(kind.title)}</h2>
      <ol aria-label="Steps">{kind.steps.filter((each) => !FOR_TERMINALS.test(each)).map((each) => <li key={each}>{visible(each)}</li>)}</ol>
      {kind.permissions.length > 0 && <><h3>Required permissions</h3><ul aria-label="Permissions">{kind.permissions.map((each) => <li key={each}>{visible(each)}</li>)}</ul></>}
      <h2>In Palyra</h2>
      <TextField label="Name" mono value={name} onInput={setName} wrong={wrong} hint="Used in the console and in policies." required />
      {kind.settings.map((each) => <Field key={each.name} it={each} value={given[each.name] ?? ""} onInput={(value) => setGiven({ ...given, [each.name]: value })} />)}
      <Problem text={error} />
      <div class="row"><button type="submit" class="main" disabled={busy || Boolean(wrong) || missing}>Save and connect</button><a class="button quiet" href={href("channels")}>Cancel</a></div>
    </form>
  );
}

export function Field({ it, value, onInput, kept = false }: { it: Setting; value: string; onInput: (value: string) => void; kept?: boolean }): VNode {
  const vault = it.secret ? ` Stored in the vault for this channel only${kept ? "; leave empty to keep the current one" : ""}.` : "";
  const required = (it.required ?? true) && !(it.secret && kept);
  return <TextField label={sentence(visible(it.name).replaceAll("_", " "))} mono type={it.secret ? "password" : "text"} value={value} onInput={onInput} required={required} placeholder={it.default ?? ""} hint={`${sentence(visible(it.words))}.${vault}${required ? "" : " Optional."}`} />;
}
