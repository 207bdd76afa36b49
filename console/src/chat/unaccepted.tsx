// One line above a conversation if its folder has notes for agents that nobody has accepted. It is in nobody's way.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { lastEntry } from "../core/store";
import { useLoaded } from "../ui/page";

/** `of` says whose notes. `moment` is another one when something may have been written. */
export function Unaccepted({ of, moment }: { of: { session_id?: string; workspace?: string }; moment: string }): VNode | null {
  const changed = lastEntry.value?.kind === "admin.changed" ? lastEntry.value.position : 0;
  const found = useLoaded(() => palyra.listNotes(of), [JSON.stringify(of), moment, changed]);
  const waiting = found.value?.notes.filter((each) => each.state === "new" || each.state === "changed").map((each) => each.file) ?? [];
  if (!waiting.length) return null;
  const one = waiting.length === 1;
  const named = waiting.length > 3 ? `${waiting.slice(0, 3).join(", ")} and ${waiting.length - 3} more notes` : waiting.join(" and ");
  return (
    <p class="notice warn" role="note">
      <span>{named} {one ? "is" : "are"} not accepted yet: the agent does not follow {one ? "it" : "them"}.</span>
      <a href={href("skills", "notes")}>Review</a>
    </p>
  );
}
