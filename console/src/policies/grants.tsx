// Approvals that last: for a session, or for a while. Each can be revoked; what was approved for good is a policy file.
import type { VNode } from "preact";
import { covers } from "../chat/covers";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { lastEntry, sessions } from "../core/store";
import { many, visible, when } from "../core/words";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { Grant } from "../types";

export function Grants(): VNode {
  const changed = lastEntry.value?.kind === "approval.resolved" || lastEntry.value?.kind === "admin.changed" ? lastEntry.value.position : 0;
  const found = useLoaded(() => palyra.listGrants(), [changed]);
  const { error, busy, attempt } = useAttempt();
  const title = (id: string) => visible(sessions.value.find((each) => each.session_id === id)?.title || "a session");
  const revoke = (grant: Grant) => void attempt(async () => { await palyra.removeGrant(grant.approval_id); found.again(); }, "Grant revoked.");
  const rows = found.value?.grants ?? [];
  return (
    <Part id="grants" title="Grants">
      <p class="hint">Calls that run without asking because you approved more than one. Permanent approvals are rules in <a href={href("policies", "files")}>policy files</a>.</p>
      <Problem text={found.error || error} />
      {found.value && !rows.length && <p>No grants are active.</p>}
      {rows.length > 0 && (
        <Table<Grant> label="Grants" rows={rows} keyOf={(each) => each.approval_id} columns={[
          { key: "what", words: "Covers", draw: (each) => <bdi>{visible(covers(each.subject))}</bdi> },
          { key: "where", words: "Where", draw: (each) => (each.session_id ? <a href={href("chat", each.session_id)}>{title(each.session_id)}</a> : "everywhere") },
          { key: "until", words: "Until", draw: (each) => (each.until_ms ? when(each.until_ms) : "the session ends or is reset") },
          { key: "used", words: "Last used", draw: (each) => { const use = found.value?.uses?.[each.approval_id]; return use ? `${when(use.last_ms)} (${many(use.calls, "call")})` : "never"; } },
          { key: "do", words: "", draw: (each) => <Sure words="Revoke…" question="Calls like this ask again." yes="Revoke" disabled={busy} onYes={() => revoke(each)} /> },
        ]} />
      )}
    </Part>
  );
}
