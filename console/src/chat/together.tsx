// Calls that were asked in one turn: one question with a line for each, allowed or denied together.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import { refreshLists } from "../core/store";
import * as palyra from "../core/verbs";
import { visible } from "../core/words";
import { Badge, Problem } from "../ui/parts";
import type { Approval, ApprovalRequested } from "../types";
import { RISK, What } from "./approval";

/** The table of a question with several lines. Nothing for one that stands alone, or is not the first that waits. */
export function Together({ request }: { request: ApprovalRequested }): VNode | null {
  const [lines, setLines] = useState<readonly Approval[]>([]);
  const [without, setWithout] = useState<ReadonlySet<string>>(new Set());
  const [session, setSession] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => {
    let stale = false;
    if (request.group) {
      void palyra.getApprovalGroup(request.approval_id).then(
        (found) => { if (!stale) setLines(found.approvals); },
        (failure: unknown) => { if (!stale) setError(wordsOf(failure)); },
      );
    }
    return () => { stale = true; };
  }, [request.approval_id, request.group]);
  if (!request.group || lines.length < 2 || lines[0]?.approval_id !== request.approval_id) return null;
  const hidden = (each: Approval) => !!each.request.preview.length;
  const chosen = lines.filter((each) => !without.has(each.approval_id) && !hidden(each));
  const toggle = (id: string) => {
    const next = new Set(without);
    if (!next.delete(id)) next.add(id);
    setWithout(next);
  };
  const say = async (decision: "allow" | "deny") => {
    setBusy(true);
    setError("");
    try {
      const done = await palyra.answerGroup(request.approval_id, decision === "deny" ? { decision } : {
        decision, only: chosen.map((each) => each.approval_id), others: "deny", scope: session ? "session" : "once",
      });
      setError((done.problems ?? []).map((each) => each.message).join("; "));
      await refreshLists().catch(() => undefined);
    } catch (failure) {
      setError(wordsOf(failure));
    }
    setBusy(false);
  };
  return (
    <fieldset class="together">
      <legend>{lines.length} calls need approval together</legend>
      <ul class="plain">
        {lines.map((each) => (
          <li key={each.approval_id}>
            <label class="check-label">
              <input type="checkbox" checked={!without.has(each.approval_id) && !hidden(each)} disabled={busy || hidden(each)} onChange={() => toggle(each.approval_id)} />
              {" "}<span class="mono">{visible(each.request.tool)}</span> <bdi>{visible(each.request.preview.title)}</bdi> <Badge tone={each.request.risk === "low" ? "good" : each.request.risk === "medium" ? "warn" : "bad"}>{RISK[each.request.risk] ?? each.request.risk}</Badge>
            </label>
            <details class="more"><summary>Details</summary><What preview={each.request.preview} /><p class="hint">{visible(each.request.why)}</p></details>
          </li>
        ))}
      </ul>
      <Problem text={error} />
      <div class="row">
        <button type="button" class="yes" disabled={busy || !chosen.length} onClick={() => void say("allow")}>Approve {chosen.length} of {lines.length}</button>
        <label class="check-label"><input type="checkbox" checked={session} onChange={() => setSession(!session)} /> Same calls for this session</label>
        <button type="button" class="no" disabled={busy} onClick={() => void say("deny")}>Deny all</button>
      </div>
    </fieldset>
  );
}
