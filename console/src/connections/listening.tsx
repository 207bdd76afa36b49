// Where Palyra listens and what it shows there: doors, who can reach them, certificates and their renewal. Keys are never shown.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { visible, when } from "../core/words";
import { href } from "../core/router";
import { Copy } from "../ui/code";
import { CheckField, TextField } from "../ui/form";
import { Download } from "../ui/stored";
import { useChanged } from "../ui/fresh";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import { DOORS, WORKERS_AT } from "./words";
import type { Certificate, Exposure, Listener, ListenerChanges, Listening as Found, Shown } from "../types";

const SOON_MS = 30 * 86_400_000;
/** Listeners that open and close here, with what they are for. */
const MORE: readonly (readonly [Switched, string])[] = [
  ["grpc", "The typed API for programs."],
  ["workers", "For machines that run tools for Palyra."],
  ["http3", "The same API over QUIC, for clients that change networks. It has its own TLS."],
];
type Switched = Exclude<Listener["name"], "http">;

function switched(name: Listener["name"]): name is Switched {
  return name !== "http";
}

export function Listening(): VNode {
  const found = useLoaded(() => palyra.tlsStatus(), [], useChanged("certificates", "settings"));
  const it = found.value;
  const [moved, setMoved] = useState("");
  const { error, busy, attempt } = useAttempt();
  const use = (changes: ListenerChanges) => attempt(async () => {
    await palyra.changeListeners(changes);
    // With TLS or without, it is another site for a browser: this page cannot follow by itself.
    if (typeof changes.tls === "boolean") return setMoved(`${changes.tls ? "https" : "http"}://${location.host}/`);
    found.again();
  }, "Saved.");
  if (!it) return <><Problem text={found.error} />{!found.error && <p role="status">Loading…</p>}</>;
  const { listeners } = it;
  const closed = MORE.filter(([name]) => !listeners.some((each) => each.name === name));
  return (
    <>
      <Problem text={found.error} />
      <Part id="doors" title="Listeners">
        <Table<Listener> label="Listeners" rows={listeners} keyOf={(each) => each.name} columns={[
          { key: "name", words: "Service", draw: (each) => DOORS[each.name] },
          { key: "at", words: "Address", draw: (each) => <span class="mono breaks">{visible(each.address)}</span> },
          { key: "tls", words: "TLS", draw: (each) => (each.tls ? <Badge tone="good">Encrypted</Badge> : <Badge>No TLS, local only</Badge>) },
          { key: "copy", words: "", draw: (each) => <Copy text={each.address} what="Copy address" /> },
          { key: "off", words: "", draw: (each) => (!switched(each.name) ? null : <Sure words="Disable…" question={`Programs that use ${DOORS[each.name]} are disconnected.`} yes="Disable" disabled={busy} onYes={() => void use(changeOf(each.name as Switched, ""))} />) },
        ]} />
        <Problem text={error} />
        {closed.length > 0 && (
          <details>
            <summary>Disabled listeners</summary>
            {closed.map(([name, words]) => <Closed key={name} name={name} words={words} busy={busy} onUse={use} />)}
          </details>
        )}
        {moved && <Moved to={moved} />}
      </Part>
      <Reach it={it.exposure} busy={busy} onUse={use} />
      <Certificates it={it} onChanged={found.again} />
      <OfWorkers rows={it.workers} onChanged={found.again} />
    </>
  );
}

/** `at`: where it listens; empty: nowhere. */
function changeOf(name: Switched, at: string): ListenerChanges {
  return name === "grpc" ? { grpc: Boolean(at) } : name === "http3" ? { quic: Boolean(at) } : { workers: at };
}

function Closed({ name, words, busy, onUse }: { name: Switched; words: string; busy: boolean; onUse: (changes: ListenerChanges) => void }): VNode {
  const [at, setAt] = useState(WORKERS_AT);
  return (
    <form class="row closed-listener" aria-label={DOORS[name]} onSubmit={(event) => { event.preventDefault(); onUse(changeOf(name, at)); }}>
      <p class="grow"><strong>{DOORS[name]}.</strong> {words}</p>
      {name === "workers" && <input class="mono" aria-label="Listen on" value={at} onInput={(event) => setAt(event.currentTarget.value)} />}
      <button type="submit" disabled={busy || !at.trim()}>Enable {DOORS[name]}</button>
    </form>
  );
}

/** Where the page goes on when Palyra serves it with TLS, or no longer. */
function Moved({ to }: { to: string }): VNode {
  return (
    <div class="notice warn" role="status">
      <p>Saved. Continue at <a href={to}>{to}</a> and log in with <code>palyra login</code>. Active runs continue.{to.startsWith("https") && " A browser that does not trust Palyra's authority warns of its certificate."}</p>
    </div>
  );
}

