// Routing preview if it came now, check by check. The daemon decides as it will then; nothing is done.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { visible } from "../core/words";
import { CheckField, TextField } from "../ui/form";
import { Part } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { RoutingPreview as Preview, Rules } from "../types";

const SOON_MS = 250;

export function RoutePreview({ name, rules }: { name: string; rules: Rules }): VNode {
  const [draft, setDraft] = useState({ sender: "", text: "", direct: false, everyone: false });
  const [shown, setShown] = useState<Preview | undefined>();
  const [wrong, setWrong] = useState("");
  const set = (some: Partial<typeof draft>) => setDraft({ ...draft, ...some });
  const asked = JSON.stringify(draft);
  useEffect(() => {
    if (!draft.sender.trim()) return setShown(undefined);
    let stale = false;
    const timer = setTimeout(() => {
      palyra.previewChannelMessage(name, { ...draft, sender: draft.sender.trim() }).then(
        (found) => { if (!stale) { setShown(found); setWrong(""); } },
        (failure: unknown) => { if (!stale) { setShown(undefined); setWrong(wordsOf(failure)); } },
      );
    }, SOON_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [asked, name, JSON.stringify(rules)]);
  return (
    <Part id="preview" title="Routing preview">
      <form class="form wide" aria-label="Route preview" onSubmit={(event) => event.preventDefault()}>
        <div class="row fields">
          <TextField label="From" mono value={draft.sender} onInput={(sender) => set({ sender })} hint="The sender ID on the platform." />
          <TextField label="Text" value={draft.text} onInput={(text) => set({ text })} />
        </div>
        <CheckField label="Direct message" checked={draft.direct} onChange={(direct) => set({ direct })} />
        <CheckField label="Mentions everyone" checked={draft.everyone} onChange={(everyone) => set({ everyone })} />
      </form>
      <Problem text={wrong} />
      <section class="foreseen" aria-label="Decision" aria-live="polite">{shown ? <Shown it={shown} /> : <p class="hint">Enter a sender and a text to see the decision.</p>}</section>
    </Part>
  );
}

function Shown({ it }: { it: Preview }): VNode {
  const { decision } = it;
  return (
    <>
      <p class="row"><Badge tone={decision.accepted ? "good" : "warn"}>{decision.accepted ? "Accepted" : "Rejected"}</Badge><span>{decision.sentence}</span></p>
      <ol class="plain-list" aria-label="Checks">
        {(decision.checks ?? []).map((each) => <li key={each.reason}><span aria-hidden="true">{each.passed ? "✓" : "✗"}</span><span class="unseen">{each.passed ? "passed" : "refused"}:</span> <code>{each.reason}</code>{each.found && <span class="hint breaks"> {visible(each.found)}</span>}</li>)}
      </ol>
      <p class="hint breaks">Acts as <span class="mono">{visible(it.acts_as || it.principal)}</span> ({it.standing}), in session <span class="mono">{visible(it.session_key)}</span>.</p>
    </>
  );
}
