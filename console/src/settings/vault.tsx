// The vault: which secrets there are and where they may be used. A value goes in and never comes out again.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { lastEntry } from "../core/store";
import { ago, visible } from "../core/words";
import { TextField } from "../ui/form";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { Secret } from "../types";

const few = (text: string) => text.split(",").map((each) => each.trim()).filter(Boolean);
const BLANK = { name: "", value: "", hosts: "", tools: "" };

export function Vault(): VNode {
  const changed = lastEntry.value?.kind === "admin.changed" ? lastEntry.value.position : 0;
  const found = useLoaded(() => palyra.listSecrets(), [changed]);
  const [form, setForm] = useState<typeof BLANK | undefined>();
  const { error, busy, attempt } = useAttempt();
  const wrong = form?.name && !/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(form.name) ? "Use letters, digits, dots, dashes and underscores." : "";
  const short = form?.value && form.value.trim().length < 4 ? "At least 4 characters: shorter values cannot be redacted." : "";
  const save = () => attempt(async () => {
    await palyra.putSecret({ name: form!.name, value: form!.value, hosts: few(form!.hosts), tools: few(form!.tools) });
    setForm(undefined);
    found.again();
  }, "Secret saved.");
  return (
    <Part id="vault" title="Vault">
      <p class="hint">Secrets that tools can use without showing them. Palyra redacts them everywhere.</p>
      <Problem text={found.error || error} />
      {found.value?.state === "locked" && <Problem text={`The vault is locked: ${found.value.why}`} />}
      {found.value && found.value.secrets.length > 0 && (
        <Table label="Secrets" rows={found.value.secrets} keyOf={(each) => `${each.scope}/${each.name}`} sorted="name"
          columns={[
            { key: "name", words: "Name", draw: (each) => <><span class="mono">{each.name}</span>{each.scope !== "global" && <Badge>{visible(each.scope)}</Badge>}{each.readable === false && <Badge tone="bad">Unreadable</Badge>}</>, by: (each) => each.name },
            { key: "where", words: "Limited to", draw: (each) => [...each.hosts, ...each.tools].join(", ") || "any call you approve" },
            { key: "changed", words: "Updated", draw: (each) => ago(each.updated_ms), by: (each) => each.updated_ms },
            { key: "used", words: "Last used", draw: (each) => (each.used_ms ? ago(each.used_ms) : "never"), by: (each) => each.used_ms ?? 0 },
            { key: "remove", words: "", draw: (each) => <Remove secret={each} busy={busy} onYes={() => void attempt(async () => { await palyra.removeSecret({ name: each.name, scope: each.scope }); found.again(); }, "Secret removed.")} /> },
          ]} />
      )}
      {form ? (
        <form class="form" aria-label="Secret" onSubmit={(event) => { event.preventDefault(); if (!wrong && !short) void save(); }}>
          <TextField label="Name" mono value={form.name} onInput={(name) => setForm({ ...form, name })} wrong={wrong} eager required placeholder="GITHUB_TOKEN" />
          <TextField label="Value" type="password" value={form.value} onInput={(value) => setForm({ ...form, value })} wrong={short} required hint="Never shown again." />
          <TextField label="Limit to hosts" mono value={form.hosts} onInput={(hosts) => setForm({ ...form, hosts })} placeholder="api.example.org" hint="Comma-separated. Empty: any." />
          <TextField label="Limit to tools" mono value={form.tools} onInput={(tools) => setForm({ ...form, tools })} placeholder="http.fetch" hint="Comma-separated. Empty: any." />
          <div class="row"><button type="submit" class="main" disabled={busy || !form.name || !form.value || Boolean(wrong || short)}>Save secret</button><button type="button" class="quiet" onClick={() => setForm(undefined)}>Cancel</button></div>
        </form>
      ) : <button type="button" onClick={() => setForm(BLANK)}>Add secret</button>}
    </Part>
  );
}

function Remove({ secret, busy, onYes }: { secret: Secret; busy: boolean; onYes: () => void }): VNode {
  return <Sure words="Remove…" question={`Remove ${secret.name}?`} yes="Remove" disabled={busy} onYes={onYes} />;
}
