// One worker: what it is and offers, what runs there and what it was given last; giving it nothing new, and taking its certificate back.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { ago, lasting, visible, when } from "../core/words";
import { useChanged } from "../ui/fresh";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import { LEASES, stateOf } from "./words";
import { Running } from "./workers";
import type { Lease } from "../types";

export function One({ name }: { name: string }): VNode {
  const found = useLoaded(() => palyra.getWorker(name), [name], useChanged("workers", "certificates"));
  const { error, busy, attempt } = useAttempt();
  const back = <a href={href("connections", "workers")}>All workers</a>;
  if (!found.value) return <><Problem text={found.error} />{!found.error && <p role="status">Loading…</p>}<p>{back}</p></>;
  const { worker: it, recent } = found.value;
  const [tone, words] = stateOf(it);
  const drain = (on: boolean) => void attempt(async () => { await palyra.drainWorker(name, { on }); found.again(); }, on ? "Draining." : "In use again.");
  return (
    <>
      <p class="row">{back}<Badge tone={tone}>{words}</Badge></p>
      <Problem text={found.error || error} />
      <dl class="facts">
        <dt>Machine</dt><dd class="breaks"><bdi>{visible(it.platform || "unknown")}</bdi></dd>
        {it.address && <><dt>Address</dt><dd class="mono breaks">{visible(it.address)}</dd></>}
        <dt>Version</dt><dd class="breaks">{visible(it.version || "unknown")}</dd>
        <dt>Sandbox</dt><dd>{it.tier === "none" ? "none" : `tier ${it.tier}`}</dd>
        <dt>Tools</dt><dd class="breaks">{it.tools.length ? it.tools.map((each) => <><code key={each}>{visible(each)}</code> </>) : "none yet"}</dd>
        <dt>Slots</dt><dd>{it.slots}</dd>
        <dt>Enrolled</dt><dd>{when(it.enrolled_ms)}</dd>
        <dt>Last seen</dt><dd>{it.connected ? "now" : it.seen_ms ? ago(it.seen_ms) : "never"}</dd>
        <dt>Certificate</dt><dd class="mono breaks">{visible(it.fingerprint)}</dd>
        {it.revoked_ms ? <><dt>Revoked</dt><dd>{when(it.revoked_ms)}</dd></> : it.certificate_expires_ms ? <><dt>Valid until</dt><dd>{when(it.certificate_expires_ms)}</dd></> : null}
      </dl>
      {it.state !== "revoked" && (
        <div class="row">
          {it.state === "draining" ? <button type="button" class="small" disabled={busy} onClick={() => drain(false)}>Resume</button> : <button type="button" class="small" disabled={busy} onClick={() => drain(true)}>Drain</button>}
          <Sure words="Revoke…" question={`Its certificate and connection end at once; the outcome of its running calls is unknown. ${visible(it.name)} must be enrolled again.`} yes="Revoke" disabled={busy}
            onYes={() => void attempt(async () => { await palyra.revokeWorker(name); found.again(); }, `${it.name} revoked.`)} />
        </div>
      )}
      <Part id="now" title="Running now">{it.running.length ? <Running calls={it.running} /> : <p class="hint">Idle.</p>}</Part>
      <Part id="recent" title="Recent calls">
        {!recent.length ? <p class="hint">None yet.</p> : (
          <Table<Lease> label="Calls" rows={recent} keyOf={(each) => `${each.call_id} ${each.attempt}`} columns={[
            { key: "tool", words: "Tool", draw: (each) => <code>{visible(each.tool)}</code> },
            { key: "state", words: "State", draw: (each) => <Badge tone={LEASES[each.state][0]}>{LEASES[each.state][1]}</Badge> },
            { key: "since", words: "Started", draw: (each) => <time dateTime={new Date(each.since_ms).toISOString()} title={when(each.since_ms)}>{ago(each.since_ms)}</time> },
            { key: "took", words: "Took", draw: (each) => (each.ended_ms ? lasting(each.ended_ms - each.since_ms) : "–"), numeric: true },
            { key: "attempt", words: "Attempt", draw: (each) => each.attempt, numeric: true },
            { key: "for", words: "Session", draw: (each) => <a href={href("timeline", each.session_id)}>Timeline</a> },
          ]} />
        )}
      </Part>
    </>
  );
}
