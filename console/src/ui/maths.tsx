// Formulas as MathML that the browser draws. The tree is made into elements one by one: only names of MathML pass, and nothing is parsed as HTML.
import { h, type ComponentChildren, type VNode } from "preact";
import { useMemo } from "preact/hooks";
import temml from "temml";

interface Node { type?: string; text?: string; attributes?: Record<string, string>; style?: Record<string, string>; classes?: string[]; children?: Node[] }

const ELEMENTS = new Set("math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd none menclose semantics".split(" "));
const ATTRIBUTES = new Set("display displaystyle scriptlevel mathvariant stretchy fence separator lspace rspace minsize maxsize symmetric accent accentunder largeop movablelimits form width height depth voffset linethickness columnalign rowalign columnspan rowspan columnlines rowlines columnspacing rowspacing notation dir".split(" "));
const STYLES = /^(color|backgroundColor|fontSize|fontWeight|fontStyle|textAlign|padding\w*|margin\w*|border\w*|width|height|verticalAlign|mathDepth|mathStyle|mathShift|whiteSpace|float|display)$/;
const MOST_EXPANSIONS = 500;
const LARGEST_EM = 30;

function element(node: Node, depth = 0): ComponentChildren {
  if (!node.type) return node.text ?? (node.children ?? []).map((each) => element(each, depth));
  const inside = depth > 200 ? [] : (node.children ?? []).map((each) => element(each, depth + 1));
  if (!ELEMENTS.has(node.type)) return inside;
  const attributes = Object.fromEntries(Object.entries(node.attributes ?? {}).filter(([name]) => ATTRIBUTES.has(name)));
  const style = Object.fromEntries(Object.entries(node.style ?? {}).filter(([name, value]) => STYLES.test(name) && !/url|expression|\\/i.test(String(value))));
  return h(node.type, { ...attributes, ...(Object.keys(style).length ? { style } : {}), ...(node.classes?.length ? { class: node.classes.filter(Boolean).join(" ") } : {}) }, inside);
}

export function Maths({ text, display }: { text: string; display: boolean }): VNode {
  const drawn = useMemo(() => {
    try {
      const options = { displayMode: display, throwOnError: true, trust: false, strict: false, maxSize: [LARGEST_EM, LARGEST_EM] as [number, number], maxExpand: MOST_EXPANSIONS };
      return element(temml.__renderToMathMLTree(text, options) as Node);
    } catch {
      return undefined;
    }
  }, [text, display]);
  if (drawn === undefined) return <code title="This formula has an error">{text}</code>;
  return display ? <div class="formula" tabIndex={0} role="group" aria-label="Formula">{drawn}</div> : <>{drawn}</>;
}
