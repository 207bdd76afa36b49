// Installed skills: what each may do, whether the agent sees it, and ways to change that.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { many, visible, when } from "../core/words";
import { Output } from "../ui/code";
import { Download } from "../ui/stored";
import { Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { STATES } from "./installing";
import type { Listed } from "../types";

export function Installed({ skill, onChanged }: { skill: Listed; onChanged: () => void }): VNode {
  const { name, description, version } = skill.record;
  const [open, setOpen] = useState(false);
  const { error, busy, attempt } = useAttempt();
  const become = (state: Listed["state"]) => attempt(async () => {
    await palyra.setSkillState(name, { state });
    onChanged();
  }, `${name} is ${STATES[state]![1]}.`);
  const [tone, words] = STATES[skill.state]!;
  return (
    <li class="card">
      <div class="row"><strong><bdi>{visible(name)}</bdi></strong>{version && <span class="hint">{visible(version)}</span>}<Badge tone={tone}>{words}</Badge>{skill.publisher && <Badge>by {visible(skill.publisher)}</Badge>}</div>
      <p><bdi>{visible(description)}</bdi></p>
      <Problem text={skill.problem ?? ""} />
      <Problem text={error} />
      <div class="row">
        {skill.state === "quarantined" && <button type="button" disabled={busy} onClick={() => void become("enabled")}>Enable</button>}
        {skill.state !== "trusted" && <Sure words="Trust…" question="Its text counts as yours. Read it first." yes="Trust" tone="yes" disabled={busy} onYes={() => void become("trusted")} />}
        {skill.state !== "quarantined" && <button type="button" disabled={busy} onClick={() => void become("quarantined")}>Quarantine</button>}
        <button type="button" class="quiet small" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide details" : "Details"}</button>
        <Download quiet="button quiet small" path={palyra.exportSkillPath(name)} name={`${name}.zip`}>Download</Download>
        <Sure words="Remove…" question={`Remove ${name}?`} yes="Remove" disabled={busy} onYes={() => void attempt(async () => { await palyra.removeSkill(name); onChanged(); }, `${name} removed.`)} />
      </div>
      {open && <Shown name={name} />}
    </li>
  );
}

function Shown({ name }: { name: string }): VNode {
  const found = useLoaded(() => palyra.getSkill(name), [name]);
  const shown = found.value;
  if (!shown) return found.error ? <Problem text={found.error} /> : <p role="status">Loading…</p>;
  return (
    <div>
      <h3>Permissions</h3>
      <ul>{shown.permissions.map((each) => <li key={each}>{visible(each)}</li>)}{!shown.permissions.length && <li>None: instructions only.</li>}</ul>
      {(shown.tools ?? []).length > 0 && <><h3>Tools</h3><ul>{shown.tools!.map((each) => <li key={each.name}><span class="mono">skill:{name}/{each.name}</span> <bdi>{visible(each.description)}</bdi></li>)}</ul></>}
      {shown.instructions && <Output label="Instructions" text={visible(shown.instructions)} />}
      <p class="hint">Installed {when(shown.skill.record.installed_ms ?? 0)}; {many(Object.keys(shown.skill.record.files).length, "file")}; <span class="mono breaks">{shown.skill.record.digest}</span></p>
    </div>
  );
}
