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
  const drain = (on: boolean) => void attempt(async () => { await palyra.drainWorker(name, { on }); found.again(); }, on ? "It gets nothing new." : "It is used again.");
  return (
    <>
      <p class="row">{back}<Badge tone={tone}>{words}</Badge></p>
      <Problem text={found.error || error} />
      <dl class="facts">
        <dt>machine</dt><dd class="breaks"><bdi>{visible(it.platform || "not known yet")}</bdi></dd>
        {it.address && <><dt>connected from</dt><dd class="mono breaks">{visible(it.address)}</dd></>}
        <dt>version</dt><dd class="breaks">{visible(it.version || "not known yet")}</dd>
        <dt>sandbox</dt><dd>{it.tier === "none" ? "none" : `tier ${it.tier}`}</dd>
        <dt>offers</dt><dd class="breaks">{it.tools.length ? it.tools.map((each) => <><code key={each}>{visible(each)}</code> </>) : "nothing yet"}</dd>
        <dt>calls at once</dt><dd>{it.slots}</dd>
        <dt>enrolled</dt><dd>{when(it.enrolled_ms)}</dd>
        <dt>seen</dt><dd>{it.connected ? "here now" : it.seen_ms ? ago(it.seen_ms) : "never"}</dd>
        <dt>certificate</dt><dd class="mono breaks">{visible(it.fingerprint)}</dd>
        {it.revoked_ms ? <><dt>revoked</dt><dd>{when(it.revoked_ms)}</dd></> : it.certificate_expires_ms ? <><dt>good until</dt><dd>{when(it.certificate_expires_ms)}</dd></> : null}
      </dl>
      {it.state !== "revoked" && (
        <div class="row">
          {it.state === "draining" ? <button type="button" class="small" disabled={busy} onClick={() => drain(false)}>Use it again</button> : <button type="button" class="small" disabled={busy} onClick={() => drain(true)}>Give it nothing new</button>}
          <Sure words="Revoke…" question={`Its certificate is then worthless, its line is cut, and what it holds is in doubt. ${visible(it.name)} would have to be enrolled anew.`} yes="Revoke it" disabled={busy}
            onYes={() => void attempt(async () => { await palyra.revokeWorker(name); found.again(); }, `${it.name} is revoked.`)} />
        </div>
      )}
      <Part id="now" title="Runs there now">{it.running.length ? <Running calls={it.running} /> : <p class="hint">Nothing.</p>}</Part>
      <Part id="recent" title="What it was given last">
        {!recent.length ? <p class="hint">Nothing yet.</p> : (
          <Table<Lease> label="Calls" rows={recent} keyOf={(each) => `${each.call_id} ${each.attempt}`} columns={[
            { key: "tool", words: "Tool", draw: (each) => <code>{visible(each.tool)}</code> },
            { key: "state", words: "State", draw: (each) => <Badge tone={LEASES[each.state][0]}>{LEASES[each.state][1]}</Badge> },
            { key: "since", words: "Given", draw: (each) => <time dateTime={new Date(each.since_ms).toISOString()} title={when(each.since_ms)}>{ago(each.since_ms)}</time> },
            { key: "took", words: "Took", draw: (each) => (each.ended_ms ? lasting(each.ended_ms - each.since_ms) : "–"), numeric: true },
            { key: "attempt", words: "Attempt", draw: (each) => each.attempt, numeric: true },
            { key: "for", words: "For", draw: (each) => <a href={href("timeline", each.session_id)}>its timeline</a> },
          ]} />
        )}
      </Part>
    </>
  );
}
