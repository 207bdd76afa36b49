// What led to something, as a tree: each step says what it was and who made it, and leads to its entry.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { ago, money, visible, when } from "../core/words";
import type { Cause } from "../types";
import { useLoaded } from "./page";
import { Badge, Problem } from "./parts";
import { says } from "./says";

import "./causes.css";

const WORDS: Record<Cause["role"], readonly [string, string?]> = {
  effect: ["Effect"], undo: ["Undone", "warn"], reply: ["Sent"], cost: ["Cost"], answer: ["End of run"], attempt: ["Attempt"], decision: ["Policy"], grant: ["Granted by", "good"],
  approval: ["Answered by", "good"], request: ["Question"], call: ["Tool call"], model: ["Model"], route: ["Why this model"], prompt: ["Prompt"], memory: ["Memory"], result: ["Model read"],
  input: ["Input"], message: ["Chat message"], run: ["Run"], subagent: ["Subagent of"], fork: ["Fork of"], schedule: ["Schedule"], notice: ["Notice"], entry: ["Entry"],
};
/** Steps that somebody took; the others were made for whoever the run works for. */
const PERSONAL = new Set<Cause["role"]>(["undo", "approval", "grant", "input", "message", "schedule", "entry"]);
/** Roles whose names say something that their text does not. */
const NAMED = new Set<Cause["role"]>(["decision", "model", "prompt"]);

interface Shown {
  /** The tape that is open beside it, and how to choose one of its entries. */
  tape?: string;
  choose?: (seq: number) => void;
}

/** The causes of what `about` names. `limit`: so many changes of a file. */
export function Causes({ about, limit = 1, inner = false, onMore, ...shown }: { about: string; limit?: number; inner?: boolean; onMore?: () => void } & Shown): VNode {
  const found = useLoaded(() => palyra.why({ about, limit }), [about, limit]);
  const answer = found.value;
  if (!answer) return <><Problem text={found.error} />{!found.error && <p role="status">Loading…</p>}</>;
  const trees = inner ? answer.found.flatMap((each) => each.causes ?? []) : answer.found;
  return (
    <>
      <Problem text={found.error} />
      {trees.length ? <ul class="causes" aria-label="Causes">{trees.map((each, at) => <Step key={at} cause={each} {...shown} />)}</ul> : <p class="hint">A person did this, outside of a run.</p>}
      {answer.more && onMore && <button type="button" class="small" onClick={onMore}>Show older changes</button>}
    </>
  );
}

function Step({ cause, ...shown }: { cause: Cause } & Shown): VNode {
  const [words, tone] = WORDS[cause.role];
  const text = visible(cause.text);
  return (
    <li>
      <div class="cause">
        <Badge tone={tone ?? ""}>{words}</Badge>
        <span class="breaks">{cause.by && PERSONAL.has(cause.role) && <><strong><bdi>{visible(cause.by)}</bdi></strong> </>}<bdi>{cause.role === "input" ? `“${text}”` : text}</bdi>{NAMED.has(cause.role) && (cause.names?.length ?? 0) > 0 && <> <code class="breaks">{cause.names!.map(visible).join(", ")}</code></>}{cause.cost_microusd ? ` ${money(cause.cost_microusd)}` : ""}</span>
        {cause.time_ms ? <span class="hint" title={when(cause.time_ms)}>{ago(cause.time_ms)}</span> : null}
        <Way cause={cause} {...shown} />
      </div>
      {(cause.causes?.length ?? 0) > 0 && <ul>{cause.causes!.map((each, at) => <Step key={at} cause={each} {...shown} />)}</ul>}
    </li>
  );
}

/** The way to the entry of a step: in the tape beside, or to another one. The daemon's own tape has no page. */
function Way({ cause, tape, choose }: { cause: Cause } & Shown): VNode | null {
  if (!cause.seq || !cause.tape || cause.tape.includes(":")) return null;
  const words = `${says(cause.kind ?? "")} · ${cause.seq}`;
  if (cause.tape === tape && choose) return <button type="button" class="link" onClick={() => choose(cause.seq!)}>{words}</button>;
  return <a href={href("timeline", cause.tape, String(cause.seq))}>{words}</a>;
}
