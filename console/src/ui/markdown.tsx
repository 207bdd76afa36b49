// Markdown as elements, never as HTML: whatever a model or a page writes can only become the few elements made here.
import type { ComponentChildren, JSX, VNode } from "preact";
import { memo } from "preact/compat";
import { useRef } from "preact/hooks";
import { calm } from "../core/words";
import { Code } from "./code";
import { laterPart } from "./page";

/** Both are loaded with the first text that has one. */
const Maths = laterPart<{ text: string; display: boolean }>(() => import("./maths").then((it) => it.Maths), ({ text }) => <code>{text}</code>);
const Diagram = laterPart<{ text: string }>(() => import("./diagram").then((it) => it.Diagram), ({ text }) => <Code text={text} language="mermaid" plain />);

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const LONGEST_NESTING = 8;

/** Text cut into pieces the size of a paragraph. What grows at its end is cut anew only behind the last cut. */
export class Pieces {
  readonly done: string[] = [];
  private text = "";
  private cut = 0;

  /** The pieces of a text; `open` is the last one, which may still grow, or "". */
  of(text: string): { done: readonly string[]; open: string } {
    if (!text.startsWith(this.text)) {
      this.done.length = 0;
      this.cut = 0;
    }
    this.text = text;
    let fence = "";
    let begin = this.cut;
    for (let at = this.cut; at < text.length; ) {
      const found = text.indexOf("\n", at);
      const end = found < 0 ? text.length : found;
      const line = text.slice(at, end);
      const mark = FENCE.exec(line)?.[1];
      if (fence) {
        if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = "";
      } else if (mark) fence = mark;
      else if (found >= 0 && !line.trim()) {
        const piece = text.slice(begin, at).trimEnd();
        if (piece) this.done.push(piece);
        begin = this.cut = end + 1;
      }
      at = end + 1;
    }
    return { done: this.done, open: text.slice(begin) };
  }
}

const Piece = memo(({ text }: { text: string }) => <>{blocks(text.split("\n"), 0, false)}</>);

/** `live`: more is to come. The last piece is then drawn plainly: colouring code anew with every word would be slow. */
export function Markdown({ text, live = false }: { text: string; live?: boolean }): VNode {
  const cutter = useRef<Pieces | undefined>(undefined);
  const { done, open } = (cutter.current ??= new Pieces()).of(calm(text));
  return (
    <div class="prose" dir="auto">
      {done.map((each, at) => <Piece key={at} text={each} />)}
      {open.trim() && (live ? <div key="open">{blocks(open.trimEnd().split("\n"), 0, true)}</div> : <Piece key={done.length} text={open.trimEnd()} />)}
    </div>
  );
}

function blocks(lines: string[], depth: number, live: boolean): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!;
    const take = (test: (line: string) => boolean): string[] => {
      const begin = at;
      while (at < lines.length && test(lines[at]!)) at++;
      return lines.slice(begin, at);
    };
    const fence = FENCE.exec(line);
    if (fence) {
      at++;
      const mark = fence[1]!;
      const body = take((each) => !(each.trim().startsWith(mark) && each.trim().replaceAll(mark[0]!, "") === ""));
      at++;
      out.push(fenced(body.join("\n"), fence[2] ?? "", live));
    } else if (FORMULA.test(line)) {
      const [open, close] = line.trimStart().startsWith("$$") ? ["$$", "$$"] : ["\\[", "\\]"];
      const whole: string[] = [];
      let rest = line.trim().slice(2);
      while (!rest.trimEnd().endsWith(close!) && at + 1 < lines.length) {
        whole.push(rest);
        rest = lines[++at]!;
      }
      at++;
      const closed = rest.trimEnd().endsWith(close!);
      whole.push(closed ? rest.trimEnd().slice(0, -2) : rest);
      const text = whole.join("\n").trim();
      out.push(closed && text && text.length <= LONGEST_FORMULA ? fenced(text, "math", live) : <p>{open}{whole.join("\n")}{closed ? close : ""}</p>);
    } else if (/^#{1,6}\s/.test(line)) {
      const level = line.indexOf(" ");
      // A page has its own headings; those of a text stand below them.
      const Tag = `h${Math.min(6, level + 2)}` as "h3";
      out.push(<Tag>{inline(line.slice(level).trim())}</Tag>);
      at++;
    } else if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) {
      out.push(<hr />);
      at++;
    } else if (/^ {0,3}>/.test(line) && depth < LONGEST_NESTING) {
      const inner = take((each) => /^ {0,3}>/.test(each)).map((each) => each.replace(/^ {0,3}> ?/, ""));
      out.push(<blockquote>{blocks(inner, depth + 1, live)}</blockquote>);
    } else if (ITEM.test(line) && depth < LONGEST_NESTING) {
      out.push(list(take((each) => ITEM.test(each) || /^\s+\S/.test(each) || !each.trim()), depth, live));
    } else if (line.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("|")) {
      out.push(table(take((each) => each.includes("|"))));
    } else if (NOTE.test(line)) {
      out.push(<div class="footnotes">{take((each) => NOTE.test(each)).map((each) => { const [, name, words] = NOTE.exec(each)!; return <p><sup>{name}</sup> {inline(words!)}</p>; })}</div>);
    } else if (!line.trim()) at++;
    else {
      const first = at++;
      while (at < lines.length && lines[at]!.trim() && !startsBlock(lines[at]!)) at++;
      out.push(<p>{inline(lines.slice(first, at).join("\n"))}</p>);
    }
  }
  return out;
}

