// The page on which somebody drops a proof bundle. It works without a login, and its content policy lets nothing out.
import { visible } from "../core/visible";
import { check, parse, Refuted, type BundledEntry, type ProofBundle } from "./check";

const MOST_SHOWN = 1_000;
/** Larger ones would make the browser stumble. */
const MOST_BYTES = 512 * 1024 * 1024;

function part<K extends keyof HTMLElementTagNameMap>(name: K, text = "", kind = ""): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  if (text) made.textContent = visible(text);
  if (kind) made.className = kind;
  return made;
}

function by<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const file = by<HTMLInputElement>("file");
const keys = by<HTMLTextAreaElement>("keys");
const found = by<HTMLElement>("found");
let held: File | undefined;
/** Which of several checks is the newest: an older one that ends later says nothing. */
let turn = 0;

async function look(): Promise<void> {
  const given = held;
  if (!given) return;
  const mine = (turn += 1);
  found.replaceChildren(part("p", `Checking ${given.name}…`));
  let shown: Node[];
  try {
    shown = await judged(given, keys.value.split(/\s+/).filter(Boolean));
  } catch (error) {
    const why = error instanceof Refuted || error instanceof Error ? error.message : String(error);
    shown = verdict(given.name, false, [error instanceof Refuted ? why : `the bundle cannot be read: ${why}`]);
  }
  if (mine === turn) found.replaceChildren(...shown);
}

async function judged(given: File, trusted: string[]): Promise<Node[]> {
  if (!globalThis.crypto?.subtle) throw new Error("this page must be opened over HTTPS or on this machine, else the browser does not let it check signatures");
  if (given.size > MOST_BYTES) throw new Error("it is larger than 512 MB; use verify_bundle.py");
  const bundle = parse(await given.arrayBuffer());
  const told = await check(bundle, trusted);
  const claimed = trusted.length ? [] : [part("p", "The key is the bundle's own claim: anybody can make a journal of their own. Paste the key that the owner gave you above.", "notice warn")];
  return [...verdict(given.name, true, told), ...claimed, entries(bundle), ...policies(bundle)];
}

function verdict(name: string, good: boolean, told: string[]): Node[] {
  const list = part("ul");
  list.append(...told.map((each) => part("li", each)));
  const head = part("p");
  head.append(part("strong", good ? "Proven" : "Not proven", `badge ${good ? "good" : "bad"}`), " ", part("bdi", name));
  return [head, list];
}

function entries(bundle: ProofBundle): Node {
  const holder = part("section");
  const table = part("table");
  const head = table.createTHead().insertRow();
  for (const words of ["Position", "Time", "Entry", "By", "Content"]) {
    const cell = part("th", words);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const each of bundle.entries.slice(0, MOST_SHOWN)) row(body.insertRow(), each);
  const scrolled = part("div", "", "scrolled");
  scrolled.tabIndex = 0;
  scrolled.setAttribute("role", "region");
  scrolled.setAttribute("aria-label", "Entries");
  scrolled.append(table);
  holder.append(part("h2", "Entries"), scrolled);
  const more = bundle.entries.length - MOST_SHOWN;
  if (more > 0) holder.append(part("p", `${more} more entries are checked and not shown.`, "hint"));
  return holder;
}

function row(into: HTMLTableRowElement, entry: BundledEntry): void {
  into.insertCell().textContent = String(entry.position);
  into.insertCell().textContent = new Date(entry.time_ms).toLocaleString();
  into.insertCell().append(part("code", entry.kind));
  into.insertCell().append(part("bdi", entry.principal));
  const content = into.insertCell();
  if ((entry.body ?? null) === null) {
    content.append(part("span", "Left out; its hash is proven", "hint"));
    return;
  }
  const more = part("details");
  const text = part("pre");
  // Drawn when it is looked at: a bundle can hold a great deal.
  more.addEventListener("toggle", () => { if (more.open && !text.textContent) text.textContent = visible(JSON.stringify(JSON.parse(entry.body!), null, 2)); });
  more.append(part("summary", "Show"), text);
  content.append(more);
}

function policies(bundle: ProofBundle): Node[] {
  const made = bundle.policies.flatMap(({ version, files }) => [
    part("h3", `Version ${version.slice(0, 16)}`),
    ...files.map((each) => {
      const one = part("details");
      one.append(part("summary", each.name), part("pre", each.text));
      return one;
    }),
  ]);
  return made.length ? [part("h2", "Policies"), part("p", "A version is the digest of its texts, and each decision names the version that made it.", "hint"), ...made] : [];
}

file.addEventListener("change", () => {
  held = file.files?.[0];
  void look();
});
keys.addEventListener("input", () => void look());
const target = by<HTMLElement>("drop");
for (const name of ["dragover", "dragleave", "drop"]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    target.classList.toggle("over", name === "dragover");
  });
}
addEventListener("drop", (event) => {
  held = event.dataTransfer?.files[0];
  void look();
});
