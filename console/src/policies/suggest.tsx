// What the record suggests: permits that would have spared questions, and what a second set of policies would have decided.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { go } from "../core/router";
import { count, toolWords, visible } from "../core/words";
import { Code } from "../ui/code";
import { useLoaded } from "../ui/page";
import { Choice, Empty, Problem } from "../ui/parts";
import { takeOver } from "./files";
import { Outcomes, PERIODS, sinceOf, type Period } from "./outcomes";

const FILE = "suggested.cedar";

export function Suggest(): VNode {
  const [period, setPeriod] = useState<Period>("30");
  const [error, setError] = useState("");
  const found = useLoaded(() => palyra.suggestPolicy({ since_ms: sinceOf(period) }), [period]);
  const take = (text: string) => takeOver(FILE, text).then(() => go("policies", "files"), (failure: unknown) => setError(wordsOf(failure)));
  const value = found.value;
  return (
    <>
      <p>Permits that would have covered what you allowed, each as narrow as what it covers. Nothing that you denied is ever covered.</p>
      <Choice label="Answers of" value={period} options={PERIODS} onChoose={setPeriod} />
      <Problem text={found.error || error} />
      {value && !value.permits.length && <Empty><p>{value.approved ? "What you allowed has nothing in common that a narrow permit could say." : "Nothing was allowed in this time, so there is nothing to suggest."}</p></Empty>}
      {value && value.permits.length > 0 && (
        <>
          <p role="status">With these, {count(value.passing)} of the {count(value.approved)} calls you allowed would not have asked. {count(value.denied)} were denied, and stay so.</p>
          <div class="row"><button type="button" class="main" onClick={() => void take(value.cedar)}>Take all over</button><span class="hint">opens them in the editor; nothing is in force until you save</span></div>
          <ul class="history">
            {value.permits.map((each) => (
              <li key={each.id}>
                <p><strong>{toolWords(each.tool)}</strong> <bdi>{visible(each.what)}</bdi>, for {visible(each.principal)}: covers {count(each.covers)}</p>
                <details><summary>As a policy</summary><Code text={each.cedar} language="cedar" /></details>
                {each.kept_narrow_by.length > 0 && <p class="hint">Not wider, because you denied: {visible(each.kept_narrow_by.join(", "))}</p>}
                <button type="button" class="small" onClick={() => void take(each.cedar)}>Take this over</button>
              </li>
            ))}
          </ul>
        </>
      )}
      {value && value.left.length > 0 && <details><summary>{count(value.left.length)} would still ask</summary><ul class="plain-list">{value.left.map((each) => <li key={each.call_id}>{toolWords(each.tool)} <bdi>{visible(each.about)}</bdi>: {visible(each.why)}</li>)}</ul></details>}
    </>
  );
}

export function Shadow(): VNode {
  const [period, setPeriod] = useState<Period>("30");
  const found = useLoaded(() => palyra.shadowPolicy({ since_ms: sinceOf(period) }), [period]);
  const value = found.value;
  return (
    <>
      <p>A second set of policies can be asked beside the one in force, for a trial. What it would have decided is recorded and never enforced.</p>
      <Problem text={found.error} />
      {value && !value.named && !value.calls && <Empty><p>There is no second set. Name a preset or a folder: <code>palyra config set policy.shadow locked</code>, then start Palyra again.</p></Empty>}
      {value && (value.named || value.calls > 0) && (
        <>
          <p>{value.named ? <>On trial: <strong>{visible(value.named)}</strong>, version <span class="mono">{value.version}</span></> : "No trial at the moment; these are earlier ones."}</p>
          <Choice label="Calls of" value={period} options={PERIODS} onChoose={setPeriod} />
          <Outcomes calls={value.calls} same={value.same} denied={value.denied} asked={value.asked} allowed={value.allowed} />
        </>
      )}
    </>
  );
}
