// How kinds and states of candidates are said.
import type { Candidate } from "../types";

export const KINDS: readonly (readonly [Candidate["kind"], string])[] = [["fact", "Facts"], ["preference", "Preferences"], ["procedure", "Procedures"], ["policy", "Policies"]];

export const STATES: Record<NonNullable<Candidate["state"]>, readonly [string, string]> = {
  proposed: ["", "New"],
  suppressed: ["", "Low confidence"],
  pending_review: ["warn", "Needs review"],
  conflicted: ["bad", "Conflict"],
  accepted: ["", "Applying"],
  applied: ["good", "Applied"],
  rejected: ["", "Rejected"],
  rolled_back: ["", "Rolled back"],
};

export const RISKS: Record<string, string> = { low: "", medium: "warn", high: "bad", critical: "bad" };
