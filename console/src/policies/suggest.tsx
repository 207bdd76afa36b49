// What the record suggests: permits that would have spared questions, and what a second set of policies would have decided.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { go } from "../core/router";
import { count, toolWords, visible } from "../core/words";
import { Code } from "../ui/code";
import { TextField } from "../ui/form";
import { useAttempt, useLoaded } from "../ui/page";
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
      <p>Narrow permits that would have covered calls you approved. They never cover a call you denied.</p>
      <Choice label="Period" value={period} options={PERIODS} onChoose={setPeriod} />
      <Problem text={found.error || error} />
      {value && !value.permits.length && <Empty><p>{value.approved ? "The calls you approved have nothing in common that a narrow permit could cover." : "You approved no calls in this period."}</p></Empty>}
      {value && value.permits.length > 0 && (
        <>
          <p role="status">With these, {count(value.passing)} of the {count(value.approved)} approved calls would not have asked. {count(value.denied)} were denied and stay denied.</p>
          <div class="row"><button type="button" class="main" onClick={() => void take(value.cedar)}>Use all</button><span class="hint">Opens them in the editor; nothing is active until you save.</span></div>
          <ul class="history">
            {value.permits.map((each) => (
              <li key={each.id}>
                <p><strong>{toolWords(each.tool)}</strong> <bdi>{visible(each.what)}</bdi>, for {visible(each.principal)}: covers {count(each.covers)}</p>
                <details><summary>Show policy</summary><Code text={each.cedar} language="cedar" /></details>
                {each.kept_narrow_by.length > 0 && <p class="hint">Kept narrow because you denied: {visible(each.kept_narrow_by.join(", "))}</p>}
                <button type="button" class="small" onClick={() => void take(each.cedar)}>Use this</button>
              </li>
            ))}
          </ul>
        </>
      )}
      {value && value.left.length > 0 && <details><summary>{count(value.left.length)} still ask</summary><ul class="plain-list">{value.left.map((each) => <li key={each.call_id}>{toolWords(each.tool)} <bdi>{visible(each.about)}</bdi>: {visible(each.why)}</li>)}</ul></details>}
    </>
  );
}

export function Shadow(): VNode {
  const [period, setPeriod] = useState<Period>("30");
  const found = useLoaded(() => palyra.shadowPolicy({ since_ms: sinceOf(period) }), [period]);
  const value = found.value;
  return (
    <>
      <p>A shadow policy runs beside the active one. Its decisions are recorded and never enforced.</p>
      <Problem text={found.error} />
      {value && <ChooseShadow key={value.named} named={value.named} onChanged={found.again} />}
      {value && !value.named && !value.calls && <Empty><p>No shadow policy configured. Choose a preset or a folder above.</p></Empty>}
      {value && (value.named || value.calls > 0) && (
        <>
          <p>{value.named ? <>Shadow policy: <strong>{visible(value.named)}</strong>, version <span class="mono">{value.version.slice(0, 16)}</span></> : "No shadow policy now; these are earlier decisions."}</p>
          <Choice label="Period" value={period} options={PERIODS} onChoose={setPeriod} />
          <Outcomes calls={value.calls} same={value.same} denied={value.denied} asked={value.asked} allowed={value.allowed} />
        </>
      )}
    </>
  );
}

const PRESETS = ["locked", "default", "coding", "research"] as const;

/** Which policies are tried beside those in force. In use at once. */
function ChooseShadow({ named, onChanged }: { named: string; onChanged: () => void }): VNode {
  const [folder, setFolder] = useState("");
  const { error, busy, attempt } = useAttempt();
  const use = (wanted: string) => void attempt(async () => { await palyra.useShadowPolicy({ named: wanted }); onChanged(); }, wanted ? "Shadow policy started." : "Shadow policy stopped.");
  return (
    <form class="row fields" aria-label="Choose a shadow policy" onSubmit={(event) => { event.preventDefault(); if (folder.trim()) use(folder.trim()); }}>
      <div class="row" role="group" aria-label="Presets">{PRESETS.map((each) => <button type="button" key={each} disabled={busy} aria-pressed={named.startsWith(`preset ${each}`)} onClick={() => use(each)}>Try {each}</button>)}</div>
      <TextField label="Or a folder of policies" mono value={folder} onInput={setFolder} placeholder="/home/me/policies-next" />
      <button type="submit" disabled={busy || !folder.trim()}>Try folder</button>
      {named && <button type="button" class="no" disabled={busy} onClick={() => use("")}>Stop shadow policy</button>}
      <Problem text={error} />
    </form>
  );
}
