// How schedules, their firings and what they may do are said.
import { toolWords, visible } from "../core/words";
import type { Firing, Schedule, ShownSchedule, Subject } from "../types";

export const STATES: Record<NonNullable<Schedule["state"]>, readonly [string, string]> = { active: ["good", "active"], paused: ["warn", "paused"], done: ["", "over"] };

export const FIRINGS: Record<Firing["state"], readonly [string, string]> = {
  due: ["", "begins"], queued: ["", "waits its turn"], started: ["", "under way"], done: ["good", "done"], failed: ["bad", "failed"], cancelled: ["warn", "cancelled"], skipped: ["", "left out"], missed: ["warn", "missed"],
};

export const OVERLAPS = [["skip", "leave this time out"], ["queue", "wait for its end"], ["replace", "cancel the run before"]] as const;
export const MISSED = [["", "as is usual for it"], ["skip", "leave them out"], ["catch_up", "make up for the last three"]] as const;
export const ASKS = [["wait", "wait for an answer"], ["deny", "deny it and go on without"]] as const;
export const THEN = [["later", "once when they end"], ["skip", "not at all"]] as const;
export const SUBJECTS = [["tool", "whatever it is about"], ["program", "with the program"], ["command", "exactly the command"], ["path_prefix", "in the folder"], ["host", "with the site"]] as const;

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ON: Record<string, string> = { "*": "every day", "1-5": "on weekdays", "0,6": "at weekends", ...Object.fromEntries(DAYS.map((each, at) => [String(at), `every ${each}`])) };

/** When it fires, as one would say it; what cannot be said simply is said as the daemon does. */
export function whenWords({ schedule, when }: ShownSchedule): string {
  const { trigger } = schedule;
  const found = trigger.on === "cron" ? /^(\d{1,2}) (\d{1,2}) \* \* (\S+)$/.exec(trigger.expression) : null;
  const days = found && ON[found[3]!];
  return days ? `${days} at ${found[2]!.padStart(2, "0")}:${found[1]!.padStart(2, "0")} (${schedule.zone ?? "UTC"})` : when;
}

export function scopeWords(subject: Subject): string {
  const about = SUBJECTS.find(([kind]) => kind === subject.kind)?.[1] ?? subject.kind;
  return `${toolWords(subject.tool)}, ${about}${subject.value ? ` ${subject.value}` : ""}`;
}

export function saidOf<T extends string>(pairs: readonly (readonly [T, string])[], value: T): string {
  return pairs.find(([each]) => each === value)?.[1] ?? visible(value);
}
