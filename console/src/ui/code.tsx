// Code and output: text in a frame of its own, with buttons that copy exactly that text and wrap its lines. What is long is folded.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { Diff } from "./diff";

export { Diff, turned } from "./diff";

const WORDS = new Set(
  ("and as assert async await break case catch class const continue def default del do elif else enum except export extends False finally fn for from func function if impl import in interface " +
    "is lambda let match mod mut new nil None not null or package pass private pub public raise return self static struct super switch this throw True true false try type typeof undefined use var void while with yield").split(" "),
);
const TOKEN = /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(\/\/[^\n]*|#[^\n]*|\/\*[\s\S]*?\*\/)|\b(\d[\d_.a-fxA-F]*)\b|\b([A-Za-z_]\w*)\b/g;
const LONGEST = 20_000;
const PLAIN = new Set(["", "text", "txt", "output", "console"]);
const PROSE = new Set(["md", "txt", "log", "csv", "rst", "tex"]);

/** The language of a file by its name; empty for prose, which has no words of a program. */
export function languageOf(path: string): string {
  const ending = /\.(\w{1,12})$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return PROSE.has(ending) ? "" : ending;
}

/** Strings, comments, numbers and the usual words, in any language; not a parser, and never slower than the text is long. */
export function coloured(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    const kind = found[1] ? "str" : found[2] ? "com" : found[3] ? "num" : WORDS.has(found[4] ?? "") ? "key" : "";
    if (!kind) continue;
    out.push(text.slice(end, found.index), <span class={`c-${kind}`}>{found[0]}</span>);
    end = found.index + found[0].length;
  }
  out.push(text.slice(end));
  return out;
}

export function Copy({ text, what = "Copy" }: { text: string | (() => string); what?: string }): VNode {
  const [said, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      say("Copied");
    } catch {
      say("Select it and press Ctrl+C");
    }
    setTimeout(() => say(""), 1500);
  };
  return (
    <button type="button" class="quiet small" onClick={(event) => { event.preventDefault(); void copy(); }}>
      <span aria-live="polite">{said || what}</span>
    </button>
  );
}

export function Code({ text, language, plain: uncoloured = false }: { text: string; language: string; plain?: boolean }): VNode {
  if (!uncoloured && (language === "diff" || language === "patch")) return <Diff text={text} />;
  const plain = uncoloured || PLAIN.has(language) || text.length > LONGEST;
  return <Framed label={language || "code"} text={text}>{(shown) => (plain ? shown : coloured(shown))}</Framed>;
}

const FOLDED_LINES = 40;
const FIRST_LINES = 24;
const LONGEST_OUTPUT = 60_000;

/** `all`: somebody decides about it, so nothing is folded or cut. */
export function Output({ text, label, all = false }: { text: string; label: string; all?: boolean }): VNode {
  return <Framed kind="output" label={label} text={text} all={all}>{(shown) => (shown.length > LONGEST_OUTPUT && !all ? shown.slice(0, LONGEST_OUTPUT) + "\n…" : shown)}</Framed>;
}

function Framed({ kind = "", label, text, all = false, children }: { kind?: string; label: string; text: string; all?: boolean; children: (shown: string) => ComponentChildren }): VNode {
  const [wrapped, wrap] = useState(false);
  const [whole, showWhole] = useState(false);
  const lines = text.split("\n");
  const folded = kind === "output" && !all && !whole && lines.length > FOLDED_LINES;
  const shown = folded ? lines.slice(0, FIRST_LINES).join("\n") : text;
  return (
    <div class={`code ${kind} ${wrapped ? "wrapped" : ""}`}>
      <div class="code-head"><span>{label}</span><button type="button" class="quiet small" aria-pressed={wrapped} onClick={() => wrap(!wrapped)}>Wrap</button><Copy text={text} /></div>
      <pre tabIndex={0}><code>{children(shown)}</code></pre>
      {folded && <button type="button" class="show-all small" onClick={() => showWhole(true)}>Show all {lines.length} lines</button>}
    </div>
  );
}