const FORMULA = /^ {0,3}(\$\$|\\\[)/;
const LONGEST_FORMULA = 4000;

/** What is fenced off: a diagram, a formula, or code. What may still grow is shown as it is written. */
function fenced(text: string, language: string, live: boolean): VNode {
  if (!live && language === "mermaid") return <Diagram text={text} />;
  if (!live && language === "math" && text.length <= LONGEST_FORMULA) return <Maths text={text} display />;
  return <Code text={text} language={language} plain={live} />;
}

const NOTE = /^\[\^([\w-]{1,20})\]:\s+(.*)$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;

function startsBlock(line: string): boolean {
  return FENCE.test(line) || FORMULA.test(line) || /^#{1,6}\s/.test(line) || ITEM.test(line) || /^ {0,3}>/.test(line);
}

function list(lines: string[], depth: number, live: boolean): VNode {
  const first = ITEM.exec(lines[0]!)!;
  const indent = first[1]!.length;
  const items: string[][] = [];
  for (const line of lines) {
    const found = ITEM.exec(line);
    if (found && found[1]!.length <= indent) items.push([found[3]!]);
    else items.at(-1)!.push(line.slice(Math.min(indent + 2, line.length - line.trimStart().length)));
  }
  const children = items.map((item) => {
    const task = /^\[([ xX])\]\s+(.*)$/.exec(item[0]!);
    if (task) item[0] = task[2]!;
    const inside = item.length === 1 ? inline(item[0]!) : blocks(item, depth + 1, live);
    if (!task) return <li>{inside}</li>;
    const done = task[1] !== " ";
    return <li class="task"><span class={done ? "box done" : "box"} role="img" aria-label={done ? "done" : "not done"}>{done ? "✓" : ""}</span>{inside}</li>;
  });
  return /\d/.test(first[2]!) ? <ol start={parseInt(first[2]!, 10)}>{children}</ol> : <ul>{children}</ul>;
}

function table(lines: string[]): VNode {
  const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split("|").map((each) => each.trim());
  const [head, ruler, ...rows] = lines;
  const sides = cells(ruler ?? "").map((each) => (/^:-+:$/.test(each) ? "a-center" : /^-+:$/.test(each) ? "a-end" : undefined));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead><tr>{cells(head!).map((each, at) => <th class={sides[at]}>{inline(each)}</th>)}</tr></thead>
        <tbody>{rows.map((row) => <tr>{cells(row).map((each, at) => <td class={sides[at]}>{inline(each)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

const INLINE =
  /(?:\$(?=[^\s$])((?:\\[\s\S]|[^$\\\n]){1,1000}?)(?<=[^\s\\])\$(?![\d$])|\\\(([^\n]{1,1000}?)\\\))|\[\^([\w-]{1,20})\]|(`{1,8})([\s\S]{0,2000}?[^`])\4(?!`)|!?\[([^\]\n]{0,500})\]\(\s*<?([^\s()<>]{1,2000}(?:\([^\s()<>]*\))?)>?[^)\n]{0,200}\)|\*\*(?=\S)([\s\S]{1,2000}?\S)\*\*|~~(?=\S)([\s\S]{1,2000}?\S)~~|(?<![\w*])\*(?=[^\s*])([^*\n]{0,1000}?[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_\n]{0,1000}?[^\s_])_(?![\w_])|\bhttps?:\/\/[^\s<>"')\]]{1,2000}[^\s<>"')\].,;:!?]/g;

function inline(text: string, depth = 0): ComponentChildren[] {
  if (depth > LONGEST_NESTING) return [text];
  const out: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > end) out.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    const [whole, dollars, brackets, note, , code, label, target, strong, struck, starred, lined] = found;
    if (dollars ?? brackets) out.push(<Maths text={(dollars ?? brackets)!} display={false} />);
    else if (note !== undefined) out.push(<sup>{note}</sup>);
    else if (code !== undefined) out.push(<code>{code.trim() || code}</code>);
    else if (target !== undefined) out.push(<Link target={target} words={label ?? ""}>{label ? inline(label, depth + 1) : target}</Link>);
    else if (strong !== undefined) out.push(<strong>{inline(strong, depth + 1)}</strong>);
    else if (struck !== undefined) out.push(<s>{inline(struck, depth + 1)}</s>);
    else if (starred ?? lined) out.push(<em>{inline((starred ?? lined)!, depth + 1)}</em>);
    else out.push(<Link target={whole} words="">{whole}</Link>);
  }
  if (end < text.length) out.push(text.slice(end));
  return out;
}

const LOOKS_LIKE_A_SITE = /^\s*(?:https?:\/\/)?([\w-]+(?:\.[\w-]+)+)/i;

function siteOf(target: string): string {
  try {
    return new URL(target).host;
  } catch {
    return "";
  }
}

/** Only addresses of the web and of mail lead anywhere, and words that name another site than they lead to are put right. Images are links: nothing is loaded. */
function Link({ target, words, children }: { target: string; words: string; children: ComponentChildren }): JSX.Element {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return <span class="dead-link">{children} ({target})</span>;
  const named = LOOKS_LIKE_A_SITE.exec(words)?.[1]?.toLowerCase();
  const site = siteOf(target);
  return (
    <><a href={target} target="_blank" rel="noopener noreferrer" title={target}>{children}</a>{named && site && named !== site ? <span class="dead-link"> (leads to {site})</span> : null}</>
  );
}
