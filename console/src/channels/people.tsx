// Who waits to be admitted, who was, and whose identity they are. A yes is a deliberate click; what somebody calls themselves is only text.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { ago, visible, when } from "../core/words";
import { SelectField, TextField } from "../ui/form";
import { useChanged } from "../ui/fresh";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { ChangePerson, Invitation, Pairing, Person } from "../types";

const DAY_MS = 86_400_000;
const LENGTHS = [["0", "until revoked"], [String(DAY_MS), "for a day"], [String(30 * DAY_MS), "for thirty days"]] as const;

export function People(): VNode {
  const fresh = useChanged("channels");
  const waiting = useLoaded(() => palyra.listPairings(), [], fresh);
  const people = useLoaded(() => palyra.listPeople(), [], fresh);
  const { error, busy, attempt } = useAttempt();
  const [length, setLength] = useState<string>("0");
  const again = () => { waiting.again(); people.again(); };
  const settle = (which: string, verb: "approve" | "deny", said: string) => attempt(async () => {
    await palyra.settlePairing({ which, verb, ...(verb === "approve" ? { for_ms: Number(length) } : {}) });
    again();
  }, said);
  const asking = (waiting.value?.pairings ?? []).filter((each) => each.kind === "request");
  const rows = people.value?.people ?? [];
  return (
    <>
      <Problem text={waiting.error || people.error || error} />
      <Part id="asking" title="Pairing requests">
        <SelectField label="Approval lasts" value={length} options={LENGTHS} onChoose={setLength} />
        {!asking.length && <p class="hint">No requests. Someone unknown who writes to Palyra gets a code and appears here.</p>}
        <ul class="cards" aria-label="Pairing requests">{asking.map((each) => <Asking key={each.pairing_id} it={each} busy={busy} onSettle={(verb, said) => void settle(each.pairing_id, verb, said)} />)}</ul>
        <ByCode busy={busy} onEnter={(code) => settle(code, "approve", "Approved.")} />
        <Inviting />
      </Part>
      <Part id="people" title="People">
        {!rows.length ? <p class="hint">No one has written yet.</p> : (
          <Table label="People" rows={rows} keyOf={(each) => `${each.connector}/${each.sender}`} columns={[
            { key: "who", words: "Person", draw: (each) => <><bdi>{visible(each.display || each.sender)}</bdi> <span class="hint mono breaks">{visible(`${each.connector}/${each.sender}`)}</span></>, by: (each) => each.display || each.sender },
            { key: "state", words: "Status", draw: (each) => <Standing it={each} />, by: (each) => each.principal || String(each.paired_ms ?? 0) },
            { key: "seen", words: "Last message", draw: (each) => (each.seen_ms ? ago(each.seen_ms) : "never"), by: (each) => each.seen_ms ?? 0, numeric: true },
            { key: "do", words: "Actions", draw: (each) => <Change it={each} onChanged={again} /> },
          ]} />
        )}
      </Part>
    </>
  );
}

function Asking({ it, busy, onSettle }: { it: Pairing; busy: boolean; onSettle: (verb: "approve" | "deny", said: string) => void }): VNode {
  return (
    <li class="card">
      <div class="row"><strong><bdi>{visible(it.display || it.sender || "Unknown")}</bdi></strong><Badge>{it.connector}</Badge><span class="hint">asked {ago(it.created_ms)}, until {when(it.expires_ms)}</span></div>
      <p class="hint">Account <span class="mono breaks">{visible(it.sender ?? "")}</span>. Anyone can choose a display name: compare the code with them if you are not sure.</p>
      <div class="row">
        <button type="button" class="yes" disabled={busy} onClick={() => onSettle("approve", "Approved.")}>Approve</button>
        <button type="button" class="no" disabled={busy} onClick={() => onSettle("deny", "Denied.")}>Deny</button>
      </div>
    </li>
  );
}

function ByCode({ busy, onEnter }: { busy: boolean; onEnter: (code: string) => Promise<boolean> }): VNode {
  const [code, setCode] = useState("");
  return (
    <form class="form" aria-label="Approve by code" onSubmit={(event) => { event.preventDefault(); void onEnter(code.trim()).then((good) => { if (good) setCode(""); }); }}>
      <TextField label="Pairing code" mono value={code} onInput={setCode} />
      <button type="submit" disabled={busy || !code.trim()}>Approve by code</button>
    </form>
  );
}

function Inviting(): VNode | null {
  const found = useLoaded(() => palyra.listChannels());
  const [channel, setChannel] = useState("");
  const [made, setMade] = useState<Invitation | undefined>();
  const { error, busy, attempt } = useAttempt();
  const names = (found.value?.channels ?? []).map((each) => each.name);
  const chosen = channel || names[0] || "";
  if (!chosen) return null;
  return (
    <form class="form" aria-label="Invite" onSubmit={(event) => { event.preventDefault(); void attempt(async () => setMade(await palyra.invite({ channel: chosen }))); }}>
      <SelectField label="Invite on" value={chosen} options={names.map((each) => [each, each] as const)} onChoose={setChannel} />
      <Problem text={error} />
      {made && <p class="notice good" role="status">Anyone who writes <code>pair {made.code}</code> on {made.channel} before {when(made.expires_ms)} is approved. The code is shown only once.</p>}
      <button type="submit" disabled={busy}>Create code</button>
    </form>
  );
}

function Standing({ it }: { it: Person }): VNode {
  if (it.principal) return <Badge tone="good">{visible(it.principal)}</Badge>;
  const ended = it.paired_until_ms ? it.paired_until_ms < Date.now() : false;
  if (it.revoked_ms) return <Badge tone="bad">Revoked</Badge>;
  if (!it.paired_ms || ended) return <Badge>{ended ? "Expired" : "Unknown"}</Badge>;
  return <><Badge tone="good">Paired</Badge>{it.paired_until_ms ? <span class="hint"> until {when(it.paired_until_ms)}</span> : null}</>;
}

function Change({ it, onChanged }: { it: Person; onChanged: () => void }): VNode {
  const { error, busy, attempt } = useAttempt();
  const change = (body: Pick<ChangePerson, "verb"> & Partial<ChangePerson>, said: string) => void attempt(async () => { await palyra.changePerson({ channel: it.connector, sender: it.sender, ...body }); onChanged(); }, said);
  const who = visible(it.display || it.sender);
  return (
    <div class="row">
      {it.paired_ms && !it.revoked_ms ? <Sure words="Revoke…" question={`${who} can no longer write to Palyra.`} yes="Revoke" disabled={busy} onYes={() => change({ verb: "revoke" }, "Revoked.")} /> : null}
      {it.principal ? <Sure words="Not me…" question={`${who} no longer acts as you.`} yes="Unlink" disabled={busy} onYes={() => change({ verb: "link", principal: "" }, "Unlinked.")} />
        : <Sure words="This is me…" question={`The account ${visible(it.sender)} then acts as you, with all your permissions.`} yes="Link" tone="yes" disabled={busy} onYes={() => change({ verb: "link", principal: "user:owner" }, "Linked to you.")} />}
      <Problem text={error} />
    </div>
  );
}
