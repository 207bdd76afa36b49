// Tokens: what programs call Palyra with. One is shown once, when it is made, and can be taken back at any time.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { get, post, remove } from "../core/api";
import { ago, visible, when } from "../core/words";
import { Copy } from "../ui/code";
import { SelectField, TextField } from "../ui/form";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { MadeToken, Token, TokenList } from "../types";

const SCOPES = [["viewer", "Viewer: reads"], ["operator", "Operator: everything but tokens, policies and the whole journal"], ["owner", "Owner: everything"]] as const;
const LASTING = [["0", "until it is taken back"], ["1", "a day"], ["30", "30 days"], ["365", "a year"]] as const;
const DAY_MS = 86_400_000;

export function Tokens(): VNode {
  const found = useLoaded(() => get<TokenList>("/v1/tokens"));
  const [form, setForm] = useState<{ name: string; scope: "viewer" | "operator" | "owner"; days: "0" | "1" | "30" | "365" } | undefined>();
  const [made, setMade] = useState<MadeToken | undefined>();
  const [all, setAll] = useState(false);
  const { error, busy, attempt } = useAttempt();
  const create = () => attempt(async () => {
    const expires_ms = form!.days === "0" ? 0 : Date.now() + Number(form!.days) * DAY_MS;
    setMade(await post<MadeToken>("/v1/tokens", { name: form!.name.trim(), scope: form!.scope, expires_ms }));
    setForm(undefined);
    found.again();
  });
  const dead = (each: Token) => Boolean(each.revoked_ms) || Boolean(each.expires_ms && each.expires_ms < Date.now());
  const rows = found.value?.tokens.filter((each) => all || !dead(each)) ?? [];
  return (
    <Part id="tokens" title="Tokens">
      <p class="hint">Programs, and other browsers, get in with a token. A browser that logs in with a link has one, too.</p>
      <Problem text={found.error || error} />
      {made && (
        <div class="once" role="status">
          <p><strong>{visible(made.info.name)}</strong> was made. It is shown this once: copy it now.</p>
          <p class="row"><code class="breaks">{made.token}</code><Copy text={made.token} what="Copy the token" /><button type="button" class="quiet small" onClick={() => setMade(undefined)}>I have it</button></p>
        </div>
      )}
      <Table label="Tokens" rows={rows} keyOf={(each) => each.token_id} sorted="created" down
        columns={[
          { key: "name", words: "Name", draw: (each) => <>{visible(each.name)} {each.revoked_ms ? <Badge tone="bad">taken back</Badge> : dead(each) ? <Badge>expired</Badge> : null}</>, by: (each) => each.name },
          { key: "scope", words: "May", draw: (each) => each.scope, by: (each) => each.scope },
          { key: "created", words: "Made", draw: (each) => ago(each.created_ms), by: (each) => each.created_ms },
          { key: "used", words: "Used", draw: (each) => (each.used_ms ? ago(each.used_ms) : "never"), by: (each) => each.used_ms ?? 0 },
          { key: "ends", words: "Ends", draw: (each) => (each.expires_ms ? when(each.expires_ms) : "never"), by: (each) => each.expires_ms || Infinity },
          { key: "revoke", words: "", draw: (each) => (dead(each) ? null : <Sure words="Take back…" question={`Take ${visible(each.name)} back? What uses it is cut off at once.`} yes="Take it back" disabled={busy} onYes={() => void attempt(async () => { await remove(`/v1/tokens/${each.token_id}`); found.again(); }, "The token was taken back.")} />) },
        ]} />
      <div class="row">
        {!form && <button type="button" onClick={() => setForm({ name: "", scope: "viewer", days: "30" })}>Make a token</button>}
        <label class="check-label"><input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> Also those that ended</label>
      </div>
      {form && (
        <form class="form" aria-label="Token" onSubmit={(event) => { event.preventDefault(); if (form.name.trim()) void create(); }}>
          <TextField label="Name" value={form.name} onInput={(name) => setForm({ ...form, name })} required hint="So that you know later what uses it." />
          <SelectField label="It may" value={form.scope} options={SCOPES} onChoose={(scope) => setForm({ ...form, scope })} />
          <SelectField label="For" value={form.days} options={LASTING} onChoose={(days) => setForm({ ...form, days })} />
          <div class="row"><button type="submit" class="main" disabled={busy || !form.name.trim()}>Make it</button><button type="button" class="quiet" onClick={() => setForm(undefined)}>Leave it</button></div>
        </form>
      )}
    </Part>
  );
}
