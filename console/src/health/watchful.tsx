// The watchdog: what it checks, when that counts as a fault, and what it does about it.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { lasting, size } from "../core/words";
import { useChanged } from "../ui/fresh";
import { useAttempt, useLoaded } from "../ui/page";
import { Choice, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import type { Watching } from "../types";

/** The daemon says all of them. */
type Healing = Required<Watching["settings"]>;
type Mode = Healing["mode"];

const MODES: readonly (readonly [Mode, string])[] = [["auto", "Auto-repair"], ["observe_only", "Notify only"], ["disabled", "Off"]];
const MEANS: Record<Mode, string> = {
  auto: "Palyra opens an incident for each fault, notifies you once and repairs what is safe to repair.",
  observe_only: "Palyra opens an incident for each fault and notifies you once. It repairs nothing until you ask.",
  disabled: "Palyra checks nothing. A stuck run stays stuck until you notice it.",
};

export function Watchful(): VNode {
  const found = useLoaded(() => palyra.watchdogStatus(), [], useChanged("settings"));
  const { error, busy, attempt } = useAttempt();
  const now = found.value?.settings as Healing | undefined;
  const choose = (mode: Mode) => void attempt(async () => {
    await palyra.changeConfig({ changes: { "healing.mode": mode } });
    found.again();
  }, "Saved.");
  return (
    <section class="box" aria-labelledby="part-watchdog"><h2 id="part-watchdog">Watchdog</h2>
      <Problem text={error || found.error} />
      {now && (
        <>
          <Choice label="Watchdog mode" value={now.mode} options={MODES} disabled={busy} onChoose={(mode) => { if (mode !== now.mode) choose(mode); }} />
          <p role="status">{MEANS[now.mode]}{now.mode !== "disabled" && ` It checks every ${lasting(now.every_ms)}.`}</p>
          <details>
            <summary>Checks and repairs</summary>
            <Table label="Remedies" rows={remedies(now)} keyOf={(row) => row[0]} columns={[
              { key: "what", words: "Check", draw: (row) => row[0] },
              { key: "when", words: "Fault", draw: (row) => row[1] },
              { key: "then", words: "Repair", draw: (row) => row[2] },
            ]} />
          </details>
        </>
      )}
    </section>
  );
}

function remedies(now: Healing): readonly (readonly [string, string, string])[] {
  const silent = lasting(now.run_ms);
  return [
    ["Run in a model call", `no output for ${lasting(Math.max(now.run_ms, now.call_ms))}`, "cancel the call and retry, with the next model if needed; then cancel the run"],
    ["Run in a tool", `${silent} past the tool's own limit`, "cancel the run"],
    ["Run without a worker", `no heartbeat for ${silent}`, "resume it from its last entry"],
    ["Background task", `no heartbeat for ${lasting(now.task_ms)}`, "requeue it"],
    ["Queue worker", "stopped", "restart it"],
    ["MCP server", `unreachable for ${lasting(now.helper_ms)}`, "restart it"],
    ["Browser", "its process died or its run ended", "close it"],
    ["Approval", `unanswered for ${lasting(now.approval_ms)}`, now.forgotten === "expire" ? "deny it and notify you" : "notify you"],
    ["Orphaned processes and files", "their daemon is gone", "stop and remove them"],
    ["Disk", `less than ${size(now.free_bytes)} free`, "remove partial copies, checkpoint the journal"],
    ["Journal log", `larger than ${size(now.log_bytes)}`, "checkpoint it into the journal"],
    ["Journal chain", "an entry does not follow from the one before it", "none: restoring a backup is your decision"],
  ];
}
