// How schedules, their firings and what they may do are said.
import { toolWords, visible } from "../core/words";
import type { Firing, Schedule, ShownSchedule, Subject } from "../types";

export const STATES: Record<NonNullable<Schedule["state"]>, readonly [string, string]> = { active: ["good", "Active"], paused: ["warn", "Paused"], done: ["", "Finished"] };

export const FIRINGS: Record<Firing["state"], readonly [string, string]> = {
  due: ["", "Starting"], queued: ["", "Queued"], started: ["info", "Running"], done: ["good", "Done"], failed: ["bad", "Failed"], cancelled: ["warn", "Cancelled"], skipped: ["", "Skipped"], missed: ["warn", "Missed"],
};

export const OVERLAPS = [["skip", "skip this run"], ["queue", "queue"], ["replace", "cancel the earlier run"]] as const;
export const MISSED = [["", "default"], ["skip", "skip"], ["catch_up", "run the last three"]] as const;
export const ASKS = [["wait", "wait for approval"], ["deny", "deny and continue"]] as const;
export const THEN = [["later", "once after they end"], ["skip", "are skipped"]] as const;
export const SUBJECTS = [["tool", "every call"], ["program", "the program"], ["command", "this exact command"], ["path_prefix", "the folder"], ["host", "the site"]] as const;

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
