// The run of a firing, drawn when somebody asks for it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { RunPicture } from "../ui/waterfall";

export function FiringRun({ runId }: { runId: string }): VNode {
  const [open, setOpen] = useState(false);
  return <details onToggle={(event) => setOpen(event.currentTarget.open)}><summary>Show run</summary>{open && <RunPicture runId={runId} />}</details>;
}
