// The shipped sets of policies, by name, and what each lets happen.
import type { NewPreset } from "../types";

export const PRESETS: readonly (readonly [NewPreset["preset"], string, string])[] = [
  ["locked", "Locked", "Reads in the workspace only. Everything else is denied until you permit it."],
  ["default", "Default", "Reads freely in the workspace and asks before any change. Secrets, wide paths and MCP tools are denied until you permit them."],
  ["coding", "Coding", "Default, plus file changes in the workspace without approval. Changes can be undone."],
  ["research", "Research", "Default, plus web requests while nothing private or untrusted was read."],
];
