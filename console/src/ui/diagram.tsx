// A diagram of a text, drawn in a frame without rights. Whatever the text makes of its program stays in there; the text itself is one click away.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { theme } from "../core/theme";
import type { Drawn } from "../diagram/main";
import { Code, Copy } from "./code";

const MOST_CHARACTERS = 20_000;
const HIGHEST = 900;
/** The height is kept until the size is known, so that little moves. */
const FIRST_HEIGHT = 220;

export function Diagram({ text }: { text: string }): VNode {
  const frame = useRef<HTMLIFrameElement>(null);
  const [drawn, setDrawn] = useState<Drawn | undefined>();
  const [source, setSource] = useState(false);
  const night = theme.value === "dark" || (theme.value === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const heard = (message: MessageEvent<Drawn | "ready">) => {
      const inside = frame.current?.contentWindow;
      if (!inside || message.source !== inside) return;
      if (message.data === "ready") inside.postMessage({ text, dark: night }, "*");
      else setDrawn({ width: Number(message.data.width) || 0, height: Number(message.data.height) || 0, ...(message.data.error ? { error: String(message.data.error) } : {}) });
    };
    addEventListener("message", heard);
    frame.current?.contentWindow?.postMessage({ text, dark: night }, "*");
    return () => removeEventListener("message", heard);
  }, [text, night]);
  if (text.length > MOST_CHARACTERS || drawn?.error)
    return <><Code text={text} language="mermaid" plain /><p class="hint" role="status">{drawn?.error ? `Cannot draw this diagram: ${drawn.error.split("\n")[0]!.replace(/[:.]?$/, ".").slice(0, 200)}` : "This diagram is too long to be drawn."}</p></>;
  return (
    <div class="code diagram">
      <div class="code-head"><span>diagram</span><button type="button" class="quiet small" aria-pressed={source} onClick={() => setSource(!source)}>Source</button><Copy text={text} /></div>
      {source ? <pre tabIndex={0}><code>{text}</code></pre>
        : <iframe ref={frame} title="Diagram" src="/diagram.html" sandbox="allow-scripts" height={Math.min(HIGHEST, (drawn?.height || FIRST_HEIGHT) + 2)} />}
    </div>
  );
}
