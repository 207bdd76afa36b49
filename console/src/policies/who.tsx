// Who can do what: every tool, in a few plain situations, as the policies in force decide it now.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { lastEntry } from "../core/store";
import { sentence, toolWords, visible } from "../core/words";
import { SelectField } from "../ui/form";
import { useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import { Grants } from "./grants";
import { TONES, WORDS } from "./outcomes";
import type { Cell, ToolRow } from "../types";

const ORIGINS = [["interactive", "attended"], ["scheduled", "scheduled"], ["api", "API"], ["child", "subagent"]] as const;

export function Who(): VNode {
  const [principal, setPrincipal] = useState("user:owner");
  const [origin, setOrigin] = useState<(typeof ORIGINS)[number][0]>("interactive");
  const [chosen, setChosen] = useState<ToolRow | undefined>();
  const changed = lastEntry.value?.kind === "admin.changed" ? lastEntry.value.position : 0;
  const found = useLoaded(() => palyra.whoCan({ principal, origin }), [principal, origin, changed]);
  const table = found.value;
  return (
    <>
      <Problem text={found.error} />
      <div class="row fields">
        <SelectField label="User" value={principal} onChoose={setPrincipal} options={(table?.known ?? ["user:owner"]).map((each) => [each, each === "user:owner" ? "you (user:owner)" : visible(each)] as const)} />
        <SelectField label="Origin" value={origin} onChoose={setOrigin} options={ORIGINS} />
      </div>
      {table && (
        <Table label="Permissions" rows={table.tools} keyOf={(each) => each.tool} sorted="tool" onOpen={setChosen}
          columns={[
            { key: "tool", words: "Tool", draw: (each) => <><strong>{toolWords(each.tool)}</strong>{toolWords(each.tool) !== each.tool && <><br /><span class="mono hint">{each.tool}</span></>}</>, by: (each) => each.tool },
            ...table.situations.map((situation, at) => ({ key: situation.id, words: sentence(situation.words), draw: (each: ToolRow) => <Said cell={each.cells[at]!} />, by: (each: ToolRow) => each.cells[at]!.word ?? "" })),
          ]} />
      )}
      {chosen && table && (
        <section class="form" aria-label={`Why: ${chosen.tool}`}>
          <div class="row"><strong>{toolWords(chosen.tool)}</strong><button type="button" class="quiet small" onClick={() => setChosen(undefined)}>Close</button></div>
          <dl class="facts">
            {table.situations.map((situation, at) => chosen.cells[at]!.word && <><dt>{sentence(situation.words)}</dt><dd><Said cell={chosen.cells[at]!} /> {visible(chosen.cells[at]!.reason ?? "")}{(chosen.cells[at]!.policies ?? []).length > 0 && <span class="hint"> ({chosen.cells[at]!.policies!.join(", ")})</span>}</dd></>)}
          </dl>
        </section>
      )}
      <p class="hint">Decisions for an ordinary call: one file, one command, one host. Session rules and grants are not included. Press Enter on a row to see why.</p>
      <Grants />
    </>
  );
}

function Said({ cell }: { cell: Cell }): VNode {
  return cell.word ? <Badge tone={TONES[cell.word] ?? ""}>{WORDS[cell.word]}</Badge> : <span class="hint">–</span>;
}
