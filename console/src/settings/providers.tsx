// Who answers: providers of models, tried before they are saved. A key goes to the daemon's vault and is never shown again.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { refreshStatus, status } from "../core/store";
import { lasting, visible } from "../core/words";
import { SelectField, TextField } from "../ui/form";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { FoundProvider, NewProvider, ProviderInfo, Trial } from "../types";

type Kind = "openai-responses" | "anthropic" | "gemini" | "openai-chat";
interface Form {
  name: string;
  kind: Kind;
  base_url: string;
  models: string;
  key: string;
  first: boolean;
  windows?: string[];
}
const KINDS: readonly (readonly [Kind, string])[] = [["anthropic", "Anthropic"], ["openai-responses", "OpenAI"], ["gemini", "Google Gemini"], ["openai-chat", "OpenAI-compatible (Ollama, vLLM, …)"]];
const USUAL: Record<Kind, Pick<Form, "name" | "models" | "base_url">> = {
  anthropic: { name: "anthropic", models: "claude-sonnet-4-5", base_url: "" },
  "openai-responses": { name: "openai", models: "gpt-5-mini", base_url: "" },
  gemini: { name: "gemini", models: "gemini-2.5-flash", base_url: "" },
  "openai-chat": { name: "local", models: "", base_url: "http://127.0.0.1:11434/v1" },
};
const KIND_WORDS: Record<string, string> = { anthropic: "Anthropic", "openai-responses": "OpenAI", gemini: "Google Gemini", "openai-chat": "OpenAI-compatible", demo: "built in", scripted: "scripted (for tests)", faulty: "faulty on purpose" };

function wire({ name, kind, base_url, models, key, first, windows }: Form): NewProvider {
  return { name, kind, base_url: base_url.trim(), models: listed(models), key: key.trim(), first, ...(windows ? { windows } : {}) };
}

function listed(models: string): string[] {
  return models.split(",").map((each) => each.trim()).filter(Boolean);
}

function windowsOf(found: FoundProvider): string[] {
  return (found.models ?? []).flatMap(({ name, context_tokens }) => (context_tokens ? [`${name}=${context_tokens}`] : []));
}

function whereIs(key: string): string {
  const [scheme, ...rest] = key.split(":");
  return !key ? "no key" : scheme === "vault" ? "key in the vault" : scheme === "env" ? `key from ${rest.join(":")}` : `key in ${rest.join(":")}`;
}

export function Providers(): VNode {
  const found = useLoaded(() => palyra.listProviders(), [status.value?.started_ms]);
  const [form, setForm] = useState<Form | undefined>();
  const { error, busy, attempt } = useAttempt();
  const changed = async () => {
    found.again();
    await refreshStatus();
  };
  const models = status.value?.models ?? [];
  return (
    <Part id="models" title="Models">
      <Problem text={found.error || error} />
      {models.length > 1 && (
        <SelectField label="Default model" value={models.find((each) => each.default)?.name ?? ""} options={models.map((each) => [each.name, visible(each.name)] as const)}
          hint="Used where a session has no model of its own." onChoose={(model) => void attempt(async () => { await palyra.setDefaultModel({ model }); await changed(); }, `${model} is the default now.`)} />
      )}
      <ul class="cards side" aria-label="Providers">
        {found.value?.providers.map((each) => (
          <Provider key={each.name} it={each} busy={busy} onEdit={setForm}
            onRemove={() => void attempt(async () => { await palyra.removeProvider({ name: each.name }); await changed(); }, `${each.name} removed.`)} />
        ))}
      </ul>
      {!form && <Found known={found.value?.providers} onUsed={changed} />}
      {form ? <Edit key={form.name} given={form} onDone={() => { setForm(undefined); void changed(); }} onLeave={() => setForm(undefined)} />
        : <button type="button" onClick={() => setForm({ kind: "anthropic", key: "", first: true, ...USUAL.anthropic })}>Add provider</button>}
    </Part>
  );
}

