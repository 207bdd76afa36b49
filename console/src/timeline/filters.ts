// What of a session is shown: by kind, tool, decision and words.
import type { Marks } from "../core/address";
import type { Span } from "../ui/waterfall/spans";
import { kindOf, type Outline } from "./outline";

export const KINDS = [["", "All kinds"], ["message", "Messages"], ["prompt", "Prompts"], ["model", "Model calls"], ["tool", "Tool calls"], ["wait", "Waiting"], ["error", "Errors"], ["other", "Other"]] as const;
export const DECISIONS = [["", "All decisions"], ["allowed", "Allowed"], ["approved", "Approved"], ["denied", "Denied"], ["expired", "Expired"], ["pending", "Needs approval"]] as const;

export interface Filter {
  kind: string;
  tool: string;
  decision: string;
  text: string;
}

export function filterOf({ kind = "", tool = "", decision = "", text = "" }: Marks): Filter {
  return { kind, tool, decision, text };
}

export function filters({ kind, tool, decision, text }: Filter): boolean {
  return Boolean(kind || tool || decision || text.trim());
}

/** The numbers of the entries that a filter lets through; nothing where it lets all of them. */
export function entriesThrough(outline: Outline, filter: Filter): number[] | undefined {
  if (!filters(filter)) return undefined;
  const words = filter.text.trim().toLowerCase();
  const { seqs, names, tools, texts } = outline.lines;
  return seqs.filter((_, at) => (!filter.kind || kindOf(names[at]!) === filter.kind) && (!filter.tool || tools[at] === filter.tool) && (!filter.decision || outline.decisionAt(at) === filter.decision) && (!words || texts[at]!.includes(words) || names[at]!.includes(words)));
}

/** Says of a step whether a filter lets it through; nothing where it lets all of them. */
export function spanFilter(filter: Filter, seqs: readonly number[] | undefined): ((span: Span) => boolean) | undefined {
  if (!seqs) return undefined;
  const words = filter.text.trim().toLowerCase();
  const found = words ? new Set(seqs) : undefined;
  return (span) => (!filter.kind || span.tone === filter.kind) && (!filter.tool || span.tool === filter.tool) && (!filter.decision || span.decision === filter.decision)
    && (!found || found.has(span.seq) || span.label.toLowerCase().includes(words) || span.gist.toLowerCase().includes(words));
}
