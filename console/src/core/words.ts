// How numbers, times and names are said.
import { signal } from "@preact/signals";

export { visible } from "./visible";

// Time passes also when nothing else happens: what says how long ago something was is drawn anew, and nobody is asked.
const passing = signal(0);
setInterval(() => { if (!document.hidden) passing.value += 1; }, 20_000);

export function ago(ms: number, now = Date.now()): string {
  void passing.value;
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return day(ms);
}

/** How long until a moment that lies ahead. */
export function ahead(ms: number, now = Date.now()): string {
  void passing.value;
  const seconds = Math.round((ms - now) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `in ${Math.round(seconds / 60)} min`;
  if (seconds < 2 * 86400) return `in ${Math.round(seconds / 3600)} h`;
  return `in ${Math.round(seconds / 86400)} days`;
}

/** Nov 18; with the year where it is another one. */
export function day(ms: number, zone?: "UTC"): string {
  const date = new Date(ms);
  const year = date.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" as const };
  return date.toLocaleDateString("en-US", { day: "numeric", month: "short", ...year, ...(zone ? { timeZone: zone } : {}) });
}

/** 20:47:44, or 20:47. */
export function clock(ms: number, seconds = true): string {
  return new Date(ms).toLocaleTimeString("en-US", { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(seconds ? { second: "2-digit" } : {}) });
}

/** Nov 18, 20:47:44: the one way in which a moment is written. */
export function when(ms: number): string {
  return `${day(ms)}, ${clock(ms)}`;
}

export function lasting(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1).replace(".0", "")} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const [whole, rest] = minutes < 60 ? [`${minutes} min`, seconds % 60 && `${seconds % 60} s`] : [`${Math.floor(minutes / 60)} h`, minutes % 60 && `${minutes % 60} min`];
  return rest ? `${whole} ${rest}` : whole;
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} KB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** So many of something: 1 call, 2 calls. */
export function many(value: number, what: string): string {
  return `${count(value)} ${what}${value === 1 ? "" : "s"}`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function money(microusd: number): string {
  return microusd === 0 ? "$0" : `$${(microusd / 1_000_000).toFixed(microusd < 10_000 ? 4 : 2)}`;
}

const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text that somebody reads and does not decide about: only what turns text around for good becomes a mark. Marks that Arabic and Hebrew need stay. */
export function calm(text: string): string {
  return text.replace(TURNING, (found) => `⟨${found.codePointAt(0)!.toString(16).toUpperCase()}⟩`);
}

const SOURCES: Record<string, string> = {
  "fs.read": "read a file",
  "fs.write": "write a file",
  "fs.patch": "change files",
  "fs.list": "list a folder",
  "fs.search": "search files",
  "shell.run": "run a command",
  "shell.jobs": "look at running commands",
  "shell.stop": "stop a command",
  "http.fetch": "fetch from the web",
  "http.post": "send to the web",
  "browser.open": "open a web page",
  "browser.read": "read a web page",
  "browser.click": "click in a web page",
  "browser.type": "type into a web page",
  "browser.screenshot": "take a picture of a web page",
  "memory.search": "search memory",
  "memory.write": "remember something",
  "memory.forget": "forget something",
  "session.search": "search conversations",
  "schedule.create": "make a schedule",
  "schedule.list": "list schedules",
  "schedule.cancel": "cancel a schedule",
  "artifact.read": "read a stored result",
  "agent.spawn": "hand work to a subagent",
  "message.send": "send a message",
};

/** The end of a path: enough to recognise a folder by, short enough for a line. */
export function shortPath(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : path;
}

export function toolWords(tool: string): string {
  return SOURCES[tool] ?? tool;
}

export function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