/** Servers on this machine and keys in the daemon's environment that are not in use yet: one click each. */
function Found({ known, onUsed }: { known: readonly ProviderInfo[] | undefined; onUsed: () => Promise<void> }): VNode | null {
  const found = useLoaded(() => palyra.findProviders(), [known?.length]);
  const { error, busy, attempt } = useAttempt();
  const written = new Set(known?.filter((each) => !each.found).map((each) => each.name));
  const others = found.value?.found.filter((each) => !written.has(each.name)) ?? [];
  if (!others.length) return null;
  const use = (it: FoundProvider) => attempt(async () => {
    await palyra.saveProvider({
      name: it.name, kind: it.kind, base_url: it.base_url, models: (it.models ?? []).map((each) => each.name), first: true, windows: windowsOf(it),
      ...(it.key ? { key_from: it.key.replace(/^env:/, "") } : {}),
    });
    await onUsed();
  }, `${it.title} added.`);
  return (
    <section aria-label="Found">
      <h3>Found on this machine</h3>
      <Problem text={error} />
      <ul class="cards side">
        {others.map((each) => (
          <li key={each.name} class="card">
            <div class="row"><strong>{each.title}</strong><span class="hint mono breaks">{each.local ? visible(each.base_url) : visible((each.key ?? "").replace(/^env:/, ""))}</span></div>
            <p class="hint">{each.advice ? visible(each.advice) : <>models: <span class="mono breaks">{visible((each.models ?? []).map((model) => model.name).join(", "))}</span></>}</p>
            {!!each.models?.length && <button type="button" class="small" disabled={busy} onClick={() => void use(each)}>Use {each.title}</button>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Provider({ it, busy, onEdit, onRemove }: { it: ProviderInfo; busy: boolean; onEdit: (form: Form) => void; onRemove: () => void }): VNode {
  const [trial, setTrial] = useState<Trial | undefined>();
  const { error, busy: trying, attempt } = useAttempt();
  const real = it.kind in USUAL;
  const form = (): Form => ({ name: it.name, kind: it.kind as Kind, base_url: it.base_url, models: it.models.join(", "), key: "", first: it.default });
  return (
    <li class="card">
      <div class="row"><strong>{it.name}</strong><span class="hint">{KIND_WORDS[it.kind] ?? it.kind}</span>{it.default && <Badge>Default</Badge>}
        <Badge tone={it.healthy ? "good" : "bad"}>{it.healthy ? "Ready" : "Failing"}</Badge>{it.found && real && <Badge>Found here</Badge>}</div>
      <p class="hint">{it.models.length ? <>models: <span class="mono breaks">{visible(it.models.join(", "))}</span></> : "lists no models"}{it.base_url && <> · <span class="mono breaks">{visible(it.base_url)}</span></>}{real && <> · {visible(whereIs(it.key))}</>}</p>
      {real && (
        <div class="row">
          <button type="button" class="small" disabled={trying} onClick={() => void attempt(async () => { setTrial(undefined); setTrial(await palyra.testProvider(wire(form()))); })}>{trying ? "Testing…" : "Test"}</button>
          <button type="button" class="quiet small" onClick={() => onEdit(form())}>Edit…</button>
          {!it.found && <Sure words="Remove…" question={`Remove ${it.name}? Its key stays in the vault.`} yes="Remove" disabled={busy} onYes={onRemove} />}
        </div>
      )}
      <Problem text={error} />
      {trial && <Tried trial={trial} />}
    </li>
  );
}

function Tried({ trial }: { trial: Trial }): VNode {
  return trial.ok ? <p class={trial.tools === false ? "notice warn" : "notice good"} role="status">{visible(trial.message)} in {lasting(trial.took_ms)}{trial.tools === true ? " and called the tool" : trial.tools === false ? ", but called no tool" : ""}. {trial.fix && `${visible(trial.fix)}.`}</p>
    : <p class="problem" role="alert">{visible(trial.message)}. {trial.fix && `To fix it: ${visible(trial.fix)}.`}</p>;
}

function Edit({ given, onDone, onLeave }: { given: Form; onDone: () => void; onLeave: () => void }): VNode {
  const [form, setForm] = useState(given);
  const [trial, setTrial] = useState<Trial | undefined>();
  const { error, busy, attempt } = useAttempt();
  const put = (change: Partial<Form>) => { setTrial(undefined); setForm({ ...form, ...change }); };
  const wrong = {
    name: /^[a-z][a-z0-9_-]{0,30}$/.test(form.name) ? "" : "Use lower-case letters, digits, dashes and underscores.",
    base_url: !form.base_url ? (form.kind === "openai-chat" ? "Enter its address." : "") : /^https?:\/\/[^/@]+/.test(form.base_url) ? "" : "An address begins with http:// or https://.",
    models: form.models.trim() ? "" : "Name at least one model.",
  };
  const bad = Object.values(wrong).some(Boolean);
  const load = async () => {
    const found = await palyra.listProviderModels(wire(form));
    if (!found.models?.length) throw new Error(found.advice || "The server lists no models.");
    put({ models: found.models.map((each) => each.name).join(", "), windows: windowsOf(found) });
  };
  return (
    <form class="form" aria-label="Provider" onSubmit={(event) => { event.preventDefault(); if (!bad) void attempt(async () => { await palyra.saveProvider(wire(form)); onDone(); }, "Saved."); }}>
      <SelectField label="Kind" value={form.kind} options={KINDS} onChoose={(kind) => put({ kind, ...USUAL[kind] })} />
      <TextField label="Name" mono value={form.name} onInput={(name) => put({ name })} wrong={wrong.name} required />
      <TextField label="Key" type="password" autocomplete="off" value={form.key} onInput={(key) => put({ key })} hint="Stored in the vault for this provider only. Leave empty to keep the current key, or if none is needed." />
      <TextField label="Models" mono value={form.models} onInput={(models) => put({ models })} wrong={wrong.models} hint="Comma-separated; the first is used by default. “List models” asks the server." required />
      <TextField label="Address" mono value={form.base_url} onInput={(base_url) => put({ base_url })} wrong={wrong.base_url} placeholder="default" />
      <p><label class="check-label"><input type="checkbox" checked={form.first} onChange={(event) => put({ first: event.currentTarget.checked })} /> Use as default</label></p>
      <Problem text={error} />
      {trial && <Tried trial={trial} />}
      <div class="row">
        <button type="submit" class="main" disabled={busy || bad}>Save</button>
        <button type="button" disabled={busy || bad} onClick={() => void attempt(async () => setTrial(await palyra.testProvider(wire(form))))}>{busy ? "Testing…" : "Test"}</button>
        <button type="button" disabled={busy || !!wrong.name || !!wrong.base_url} onClick={() => void attempt(load)}>List models</button>
        <button type="button" class="quiet" onClick={onLeave}>Cancel</button>
      </div>
    </form>
  );
}
