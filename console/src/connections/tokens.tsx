// Tokens: what programs call Palyra with, by what they may and when they last did. One is shown once, when it is made, and can be taken back.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { ago, visible, when } from "../core/words";
import { Copy } from "../ui/code";
import { SelectField, TextField } from "../ui/form";
import { useChanged } from "../ui/fresh";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Choice, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import { SCOPES } from "./words";
import type { MadeToken, Token } from "../types";

type Scope = Token["scope"];
const ALL: readonly Scope[] = ["owner", "operator", "viewer", "client", "connector", "worker"];
const OFFERED = (["client", "viewer", "operator", "owner"] as const).map((each) => [each, SCOPES[each]] as const);
const LASTING = [["0", "never"], ["1", "a day"], ["30", "30 days"], ["365", "a year"]] as const;
const DAY_MS = 86_400_000;
const STALE_MS = 90 * DAY_MS;

interface Form {
  name: string;
  scope: (typeof OFFERED)[number][0];
  workspace: string;
  days: (typeof LASTING)[number][0];
}

export function Tokens(): VNode {
  const found = useLoaded(() => palyra.listTokens(), [], useChanged("tokens"));
  const [form, setForm] = useState<Form | undefined>();
  const [made, setMade] = useState<MadeToken | undefined>();
  const [ended, setEnded] = useState(false);
  const [scope, setScope] = useState<Scope | "">("");
  const { error, busy, attempt } = useAttempt();
  const create = (wanted: Form) => attempt(async () => {
    const expires_ms = wanted.days === "0" ? 0 : Date.now() + Number(wanted.days) * DAY_MS;
    setMade(await palyra.createToken({ name: wanted.name.trim(), scope: wanted.scope, expires_ms, workspace: wanted.scope === "client" ? wanted.workspace.trim() : "" }));
    setForm(undefined);
    found.again();
  });
  const shown = found.value?.tokens.filter((each) => ended || !dead(each)) ?? [];
  const many = (each: Scope) => shown.filter((token) => token.scope === each).length;
  const scopes = ALL.filter((each) => many(each) || each === scope);
  const rows = shown.filter((each) => !scope || each.scope === scope);
  return (
    <Part id="tokens" title="Tokens">
      <p class="hint">Programs, and other browsers, get in with a token. A browser that logs in with a link has one, too.</p>
      <Problem text={found.error || error} />
      {made && (
        <div class="once" role="status">
          <p><strong>{visible(made.info.name)}</strong> was made. It is shown this once: copy it now.</p>
          <p class="row"><code class="breaks">{made.token}</code><Copy text={made.token} what="Copy the token" /><button type="button" class="quiet small" onClick={() => setMade(undefined)}>Done</button></p>
        </div>
      )}
      {found.value && <div class="tabs"><Choice<Scope | ""> label="Scope" value={scope} options={[["", `all ${shown.length}`], ...scopes.map((each) => [each, `${each} ${many(each)}`] as const)]} onChoose={setScope} /></div>}
      {scope && <p class="hint">{SCOPES[scope]}.</p>}
      <Table label="Tokens" rows={rows} keyOf={(each) => each.token_id} sorted="created" down
        columns={[
          { key: "name", words: "Name", draw: (each) => <><bdi>{visible(each.name)}</bdi> <Standing it={each} /></>, by: (each) => each.name },
          { key: "scope", words: "Scope", draw: (each) => <span title={SCOPES[each.scope]}>{each.scope}</span>, by: (each) => ALL.indexOf(each.scope) },
          { key: "created", words: "Created", draw: (each) => <Moment ms={each.created_ms} />, by: (each) => each.created_ms },
          { key: "used", words: "Last used", draw: (each) => (each.used_ms ? <Moment ms={each.used_ms} /> : "never"), by: (each) => each.used_ms ?? 0 },
          { key: "ends", words: "Expires", draw: (each) => (each.expires_ms ? when(each.expires_ms) : "never"), by: (each) => each.expires_ms || Infinity },
          { key: "revoke", words: "", draw: (each) => (dead(each) ? null : <Sure words="Revoke…" question={`Revoke ${visible(each.name)}? Programs that use it lose access at once.`} yes="Revoke" disabled={busy} onYes={() => void attempt(async () => { await palyra.revokeToken(each.token_id); found.again(); }, "Token revoked.")} />) },
        ]} />
      <div class="row">
        {!form && <button type="button" onClick={() => setForm({ name: "", scope: "client", workspace: "", days: "30" })}>Create token</button>}
        <label class="check-label"><input type="checkbox" checked={ended} onChange={(event) => setEnded(event.currentTarget.checked)} /> Show expired and revoked</label>
      </div>
      {form && (
        <form class="form" aria-label="Token" onSubmit={(event) => { event.preventDefault(); if (form.name.trim()) void create(form); }}>
          <TextField label="Name" value={form.name} onInput={(name) => setForm({ ...form, name })} required hint="Helps you recognise it later." />
          <SelectField label="Scope" value={form.scope} options={OFFERED} onChoose={(each) => setForm({ ...form, scope: each })} />
          {form.scope === "client" && <TextField label="Workspace" value={form.workspace} onInput={(workspace) => setForm({ ...form, workspace })} hint="The only folder it can use. Empty: the default workspace." />}
          <SelectField label="Expires" value={form.days} options={LASTING} onChoose={(days) => setForm({ ...form, days })} />
          <div class="row"><button type="submit" class="main" disabled={busy || !form.name.trim()}>Create</button><button type="button" class="quiet" onClick={() => setForm(undefined)}>Cancel</button></div>
        </form>
      )}
    </Part>
  );
}

function dead(it: Token): boolean {
  return Boolean(it.revoked_ms) || Boolean(it.expires_ms && it.expires_ms < Date.now());
}

function Standing({ it }: { it: Token }): VNode | null {
  if (it.revoked_ms) return <Badge tone="bad">Revoked</Badge>;
  if (dead(it)) return <Badge>Expired</Badge>;
  return Math.max(it.used_ms ?? 0, it.created_ms) < Date.now() - STALE_MS ? <Badge tone="warn" title="Not used for 90 days">Unused</Badge> : null;
}

function Moment({ ms }: { ms: number }): VNode {
  return <time dateTime={new Date(ms).toISOString()} title={when(ms)}>{ago(ms)}</time>;
}
