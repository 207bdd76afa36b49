// Code, diffs and output: text in a frame of its own, with a button that copies exactly that text.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";

const WORDS = new Set(
  ("and as assert async await break case catch class const continue def default del do elif else enum except export extends False finally fn for from func function if impl import in interface " +
    "is lambda let match mod mut new nil None not null or package pass private pub public raise return self static struct super switch this throw True true false try type typeof undefined use var void while with yield").split(" "),
);
const TOKEN = /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(\/\/[^\n]*|#[^\n]*|\/\*[\s\S]*?\*\/)|\b(\d[\d_.a-fxA-F]*)\b|\b([A-Za-z_]\w*)\b/g;
const LONGEST = 20_000;
const PLAIN = new Set(["", "text", "txt", "output", "console"]);

/** Strings, comments, numbers and the usual words, in any language; not a parser, and never slower than the text is long. */
function coloured(text: string): ComponentChildren[] {
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
    <button type="button" class="quiet small" onClick={() => void copy()}>
      <span aria-live="polite">{said || what}</span>
    </button>
  );
}

export function Code({ text, language, plain: uncoloured = false }: { text: string; language: string; plain?: boolean }): VNode {
  if (!uncoloured && (language === "diff" || language === "patch")) return <Diff text={text} />;
  const plain = uncoloured || PLAIN.has(language) || text.length > LONGEST;
  return (
    <div class="code">
      <div class="code-head"><span>{language || "code"}</span><Copy text={text} /></div>
      <pre tabIndex={0}><code>{plain ? text : coloured(text)}</code></pre>
    </div>
  );
}

const MOST_LINES = 2000;

/** `all`: somebody decides about it, so nothing is left out; what is very long loses its colours instead. */
export function Diff({ text, all = false }: { text: string; all?: boolean }): VNode {
  const lines = text.split("\n");
  if (all && lines.length > MOST_LINES) return <Output text={text} label="what changes" all />;
  const shown = lines.slice(0, MOST_LINES);
  const kind = (line: string) =>
    line.startsWith("+++") || line.startsWith("---") ? "file" : line.startsWith("@@") ? "hunk" : line[0] === "+" ? "add" : line[0] === "-" ? "del" : "";
  return (
    <div class="code diff">
      <div class="code-head"><span>what changes</span><Copy text={text} /></div>
      <pre tabIndex={0}><code>{shown.map((line) => <span class={`line ${kind(line)}`}>{line + "\n"}</span>)}</code></pre>
      {lines.length > MOST_LINES && <p class="hint">{lines.length - MOST_LINES} more lines: copy to see all.</p>}
    </div>
  );
}

/** A diff the other way round: what an undo would do, turned, is what was done. */
export function turned(diff: string): string {
  const out: string[] = [];
  let less: string[] = [];
  let more: string[] = [];
  const settle = () => {
    out.push(...less, ...more);
    less = [];
    more = [];
  };
  const lines = diff.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const hunk = /^@@ -(\S+) \+(\S+) @@(.*)$/.exec(line);
    if (line.startsWith("--- ") && lines[at + 1]?.startsWith("+++ ")) {
      settle();
      out.push(`--- ${lines[at + 1]!.slice(4)}`, `+++ ${line.slice(4)}`);
      at++;
    } else if (hunk) {
      settle();
      out.push(`@@ -${hunk[2]} +${hunk[1]} @@${hunk[3]}`);
    } else if (line[0] === "+") less.push(`-${line.slice(1)}`);
    else if (line[0] === "-") more.push(`+${line.slice(1)}`);
    else {
      settle();
      out.push(line);
    }
  }
  settle();
  return out.join("\n");
}

export function Output({ text, label, all = false }: { text: string; label: string; all?: boolean }): VNode {
  return (
    <div class="code output">
      <div class="code-head"><span>{label}</span><Copy text={text} /></div>
      <pre tabIndex={0}><code>{text.length > 60_000 && !all ? text.slice(0, 60_000) + "\n…" : text}</code></pre>
    </div>
  );
}
