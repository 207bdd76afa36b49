// A diff by file: line numbers, the words that changed, folding, and both sides beside each other where there is room.
import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { recall, remember } from "../core/remembered";
import { Copy, coloured, languageOf, Output } from "./code";

const MOST_LINES = 2000;
const WIDE = 720;

interface Line { kind: "add" | "del" | "same" | "gap"; text: string; before: number; after: number; mate?: Line }
interface FileDiff { path: string; was: string; lines: Line[]; plus: number; minus: number }

/** Files of a unified diff. Lines before the first header belong to a file without a name. */
export function filesOf(text: string): FileDiff[] {
  const files: FileDiff[] = [];
  let before = 1;
  let after = 1;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const file = (was: string, path: string) => files.push({ path, was, lines: [], plus: 0, minus: 0 });
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const next = lines[at + 1];
    if (line.startsWith("--- ") && next?.startsWith("+++ ")) {
      file(named(line), named(next));
      before = after = 1;
      at++;
      continue;
    }
    if (!files.length) file("", "");
    const into = files.at(-1)!;
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/.exec(line);
    if (hunk) {
      const [from, to] = [Number(hunk[1]), Number(hunk[2])];
      if (into.lines.length || from > 1) into.lines.push({ kind: "gap", text: hunk[3] || (from > before ? `${from - before} unchanged lines` : ""), before: 0, after: 0 });
      [before, after] = [from, to];
    } else if (line[0] === "+") {
      into.lines.push({ kind: "add", text: line.slice(1), before: 0, after: after++ });
      into.plus++;
    } else if (line[0] === "-") {
      into.lines.push({ kind: "del", text: line.slice(1), before: before++, after: 0 });
      into.minus++;
    } else if (line[0] === " ") into.lines.push({ kind: "same", text: line.slice(1), before: before++, after: after++ });
    else into.lines.push({ kind: "gap", text: line, before: 0, after: 0 });
  }
  for (const each of files) pair(each.lines);
  return files;
}

