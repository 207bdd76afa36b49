// Small pieces that every page uses: labels of what was read, failures with a way on, a status for screen readers.
import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
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
      {label.integrity === "untrusted" && <Badge tone="warn" title={`From: ${(label.sources ?? []).join(", ")}`}>from outside</Badge>}
      {label.confidentiality === "private" && <Badge title={`From: ${(label.private_sources ?? []).join(", ")}`}>private</Badge>}
      {label.confidentiality === "secret" && <Badge tone="bad" title={`From: ${(label.private_sources ?? []).join(", ")}`}>secret</Badge>}
    </>
  );
}

export function PageHead({ title, children }: { title: string; children?: ComponentChildren }): VNode {
  return <header class="page-head"><h1>{title}</h1><div class="row">{children}</div></header>;
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
