// Who answers: providers of models, tried before they are saved. A key goes to the daemon's vault and is never shown again.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { status } from "../core/store";
import { lasting, visible } from "../core/words";
import { SelectField, TextField } from "../ui/form";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { restart } from "./daemon";
import type { NewProvider, ProviderInfo, Trial } from "../types";

type Kind = "openai-responses" | "anthropic" | "openai-chat";
interface Form {
  name: string;
  kind: Kind;
  base_url: string;
  models: string;
  key: string;
  first: boolean;
}
const KINDS: readonly (readonly [Kind, string])[] = [["anthropic", "Anthropic"], ["openai-responses", "OpenAI"], ["openai-chat", "Another one that speaks as OpenAI's chat does (Ollama, vLLM, …)"]];
const USUAL: Record<Kind, Pick<Form, "name" | "models" | "base_url">> = {
  anthropic: { name: "anthropic", models: "claude-sonnet-4-5", base_url: "" },
  "openai-responses": { name: "openai", models: "gpt-5-mini", base_url: "" },
  "openai-chat": { name: "local", models: "", base_url: "http://127.0.0.1:11434/v1" },
};
const KIND_WORDS: Record<string, string> = { anthropic: "Anthropic", "openai-responses": "OpenAI", "openai-chat": "speaks as OpenAI's chat", demo: "built in", scripted: "says what a script says" };

function wire({ name, kind, base_url, models, key, first }: Form): NewProvider {
  return { name, kind, base_url: base_url.trim(), models: models.split(",").map((each) => each.trim()).filter(Boolean), key: key.trim(), first };
}

function whereIs(key: string): string {
  const [scheme, ...rest] = key.split(":");
  return !key ? "no key" : scheme === "vault" ? "key in the vault" : scheme === "env" ? `key from ${rest.join(":")}` : `key in ${rest.join(":")}`;
}

export function Providers(): VNode {
  const found = useLoaded(() => palyra.listProviders(), [status.value?.started_ms]);
  const [form, setForm] = useState<Form | undefined>();
  const { error, busy, attempt } = useAttempt();
  const waiting = found.value?.restart;
  return (
    <Part id="models" title="Models">
      <Problem text={found.error || error} />
      <ul class="cards" aria-label="Providers">
        {found.value?.providers.map((each) => (
          <Provider key={each.name} it={each} busy={busy} onEdit={setForm}
            onRemove={() => void attempt(async () => { await palyra.removeProvider({ name: each.name }); found.again(); }, `${each.name} is removed.`)} />
        ))}
      </ul>
      {waiting && <p class="row notice warn">Palyra has to start again before it uses what was changed. <button type="button" onClick={() => void attempt(restart)}>Start it again now</button><span class="hint">What runs goes on by itself.</span></p>}
      {form ? <Edit key={form.name} given={form} onDone={() => { setForm(undefined); found.again(); }} onLeave={() => setForm(undefined)} />
        : <button type="button" onClick={() => setForm({ kind: "anthropic", key: "", first: true, ...USUAL.anthropic })}>Add a provider</button>}
    </Part>
  );
}

