// The inside of a diagram's frame: it has no origin, no storage and no network. The page sends a text, and hears how large the picture is.
import address from "@mermaid-js/tiny/dist/mermaid.tiny.js?url";

interface Mermaid {
  initialize(options: Record<string, unknown>): void;
  render(id: string, text: string): Promise<{ svg: string }>;
}

export interface Wanted { text: string; dark: boolean }
export interface Drawn { width: number; height: number; error?: string }

const MOST_CHARACTERS = 20_000;

/** A plain script, not a module: it leaves its name in the window. */
const loaded = new Promise<Mermaid>((done, failed) => {
  const script = document.createElement("script");
  script.crossOrigin = "anonymous";
  script.onload = () => done((globalThis as unknown as { mermaid: Mermaid }).mermaid);
  script.onerror = () => failed(new Error("its program could not be loaded"));
  script.src = address;
  document.head.append(script);
});
let queue = Promise.resolve();

async function draw({ text, dark }: Wanted): Promise<Drawn> {
  const mermaid = await loaded;
  mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark ? "dark" : "neutral", maxTextSize: MOST_CHARACTERS, suppressErrorRendering: true, fontFamily: "system-ui, sans-serif", flowchart: { htmlLabels: false } });
  document.body.style.cssText = `margin: 0; background: transparent; color-scheme: ${dark ? "dark" : "light"}`;
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  const { svg } = await mermaid.render("drawn", text);
  document.body.innerHTML = svg;
  const picture = document.body.querySelector("svg")!;
  const box = picture.viewBox.baseVal;
  picture.style.maxWidth = `${Math.ceil(box.width)}px`;
  picture.setAttribute("width", "100%");
  picture.removeAttribute("height");
  picture.style.display = "block";
  return { width: Math.ceil(box.width), height: Math.ceil(box.height) };
}

addEventListener("message", (message: MessageEvent<Wanted>) => {
  if (message.source !== parent) return;
  const say = (drawn: Drawn) => parent.postMessage(drawn, "*");
  queue = queue.then(() => draw(message.data)).then(say, (failure: unknown) => say({ width: 0, height: 0, error: failure instanceof Error ? failure.message : String(failure) }));
});
parent.postMessage("ready", "*");