function Reach({ it, busy, onUse }: { it: Exposure; busy: boolean; onUse: (changes: ListenerChanges) => void }): VNode {
  const host = it.host ?? "127.0.0.1";
  const here = local(host);
  const [wanted, setWanted] = useState(host);
  const [tls, setTls] = useState(it.tls ?? false);
  const names = [...(it.names ?? []), ...(it.allowed_hosts ?? [])];
  const wrong = !/^[\w.:]+$/.test(wanted) ? "Enter an address of this machine." : !local(wanted) && !tls ? "Other machines could read every word: turn on TLS." : "";
  const changed = wanted !== host || tls !== (it.tls ?? false);
  return (
    <Part id="reach" title="Exposure">
      {here ? <p>Only programs on this machine can connect.</p> : <p>Other machines can connect at <span class="mono">{visible(host)}</span>. Each needs a token, and all traffic is encrypted.</p>}
      <form class="form" aria-label="Exposure" onSubmit={(event) => { event.preventDefault(); onUse({ ...(wanted !== host ? { host: wanted } : {}), ...(tls !== (it.tls ?? false) ? { tls } : {}) }); }}>
        <TextField label="Address" mono value={wanted} onInput={setWanted} wrong={wrong} eager list={["127.0.0.1", "0.0.0.0"]} hint={<><code>127.0.0.1</code>: this machine only. <code>0.0.0.0</code>: every network that it is in. Other machines need <a href={href("connections", "tokens")}>a token</a>.</>} />
        <CheckField label="TLS" checked={tls} onChange={setTls} hint="With a certificate of Palyra's own authority, or your files." />
        <button type="submit" disabled={busy || Boolean(wrong) || !changed}>Save exposure</button>
      </form>
      {names.length > 0 && <p class="breaks">Other names: {names.map((each) => <><code key={each}>{visible(each)}</code> </>)}</p>}
      {(it.allowed_origins ?? []).length > 0 && <p class="breaks">Allowed origins: {(it.allowed_origins ?? []).map((each) => <><code key={each}>{visible(each)}</code> </>)}</p>}
    </Part>
  );
}

function local(host: string): boolean {
  return /^(localhost|127\..*|\[?::1\]?)$/.test(host);
}

function Certificates({ it, onChanged }: { it: Found; onChanged: () => void }): VNode {
  const { error, busy, attempt } = useAttempt();
  return (
    <Part id="certificates" title="Certificates">
      <Problem text={error} />
      {!it.served && !it.authority && <p class="hint">No certificates yet: no listener uses TLS. Palyra creates its own authority when it needs one.</p>}
      {it.served && (
        <>
          <h3>Server certificate</h3>
          <Facts it={it.served} />
          <button type="button" disabled={busy} onClick={() => void attempt(async () => { await palyra.renewCertificate(); onChanged(); }, "Renewed.")}>{it.served.own ? "Renew now" : "Reload files"}</button>
        </>
      )}
      {it.authority && (
        <>
          <h3>Certificate authority</h3>
          <Facts it={it.authority} />
          <p><Download quiet="button" path={palyra.getCertificateAuthorityPath()} name="palyra-ca.pem">Download palyra-ca.pem</Download> <span class="hint">Programs on other machines must trust it. It contains no secret.</span></p>
        </>
      )}
    </Part>
  );
}

function Facts({ it }: { it: Shown }): VNode {
  const left = it.expires_ms - Date.now();
  return (
    <dl class="facts">
      <dt>Subject</dt><dd class="breaks">{visible(it.subject)}</dd>
      {it.names.length > 0 && <><dt>Names</dt><dd class="mono breaks">{visible(it.names.join(", "))}</dd></>}
      {it.issuer !== it.subject && <><dt>Issuer</dt><dd class="breaks">{visible(it.issuer)}</dd></>}
      <dt>Valid</dt><dd>from {when(it.begins_ms)} until {when(it.expires_ms)} {left <= 0 ? <Badge tone="bad">Expired</Badge> : left < SOON_MS ? <Badge tone="warn">Expires soon</Badge> : null}</dd>
      <dt>Fingerprint</dt><dd class="mono breaks">{visible(it.fingerprint)}</dd>
    </dl>
  );
}

function OfWorkers({ rows, onChanged }: { rows: readonly Certificate[]; onChanged: () => void }): VNode | null {
  const { error, busy, attempt } = useAttempt();
  if (!rows.length) return null;
  const revoke = (it: Certificate) => void attempt(async () => { await palyra.revokeWorkerCertificate(it.fingerprint); onChanged(); }, "Certificate revoked.");
  return (
    <Part id="workers" title="Worker certificates">
      <Problem text={error} />
      <Table<Certificate> label="Worker certificates" rows={rows} keyOf={(each) => each.fingerprint} columns={[
        { key: "name", words: "Worker", draw: (each) => <>{visible(each.name)} {each.revoked_ms ? <Badge tone="bad">Revoked</Badge> : null}</>, by: (each) => each.name },
        { key: "fingerprint", words: "Fingerprint", draw: (each) => <span class="mono breaks">{visible(each.fingerprint)}</span> },
        { key: "until", words: "Valid until", draw: (each) => when(each.expires_ms), by: (each) => each.expires_ms },
        { key: "do", words: "", draw: (each) => (each.revoked_ms ? null : <Sure words="Revoke…" question={`The worker ${visible(each.name)} can no longer connect.`} yes="Revoke" disabled={busy} onYes={() => revoke(each)} />) },
      ]} />
    </Part>
  );
}
