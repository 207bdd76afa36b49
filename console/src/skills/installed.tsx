// Installed skills: what each may do, whether the agent sees it, and ways to change that.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { withKey } from "../core/api";
import * as palyra from "../core/verbs";
import { visible, when } from "../core/words";
import { Output } from "../ui/code";
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
        {skill.state !== "trusted" && <Sure words="Trust…" question="What it says will count as yours. Read it first." yes="Trust it" tone="yes" disabled={busy} onYes={() => void become("trusted")} />}
        {skill.state !== "quarantined" && <button type="button" disabled={busy} onClick={() => void become("quarantined")}>Put in quarantine</button>}
        <button type="button" class="quiet small" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Less" : "What it is"}</button>
        <a class="button quiet small" href={withKey(palyra.exportSkillPath(name))} download={`${name}.zip`}>Download</a>
        <Sure words="Remove…" question={`Remove ${name}?`} yes="Remove it" disabled={busy} onYes={() => void attempt(async () => { await palyra.removeSkill(name); onChanged(); }, `${name} is removed.`)} />
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
      <h3>What it may do</h3>
      <ul>{shown.permissions.map((each) => <li key={each}>{visible(each)}</li>)}{!shown.permissions.length && <li>Nothing: it has instructions only.</li>}</ul>
      {(shown.tools ?? []).length > 0 && <><h3>Tools</h3><ul>{shown.tools!.map((each) => <li key={each.name}><span class="mono">skill:{name}/{each.name}</span> <bdi>{visible(each.description)}</bdi></li>)}</ul></>}
      {shown.instructions && <Output label="Instructions, as the agent reads them" text={visible(shown.instructions)} />}
      <p class="hint">Installed {when(shown.skill.record.installed_ms ?? 0)}; {Object.keys(shown.skill.record.files).length} files; <span class="mono breaks">{shown.skill.record.digest}</span></p>
    </div>
  );
}
