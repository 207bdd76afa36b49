// Small pieces that every page uses: labels of what was read, failures with a way on, a status for screen readers.
import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { ago, when } from "../core/words";
import type { Label } from "../types";

/** Said by a screen reader; everyone else sees it where it happens. */
export const spoken = signal("");

export function Spoken(): VNode {
  return <div class="unseen" role="status" aria-live="polite">{spoken}</div>;
}

export function Problem({ text, children }: { text: string; children?: ComponentChildren }): VNode | null {
  return text ? <div class="problem" role="alert"><span>{text}</span>{children}</div> : null;
}

export function Badge({ tone = "", children, title }: { tone?: string; children: ComponentChildren; title?: string }): VNode {
  return <span class={`badge ${tone}`} title={title}>{children}</span>;
}

/** Where something came from, said only where that is worth knowing. */
export function Labels({ label }: { label: Label | undefined }): VNode | null {
  if (!label || (label.integrity !== "untrusted" && (label.confidentiality ?? "public") === "public")) return null;
  return (
    <>
      {label.integrity === "untrusted" && <Badge tone="warn" title={`From: ${(label.sources ?? []).join(", ")}`}>untrusted</Badge>}
      {label.confidentiality === "private" && <Badge tone="label" title={`From: ${(label.private_sources ?? []).join(", ")}`}>private</Badge>}
      {label.confidentiality === "secret" && <Badge tone="bad" title={`From: ${(label.private_sources ?? []).join(", ")}`}>secret</Badge>}
    </>
  );
}

export function PageHead({ title, beside, children }: { title: string; beside?: ComponentChildren; children?: ComponentChildren }): VNode {
  return <header class="page-head"><div class="row"><h1>{title}</h1>{beside}</div><div class="row">{children}</div></header>;
}

/** Lines where something will stand, while it is loaded. */
export function Skeleton({ label, lines = 4 }: { label: string; lines?: number }): VNode {
  return <div class="skeleton" role="status"><span class="unseen">{label}</span>{Array.from({ length: lines }, (_, at) => <i key={at} />)}</div>;
}

/** A text with the words that were searched for marked in it. */
export function marked(text: string, wanted: string): ComponentChildren[] {
  const words = wanted.split(/\s+/).filter((each) => each.length > 1).map((each) => each.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) return [text];
  return text.split(new RegExp(`(${words.join("|")})`, "gi")).map((piece, at) => (at % 2 ? <mark>{piece}</mark> : piece));
}

/** A moment as people say it, with the exact time on hover. */
export function Ago({ ms }: { ms: number }): VNode {
  return <time dateTime={new Date(ms).toISOString()} title={when(ms)}>{ago(ms)}</time>;
}

export function Empty({ children }: { children: ComponentChildren }): VNode {
  return <div class="empty">{children}</div>;
}

/** One of a few, as a row of buttons. */
export function Choice<T extends string>({ label, value, options, onChoose, disabled = false }: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChoose: (value: T) => void;
  disabled?: boolean;
}): VNode {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([each, words]) => (
        <button type="button" key={each} aria-pressed={each === value} disabled={disabled} onClick={() => onChoose(each)}>{words}</button>
      ))}
    </div>
  );
}
