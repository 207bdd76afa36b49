// How watchful the daemon is: what it looks at, when that counts as wrong, and whether it mends it by itself.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { lasting, size } from "../core/words";
import { useChanged } from "../ui/fresh";
import { Part, useAttempt, useLoaded } from "../ui/page";
import { Choice, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { Watching } from "../types";

/** The daemon says all of them. */
type Healing = Required<Watching["settings"]>;
type Mode = Healing["mode"];

const MODES: readonly (readonly [Mode, string])[] = [["auto", "Mend it"], ["observe_only", "Only tell me"], ["disabled", "Do not look"]];
const MEANS: Record<Mode, string> = {
  auto: "What is wrong becomes an incident, you are told once, and what is safe to mend is mended.",
  observe_only: "What is wrong becomes an incident and you are told once. Nothing is done about it before you say so.",
  disabled: "Nothing is looked at. A run that is stuck stays stuck until you see it.",
};

export function Watchful(): VNode {
  const found = useLoaded(() => palyra.watchdogStatus(), [], useChanged("settings"));
  const { error, busy, attempt } = useAttempt();
  const now = found.value?.settings as Healing | undefined;
  const choose = (mode: Mode) => void attempt(async () => {
    await palyra.changeConfig({ changes: { "healing.mode": mode } });
    found.again();
  }, "That is in force.");
  return (
    <Part id="watchful" title="When something is wrong">
      <Problem text={error || found.error} />
      {now && (
        <>
          <Choice label="When something is wrong" value={now.mode} options={MODES} disabled={busy} onChoose={(mode) => { if (mode !== now.mode) choose(mode); }} />
          <p role="status">{MEANS[now.mode]}{now.mode !== "disabled" && ` It looks every ${lasting(now.every_ms)}.`}</p>
          <details>
            <summary>What is looked at, and what is done about it</summary>
            <Table label="Remedies" rows={remedies(now)} keyOf={(row) => row[0]} columns={[
              { key: "what", words: "What", draw: (row) => row[0] },
              { key: "when", words: "When it is wrong", draw: (row) => row[1] },
              { key: "then", words: "What is done", draw: (row) => row[2] },
            ]} />
          </details>
        </>
      )}
    </Part>
  );
}

function remedies(now: Healing): readonly (readonly [string, string, string])[] {
  const silent = lasting(now.run_ms);
  return [
    ["A run that asks a model", `no word for ${lasting(Math.max(now.run_ms, now.call_ms))}`, "the call is broken off and asked again, of the next model if need be; then the run is cancelled"],
    ["A run in a tool", `the tool is not back ${silent} after its own limit`, "the run is cancelled"],
    ["A run that nobody works on", `no heartbeat for ${silent}`, "it is resumed where its tape ends"],
    ["A background task", `no heartbeat for ${lasting(now.task_ms)}`, "it is put back, as its kind promises"],
    ["The worker of the queue", "it has ended", "it is started"],
    ["An MCP server", `away for ${lasting(now.helper_ms)}`, "it is restarted"],
    ["A browser", "its process died, or its run is over", "it is closed"],
    ["An approval", `no answer for ${lasting(now.approval_ms)}`, now.forgotten === "expire" ? "it is denied, and you are told" : "you are told"],
    ["Processes and files left behind", "whose daemon is gone", "they are ended and removed"],
    ["The disk", `less than ${size(now.free_bytes)} free`, "unfinished copies are removed, the journal's log is folded"],
    ["The journal's log", `larger than ${size(now.log_bytes)}`, "it is folded into the journal"],
    ["The journal's chain", "an entry does not follow from the one before it", "nothing: going back to a backup is yours to decide"],
  ];
}
