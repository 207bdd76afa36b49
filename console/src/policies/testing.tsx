// Trying policies on the record: a preset, or a text that is not saved. Nothing changes.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { told } from "../core/streamed";
import { count } from "../core/words";
import { Progress } from "../ui/form";
import { Choice, Problem } from "../ui/parts";
import { PERIODS, sinceOf, Tested, type Period } from "./outcomes";
import type { Report } from "../types";

export interface Trial {
  name?: string;
  text?: string;
  preset?: string;
}

export function TryOut({ trial, words, disabled = false }: { trial: Trial; words: string; disabled?: boolean }): VNode {
  const [period, setPeriod] = useState<Period>("30");
  const [report, setReport] = useState<Report | undefined>();
  const [done, setDone] = useState(-1);
  const [error, setError] = useState("");
  const test = async () => {
    setError("");
    setReport(undefined);
    setDone(0);
    try {
      setReport(await told<{ calls: number }, Report>(palyra.testPolicyDraftEventsPath(), (progress) => setDone(progress.calls), { body: { ...trial, since_ms: sinceOf(period) } }));
    } catch (failure) {
      setError(wordsOf(failure));
    }
    setDone(-1);
  };
  return (
    <div class="tryout">
      <div class="row">
        <button type="button" disabled={disabled || done >= 0} onClick={() => void test()}>{words}</button>
        <Choice label="Period" value={period} options={PERIODS} onChoose={setPeriod} />
      </div>
      {done >= 0 && <Progress label="Calls replayed" done={done} words={`${count(done)} calls replayed`} />}
      <Problem text={error} />
      {report && <Tested report={report} />}
    </div>
  );
}
