// Where Palyra listens and what it shows there: doors, who can reach them, certificates and their renewal. Keys are never shown.
import type { VNode } from "preact";
import { withKey } from "../core/api";
import * as palyra from "../core/verbs";
import { visible, when } from "../core/words";
import { Code, Copy } from "../ui/code";
import { useChanged } from "../ui/fresh";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import { DOORS } from "./words";
import type { Certificate, Exposure, Listener, Listening as Found, Shown } from "../types";

const SOON_MS = 30 * 86_400_000;
const OPEN = "palyra token create laptop --scope operator\npalyra config set server.tls.enabled true\npalyra config set server.host 0.0.0.0\npalyra stop --daemon && palyra up --detach";
/** Doors that are opened by a setting, with what to type. */
const MORE: readonly (readonly [Listener["name"], string, string])[] = [
  ["grpc", "The same verbs with types, for programs.", "palyra config set server.grpc true"],
  ["http3", "The same API over UDP, for those who change networks. It brings TLS of its own.", "palyra config set server.quic true"],
  ["workers", "For machines that run tools for Palyra.", "palyra config set workers.listen 0.0.0.0:7445"],
];

export function Listening(): VNode {
  const found = useLoaded(() => palyra.tlsStatus(), [], useChanged("certificates", "settings"));
  const it = found.value;
  if (!it) return <><Problem text={found.error} />{!found.error && <p role="status">Loading…</p>}</>;
  const { listeners } = it;
  const closed = MORE.filter(([name]) => !listeners.some((each) => each.name === name));
  return (
    <>
      <Problem text={found.error} />
      <Part id="doors" title="Where it listens">
        <Table<Listener> label="Listeners" rows={listeners} keyOf={(each) => each.name} columns={[
          { key: "name", words: "For", draw: (each) => DOORS[each.name] },
          { key: "at", words: "Address", draw: (each) => <span class="mono breaks">{visible(each.address)}</span> },
          { key: "tls", words: "TLS", draw: (each) => (each.tls ? <Badge tone="good">encrypted</Badge> : <Badge>in the clear, on this machine</Badge>) },
          { key: "copy", words: "", draw: (each) => <Copy text={each.address} what="Copy the address" /> },
        ]} />
        {closed.length > 0 && (
          <details>
            <summary>Doors that are shut</summary>
            <p class="hint">Each is opened on Palyra's own machine, and is there after the next start.</p>
            {closed.map(([name, words, command]) => <div key={name}><p><strong>{DOORS[name]}.</strong> {words}</p><Code language="sh" plain text={command} /></div>)}
          </details>
        )}
      </Part>
      <Reach it={it.exposure} />
      <Certificates it={it} onChanged={found.again} />
      <OfWorkers rows={it.workers} onChanged={found.again} />
    </>
  );
}

function Reach({ it }: { it: Exposure }): VNode {
  const host = it.host ?? "127.0.0.1";
  const here = local(host);
  const workers = it.workers ?? "";
  const names = [...(it.names ?? []), ...(it.allowed_hosts ?? [])];
  return (
    <Part id="reach" title="Who can reach it">
      {here ? <p>Only programs on its own machine. To let others in, with TLS and a token:</p> : <p>Other machines, at <span class="mono">{visible(host)}</span>. Each needs a token, and everything is encrypted.</p>}
      {here && <Code language="sh" plain text={OPEN} />}
      {workers && !local(workers.replace(/:\d+$/, "")) && <p>Workers come in at <span class="mono">{visible(workers)}</span>, each by a certificate of its own.</p>}
      {names.length > 0 && <p class="breaks">It is also called {names.map((each) => <><code key={each}>{visible(each)}</code> </>)}</p>}
      {(it.allowed_origins ?? []).length > 0 && <p class="breaks">Pages of these sites may call it: {(it.allowed_origins ?? []).map((each) => <><code key={each}>{visible(each)}</code> </>)}</p>}
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
      {!it.served && !it.authority && <p class="hint">None yet: nothing here speaks TLS. An authority of its own is made when it is first needed.</p>}
      {it.served && (
        <>
          <h3>What callers see</h3>
          <Facts it={it.served} />
          <button type="button" disabled={busy} onClick={() => void attempt(async () => { await palyra.renewCertificate(); onChanged(); }, "It is renewed.")}>{it.served.own ? "Renew it now" : "Read the files again"}</button>
        </>
      )}
      {it.authority && (
        <>
          <h3>Its own authority</h3>
          <Facts it={it.authority} />
          <p><a class="button" href={withKey(palyra.getCertificateAuthorityPath())} download="palyra-ca.pem">Download palyra-ca.pem</a> <span class="hint">Programs on other machines have to trust it. It holds no secret.</span></p>
        </>
      )}
    </Part>
  );
}

function Facts({ it }: { it: Shown }): VNode {
  const left = it.expires_ms - Date.now();
  return (
    <dl class="facts">
      <dt>for</dt><dd class="breaks">{visible(it.subject)}</dd>
      {it.names.length > 0 && <><dt>names</dt><dd class="mono breaks">{visible(it.names.join(", "))}</dd></>}
      {it.issuer !== it.subject && <><dt>signed by</dt><dd class="breaks">{visible(it.issuer)}</dd></>}
      <dt>good</dt><dd>from {when(it.begins_ms)} until {when(it.expires_ms)} {left <= 0 ? <Badge tone="bad">expired</Badge> : left < SOON_MS ? <Badge tone="warn">ends soon</Badge> : null}</dd>
      <dt>fingerprint</dt><dd class="mono breaks">{visible(it.fingerprint)}</dd>
    </dl>
  );
}

function OfWorkers({ rows, onChanged }: { rows: readonly Certificate[]; onChanged: () => void }): VNode | null {
  const { error, busy, attempt } = useAttempt();
  if (!rows.length) return null;
  const revoke = (it: Certificate) => void attempt(async () => { await palyra.revokeWorkerCertificate(it.fingerprint); onChanged(); }, "The certificate is revoked.");
  return (
    <Part id="workers" title="Certificates of workers">
      <Problem text={error} />
      <Table<Certificate> label="Certificates of workers" rows={rows} keyOf={(each) => each.fingerprint} columns={[
        { key: "name", words: "Worker", draw: (each) => <>{visible(each.name)} {each.revoked_ms ? <Badge tone="bad">revoked</Badge> : null}</>, by: (each) => each.name },
        { key: "fingerprint", words: "Fingerprint", draw: (each) => <span class="mono breaks">{visible(each.fingerprint)}</span> },
        { key: "until", words: "Good until", draw: (each) => when(each.expires_ms), by: (each) => each.expires_ms },
        { key: "do", words: "", draw: (each) => (each.revoked_ms ? null : <Sure words="Revoke…" question={`Whoever has it is no longer ${visible(each.name)}.`} yes="Revoke it" disabled={busy} onYes={() => revoke(each)} />) },
      ]} />
    </Part>
  );
}