function Provider({ it, busy, onEdit, onRemove }: { it: ProviderInfo; busy: boolean; onEdit: (form: Form) => void; onRemove: () => void }): VNode {
  const [trial, setTrial] = useState<Trial | undefined>();
  const { error, busy: trying, attempt } = useAttempt();
  const real = it.kind in USUAL;
  const form = (): Form => ({ name: it.name, kind: it.kind as Kind, base_url: it.base_url, models: it.models.join(", "), key: "", first: it.default });
  return (
    <li class="card">
      <div class="row"><strong>{it.name}</strong><span class="hint">{KIND_WORDS[it.kind] ?? it.kind}</span>{it.default && <Badge>used first</Badge>}
        {it.running ? <Badge tone={it.healthy ? "good" : "bad"}>{it.healthy ? "works" : "does not answer now"}</Badge> : <Badge tone="warn">after the next start</Badge>}{it.found && real && <Badge>found here</Badge>}</div>
      <p class="hint">{it.models.length ? <>models: <span class="mono breaks">{visible(it.models.join(", "))}</span></> : "lists no models"}{it.base_url && <> · <span class="mono breaks">{visible(it.base_url)}</span></>}{real && <> · {visible(whereIs(it.key))}</>}</p>
      {real && (
        <div class="row">
          <button type="button" class="small" disabled={trying} onClick={() => void attempt(async () => { setTrial(undefined); setTrial(await palyra.testProvider(wire(form()))); })}>{trying ? "Asking…" : "Test"}</button>
          <button type="button" class="quiet small" onClick={() => onEdit(form())}>Change…</button>
          {!it.found && <Sure words="Remove…" question={`Remove ${it.name}? Its key stays in the vault.`} yes="Remove it" disabled={busy} onYes={onRemove} />}
        </div>
      )}
      <Problem text={error} />
      {trial && <Tried trial={trial} />}
    </li>
  );
}

function Tried({ trial }: { trial: Trial }): VNode {
  return trial.ok ? <p class="notice good" role="status">{visible(trial.message)} in {lasting(trial.took_ms)}.</p>
    : <p class="problem" role="alert">{visible(trial.message)}. {trial.fix && `To mend it: ${trial.fix}.`}</p>;
}

function Edit({ given, onDone, onLeave }: { given: Form; onDone: () => void; onLeave: () => void }): VNode {
  const [form, setForm] = useState(given);
  const [trial, setTrial] = useState<Trial | undefined>();
  const { error, busy, attempt } = useAttempt();
  const put = (change: Partial<Form>) => { setTrial(undefined); setForm({ ...form, ...change }); };
  const wrong = {
    name: /^[a-z][a-z0-9_-]{0,30}$/.test(form.name) ? "" : "A name has small letters, digits, dashes and underscores.",
    base_url: !form.base_url ? (form.kind === "openai-chat" ? "Where does it answer?" : "") : /^https?:\/\/[^/@]+/.test(form.base_url) ? "" : "An address begins with http:// or https://.",
    models: form.models.trim() ? "" : "Name at least one model.",
  };
  const bad = Object.values(wrong).some(Boolean);
  return (
    <form class="form" aria-label="Provider" onSubmit={(event) => { event.preventDefault(); if (!bad) void attempt(async () => { await palyra.saveProvider(wire(form)); onDone(); }, "Saved."); }}>
      <SelectField label="Kind" value={form.kind} options={KINDS} onChoose={(kind) => put({ kind, ...USUAL[kind] })} />
      <TextField label="Name" mono value={form.name} onInput={(name) => put({ name })} wrong={wrong.name} required />
      <TextField label="Key" type="password" autocomplete="off" value={form.key} onInput={(key) => put({ key })} hint="Goes into the vault, for this provider alone. Leave it empty to keep the one that is there, or if none is needed." />
      <TextField label="Models" mono value={form.models} onInput={(models) => put({ models })} wrong={wrong.models} hint="Separated by commas; the first is the one that is used." required />
      <TextField label="Address" mono value={form.base_url} onInput={(base_url) => put({ base_url })} wrong={wrong.base_url} placeholder="the maker's own" />
      <p><label class="check-label"><input type="checkbox" checked={form.first} onChange={(event) => put({ first: event.currentTarget.checked })} /> Use it first</label></p>
      <Problem text={error} />
      {trial && <Tried trial={trial} />}
      <div class="row">
        <button type="submit" class="main" disabled={busy || bad}>Save</button>
        <button type="button" disabled={busy || bad} onClick={() => void attempt(async () => setTrial(await palyra.testProvider(wire(form))))}>{busy ? "Asking…" : "Test"}</button>
        <button type="button" class="quiet" onClick={onLeave}>Leave it</button>
      </div>
    </form>
  );
}
