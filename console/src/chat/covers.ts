// What a wider approval covers, in words.
import { toolWords } from "../core/words";
import type { Subject } from "../types";

export function covers(subject: Subject): string {
  switch (subject.kind) {
    case "path_prefix": return `${toolWords(subject.tool)} in ${subject.value}`;
    case "program": return `the program ${subject.value}`;
    case "command": return `exactly this command`;
    case "host": return `the site ${subject.value}`;
    case "recipient": return `messages to ${subject.value}`;
    case "arguments": return `${toolWords(subject.tool)} with ${(subject.value ?? "").split("\n").map(limitWords).join(", ")}`;
    default: return `every ${subject.tool} call`;
  }
}

/** One line of what a wider approval binds. */
function limitWords(line: string): string {
  const [, calls, period] = /^calls<=(\d+)\/(\w+)$/.exec(line) ?? [];
  if (calls) return `at most ${calls} ${calls === "1" ? "call" : "calls"} ${period === "session" ? "in this session" : period === "hour" ? "an hour" : `a ${period}`}`;
  const [, role, where] = /^([a-z]+)~(trusted|source)$/.exec(line) ?? [];
  return role ? `any ${role} ${where === "trusted" ? "known to you or a trusted source" : "found there"}` : line;
}
