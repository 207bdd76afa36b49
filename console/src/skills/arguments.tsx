// What the arguments of an MCP server's tool are for: read, and changed before or after it is accepted.
import type { VNode } from "preact";
import { visible } from "../core/words";
import type { ArgumentUse, ToolUse } from "../types";

const ROLES: readonly ArgumentUse["role"][] = ["recipient", "account", "amount", "url", "host", "path", "command", "target", "when", "content", "other"];
const FLAGS = [["reads_only", "Only reads"], ["high_impact", "High impact: pays, deletes, shares, publishes or speaks to others"], ["trusted_results", "Its results are yours, like an address book"]] as const;

export function ArgumentRoles({ tool, use, disabled, onChange }: { tool: string; use: ToolUse; disabled: boolean; onChange: (use: ToolUse) => void }): VNode {
  const listed = use.arguments ?? [];
  const change = (name: string, role: string) =>
    onChange({ ...use, arguments: listed.map((each) => (each.name === name ? { name, role: role as ArgumentUse["role"] } : each)) });
  return (
    <fieldset>
      <legend>Arguments of {visible(tool)}</legend>
      {listed.map((each) => (
        <label key={each.name} class="row">
          <span class="mono">{visible(each.name)}</span>
          <select disabled={disabled} value={each.role} onChange={(event) => change(each.name, event.currentTarget.value)}>
            {ROLES.map((role) => <option key={role} value={role}>{role}</option>)}
          </select>
        </label>
      ))}
      {FLAGS.map(([flag, words]) => (
        <label key={flag} class="row">
          <input type="checkbox" disabled={disabled} checked={use[flag] ?? flag === "high_impact"} onChange={(event) => onChange({ ...use, [flag]: event.currentTarget.checked })} />
          {words}
        </label>
      ))}
    </fieldset>
  );
}
