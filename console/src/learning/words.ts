// How kinds and states of candidates are said.
import type { Candidate } from "../types";

export const KINDS: readonly (readonly [Candidate["kind"], string])[] = [["fact", "Facts"], ["preference", "Preferences"], ["procedure", "Procedures"], ["policy", "Policies"]];

export const STATES: Record<NonNullable<Candidate["state"]>, readonly [string, string]> = {
  proposed: ["", "just found"],
  suppressed: ["", "not sure enough to ask"],
  pending_review: ["warn", "waits for you"],
  conflicted: ["bad", "contradicts what is remembered"],
  accepted: ["", "accepted, being done"],
  applied: ["good", "applied"],
  rejected: ["", "rejected"],
  rolled_back: ["", "rolled back"],
};

export const RISKS: Record<string, string> = { low: "", medium: "warn", high: "bad", critical: "bad" };