/** A header without its prefix and time. */
function named(line: string): string {
  const path = line.slice(4).split("\t")[0]!;
  return path === "/dev/null" ? "" : path.replace(/^[ab]\//, "");
}

/** Lines that replace each other: as many as were removed before as many that were added. */
function pair(lines: Line[]): void {
  for (let at = 0; at < lines.length; ) {
    const begin = at;
    while (lines[at]?.kind === "del") at++;
    const middle = at;
    while (lines[at]?.kind === "add") at++;
    for (let each = 0; each < Math.min(middle - begin, at - middle); each++) {
      lines[begin + each]!.mate = lines[middle + each]!;
      lines[middle + each]!.mate = lines[begin + each]!;
    }
    if (at === begin) at++;
  }
}

const WORDS = /\w+|\s+|[^\w\s]/g;

/** Where two lines differ: the part of `text` between what both begin and end with; none if they share too little. */
export function changed(text: string, other: string): [number, number] | undefined {
  const [a, b] = [text.match(WORDS) ?? [], other.match(WORDS) ?? []];
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  if ((head + tail) * 4 < Math.max(a.length, b.length)) return undefined;
  const from = a.slice(0, head).join("").length;
  const to = text.length - (tail ? a.slice(-tail).join("").length : 0);
  return from < to ? [from, to] : undefined;
}

function drawn(line: Line, plain: boolean): ComponentChildren {
  const show = (piece: string) => (plain ? piece : coloured(piece));
  const at = line.mate && changed(line.text, line.mate.text);
  if (!at) return show(line.text);
  return <>{show(line.text.slice(0, at[0]))}<mark>{line.text.slice(...at)}</mark>{show(line.text.slice(at[1]))}</>;
}

const layout = signal<"" | "unified" | "split">(recall("diff", ""));

/** `all`: somebody decides about it, so nothing is left out; a very long one is shown as plain text instead. */
export function Diff({ text, all = false }: { text: string; all?: boolean }): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set());
  const files = useMemo(() => filesOf(text), [text]);
  const total = files.reduce((sum, each) => sum + each.lines.length, 0);
  useEffect(() => {
    if (!box.current) return;
    const watcher = new ResizeObserver(([entry]) => setWide((entry?.contentRect.width ?? 0) >= WIDE));
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  if (all && total > MOST_LINES) return <Output text={text} label="changes" all />;
  const split = wide && layout.value !== "unified";
  // A file that is new or goes has nothing to stand beside.
  const twoSided = (file: FileDiff) => Boolean(file.was && file.path);
  const fold = (at: number) => {
    const next = new Set(folded);
    if (!next.delete(at)) next.add(at);
    setFolded(next);
  };
  const choose = () => {
    layout.value = split ? "unified" : "split";
    remember("diff", layout.value);
  };
  return (
    <div class="code diff" ref={box}>
      {files.map((file, at) => {
        const name = file.path || file.was || "changes";
        const shut = folded.has(at);
        return (
          <section key={`${at}${name}`} class={split && twoSided(file) ? "split" : ""} aria-label={`Changes in ${name}`}>
            <div class="file-head">
              <button type="button" class="quiet" aria-expanded={!shut} onClick={() => fold(at)}><svg class="sign fold" viewBox="0 0 24 24" aria-hidden="true"><path d="M9 6l6 6-6 6" /></svg><bdi>{name}</bdi></button>
              {!file.was && file.path && <span class="hint">new file</span>}{!file.path && file.was && <span class="hint">deleted</span>}
              <span class="numbers"><span class="plus">+{file.plus}</span><span class="minus">−{file.minus}</span></span>
              {at === 0 && <>{wide && files.some(twoSided) && <button type="button" class="quiet small" onClick={choose}>{split ? "Unified" : "Side by side"}</button>}<Copy text={text} /></>}
            </div>
            {!shut && <div class="lines" tabIndex={0} role="group" aria-label={`Lines of ${name}`}>{split && twoSided(file) ? <Split file={file} most={MOST_LINES} /> : <Unified file={file} most={MOST_LINES} />}</div>}
          </section>
        );
      })}
      {total > MOST_LINES && <p class="hint">Only the first {MOST_LINES} lines of each file are shown. Copy to see all.</p>}
    </div>
  );
}

function Unified({ file, most }: { file: FileDiff; most: number }): VNode {
  const plain = !languageOf(file.path || file.was);
  return (
    <table role="presentation"><tbody>{file.lines.slice(0, most).map((line, at) => line.kind === "gap"
      ? line.text && <tr key={at} class="gap"><td class="ln" colSpan={2}>⋯</td><td>{line.text}</td></tr>
      : <tr key={at} class={line.kind}><td class="ln">{line.before || ""}</td><td class="ln">{line.after || ""}</td><td class="text"><span class="sign-of">{line.kind === "add" ? "+" : line.kind === "del" ? "-" : " "}</span>{drawn(line, plain)}</td></tr>)}
    </tbody></table>
  );
}

function Split({ file, most }: { file: FileDiff; most: number }): VNode {
  const plain = !languageOf(file.path || file.was);
  const rows: (readonly [Line | undefined, Line | undefined])[] = [];
  for (const line of file.lines.slice(0, most)) {
    if (line.kind === "same" || line.kind === "gap") rows.push([line, line]);
    else if (line.kind === "del") rows.push([line, line.mate]);
    else if (!line.mate) rows.push([undefined, line]);
  }
  const side = (line: Line | undefined, left: boolean) => {
    const tone = line?.kind === "del" ? "del-side" : line?.kind === "add" ? "add-side" : "";
    return <><td class={`ln ${tone}`}>{line ? (left ? line.before : line.after) || "" : ""}</td><td class={`text ${tone}`}>{line && drawn(line, plain)}</td></>;
  };
  return (
    <table role="presentation"><colgroup><col class="ln" /><col /><col class="ln" /><col /></colgroup><tbody>{rows.map(([before, after], at) => before?.kind === "gap"
      ? before.text && <tr key={at} class="gap"><td class="ln">⋯</td><td colSpan={3}>{before.text}</td></tr>
      : <tr key={at}>{side(before, true)}{side(after, false)}</tr>)}
    </tbody></table>
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
