// While no provider can answer: why, a clock that counts down to the next try, and what can be done about it.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import type { Conversation } from "../core/conversation";
import { status } from "../core/store";
import * as palyra from "../core/verbs";
import { lasting, visible, when } from "../core/words";
import { Problem } from "../ui/parts";

const CAUSES: Record<string, string> = {
  overloaded: "Model overloaded", rate_limited: "Rate limit reached", network: "Cannot reach the model", timeout: "Model timed out",
  auth: "The provider refused the key", permission: "The key may not use this model", quota: "The provider's account has no credit left",
};

export function WaitCard({ conversation }: { conversation: Conversation }): VNode | null {
  const run = conversation.run.value;
  const wait = run?.wait;
  const [now, setNow] = useState(Date.now());
  const [error, setError] = useState("");
  useEffect(() => {
    if (!wait) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [!wait, run?.runId]);
  if (!run || !wait) return null;
  const attempt = (work: Promise<unknown>) => void work.then(() => setError(""), (failure: unknown) => setError(wordsOf(failure)));
  const others = (status.value?.models ?? []).filter((each) => each.name !== wait.model);
  const left = wait.nextTryMs - now;
  return (
    <section class="notice warn wait" aria-label="Waiting for model">
      <p>
        <strong>{CAUSES[wait.cause] ?? "Model not available"}</strong>; {left > 0 ? <>next try in <span role="timer">{lasting(Math.ceil(left / 1000) * 1000)}</span></> : "trying again"}.
        {" "}<span class="hint" title={when(wait.deadlineMs)}>Gives up in {lasting(Math.max(0, wait.deadlineMs - now))}.</span>
      </p>
      <p class="hint"><bdi>{visible(wait.message)}</bdi></p>
      <div class="row">
        {others.length > 0 && (
          <select aria-label="Switch model" value="" onChange={(event) => event.currentTarget.value && attempt(palyra.retry(run.runId, { model: event.currentTarget.value }))}>
            <option value="">Switch model…</option>
            {others.map((each) => <option value={each.name}>{visible(each.name)}</option>)}
          </select>
        )}
        <button type="button" class="small" onClick={() => attempt(palyra.retry(run.runId, {}))}>Try now</button>
        <button type="button" class="quiet small" onClick={() => attempt(palyra.cancel(run.runId))}>Cancel</button>
      </div>
      <Problem text={error} />
    </section>
  );
}
