// Whether a proof bundle proves what it says: the same checks as verify_bundle.py makes, by the browser's own cryptography.
// Nothing here asks the network; what both verifiers refuse is compared by a test.

export class Refuted extends Error {}

export interface BundledEntry {
  position: number;
  tape: string;
  seq: number;
  time_ms: number;
  run_id?: string;
  principal: string;
  kind: string;
  link: number;
  hash: string;
  prev: string;
  proof: string[];
  body?: string | null;
  body_sha256?: string;
}

export interface ProofBundle {
  format: string;
  about: { session_id?: string; run_id?: string; first?: number; last?: number };
  checkpoint: string;
  keys: string[];
  rotations: string[];
  entries: BundledEntry[];
  policy_version?: string;
  policies: { version: string; files: { name: string; text: string }[] }[];
}

type Bytes = Uint8Array<ArrayBuffer>;

interface NoteKey {
  text: string;
  name: string;
  id: string;
  algorithm: number;
  body: Bytes;
}

interface Signature {
  name: string;
  id: string;
  body: Bytes;
}

const ENDS = ["run.completed", "run.failed", "run.cancelled"];
const NUMBERS = ["position", "seq", "time_ms", "link"] as const;
const TEXTS = ["tape", "principal", "kind", "hash", "prev"] as const;
const ALGORITHM_COSIGNATURE = 4;

function refuse(problem: string): never {
  throw new Refuted(problem);
}

/** JSON as the other verifier reads it: 1.0 is no whole number, and a byte order mark is no JSON. */
export function parse(data: ArrayBuffer): ProofBundle {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  const whole = (_: string, value: unknown, context?: { source?: string }) => (typeof value === "number" && context?.source !== undefined && !/^-?[0-9]+$/.test(context.source) ? Number.NaN : value);
  return JSON.parse(text, whole as (key: string, value: unknown) => unknown) as ProofBundle;
}

function utf8(text: string): Bytes {
  if (typeof text !== "string" || /\p{Surrogate}/u.test(text)) refuse("the bundle has text that is none");
  return new TextEncoder().encode(text);
}

function unhex(text: unknown): Bytes {
  if (typeof text !== "string" || !/^(?:[0-9a-f]{2})*$/.test(text)) refuse("a hash is malformed");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}

function unbase64(text: string): Bytes {
  const plain = /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0 ? atob(text) : refuse("a key, a root or a signature is malformed");
  if (btoa(plain) !== text) refuse("a key, a root or a signature is malformed");
  return Uint8Array.from(plain, (each) => each.charCodeAt(0));
}

function join(...parts: Bytes[]): Bytes {
  const all = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const each of parts) {
    all.set(each, at);
    at += each.length;
  }
  return all;
}

async function sha256(...parts: Bytes[]): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
}

/** Whole numbers, big-endian, of so many bytes each. */
function numbers(...given: readonly (readonly [number, 4 | 8])[]): Bytes {
  const view = new DataView(new ArrayBuffer(given.reduce((sum, [, size]) => sum + size, 0)));
  let at = 0;
  for (const [value, size] of given) {
    if (size === 8) view.setBigInt64(at, BigInt(value));
    else view.setUint32(at, value);
    at += size;
  }
  return new Uint8Array(view.buffer);
}

async function readKey(text: string): Promise<NoteKey> {
  if (typeof text !== "string") refuse("this is not a key");
  const [name = "", id = "", ...rest] = text.split("+");
  const body = unbase64(rest.join("+"));
  const found = hex((await sha256(utf8(name), utf8("\n"), body)).slice(0, 4));
  if (body.length !== 33 || found !== id) refuse(`this is not a key: ${text.slice(0, 80)}`);
  return { text, name, id, algorithm: body[0]!, body: body.slice(1) };
}

function readNote(note: string): { text: string; signatures: Signature[] } {
  const gap = typeof note === "string" ? note.lastIndexOf("\n\n") : -1;
  const below = gap < 0 ? "" : note.slice(gap + 2);
  if (gap < 0 || !below.endsWith("\n")) refuse("the checkpoint is no signed note");
  const signatures = below.slice(0, -1).split("\n").map((line) => {
    const parts = line.split(" ");
    if (parts.length !== 3 || parts[0] !== "\u2014") refuse("a signature line of the checkpoint is malformed");
    const body = unbase64(parts[2]!);
    return { name: parts[1]!, id: hex(body.slice(0, 4)), body: body.slice(4) };
  });
  return { text: note.slice(0, gap) + "\n", signatures };
}

async function signed(note: string, key: NoteKey): Promise<boolean> {
  const { text, signatures } = readNote(note);
  const found = signatures.find((each) => each.name === key.name && each.id === key.id);
  if (!found) return false;
  let message = utf8(text);
  if (key.algorithm === ALGORITHM_COSIGNATURE) {
    if (found.body.length < 8) refuse("a cosignature is malformed");
    const time = new DataView(found.body.buffer).getBigUint64(0);
    message = join(utf8(`cosignature/v1\ntime ${time}\n`), message);
  }
  const signature = found.body.slice(-64);
  if (signature.length !== 64) return false;
  let imported: CryptoKey;
  try {
    imported = await crypto.subtle.importKey("raw", key.body, "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotSupportedError") throw new Error("This browser cannot check Ed25519 signatures. Use a newer one, or verify_bundle.py.");
    return false;
  }
  return crypto.subtle.verify("Ed25519", imported, signature, message);
}

/** The trusted keys with those that they have signed for, by notes of rotation. */
async function replaced(trusted: NoteKey[], rotations: string[]): Promise<NoteKey[]> {
  const keys = [...trusted];
  for (const note of rotations) {
    const lines = readNote(note).text.split("\n").slice(0, -1);
    if (lines.length !== 3 || lines[0] !== "palyra key rotation 1") refuse("a note of key rotation is malformed");
    const [old, fresh] = [await readKey(lines[1]!), await readKey(lines[2]!)];
    if (keys.some((each) => each.text === old.text) && (await signed(note, old)) && (await signed(note, fresh))) keys.push(fresh);
  }
  return keys;
}

/** Hashes of two nodes of the tree; most of a bundle's paths share them. */
class Nodes {
  private known = new Map<string, Bytes>();

  async of(left: Bytes, right: Bytes): Promise<Bytes> {
    const name = hex(left) + hex(right);
    const found = this.known.get(name) ?? (await sha256(Uint8Array.of(1), left, right));
    this.known.set(name, found);
    return found;
  }

  /** The root that an audit path leads to, as RFC 9162 section 2.1.3.2 says. */
  async root(index: number, size: number, leaf: Bytes, path: Bytes[]): Promise<string> {
    // Positions go beyond 32 bits, where >> ends.
    const half = (value: number) => Math.floor(value / 2);
    let [at, last, found] = [index, size - 1, leaf];
    for (const each of path) {
      if (last === 0) refuse("an audit path is too long");
      if (at % 2 === 1 || at === last) {
        found = await this.of(each, found);
        while (at % 2 === 0 && at) [at, last] = [half(at), half(last)];
      } else found = await this.of(found, each);
      [at, last] = [half(at), half(last)];
    }
    if (last) refuse("an audit path is too short");
    return hex(found);
  }
}

function checkShape(entry: BundledEntry, where: string): void {
  const sound = NUMBERS.every((name) => Number.isSafeInteger(entry[name])) && TEXTS.every((name) => typeof entry[name] === "string") && Array.isArray(entry.proof);
  if (!sound || entry.seq < 0 || entry.position < 0) refuse(`${where} is malformed`);
}

/** The hash of an entry from its content. */
async function link(entry: BundledEntry, where: string): Promise<string> {
  const texts = [entry.tape, entry.run_id === undefined ? "" : entry.run_id, entry.principal, entry.kind].map(utf8);
  const lengths = texts.map((each) => [each.length, 4] as const);
  const body = entry.body ?? null;
  if (entry.link === 2) {
    const digest = body === null ? unhex(entry.body_sha256) : await sha256(utf8(body));
    const head = numbers([entry.seq, 8], [entry.time_ms, 8], ...lengths);
    return hex(await sha256(utf8("palyra link 2\n"), unhex(entry.prev), head, ...texts, digest));
  }
  if (entry.link !== 1 || body === null) refuse(`${where} has link version 1: only its body proves it`);
  const content = utf8(body);
  const head = numbers([entry.seq, 8], [entry.position, 8], [entry.time_ms, 8], ...lengths, [content.length, 4]);
  return hex(await sha256(unhex(entry.prev), head, ...texts, content));
}

/** Every entry against the checkpoint and its predecessor: how many are proven with their content, how many by their hash alone. */
async function checkEntries(entries: BundledEntry[], size: number, root: string): Promise<[number, number]> {
  const heads = new Map<string, { seq: number; hash: string }>();
  const nodes = new Nodes();
  let [seen, proven, sealed] = [0, 0, 0];
  for (const entry of entries) {
    const where = `entry ${entry.position}`;
    checkShape(entry, where);
    if (!(seen < entry.position && entry.position <= size)) refuse(`${where} is out of order or not in the checkpoint`);
    seen = entry.position;
    const digest = unhex(entry.hash);
    if ((await link(entry, where)) !== entry.hash) refuse(`${where} was changed: its hash is another`);
    const shown = (entry.body ?? null) !== null;
    if (shown && (JSON.parse(entry.body!) as { kind?: unknown }).kind !== entry.kind) refuse(`${where} says another kind than its body`);
    const before = heads.get(entry.tape);
    if (before && (before.seq !== entry.seq - 1 || before.hash !== entry.prev)) refuse(`${where} does not follow the one before it: entries are missing`);
    heads.set(entry.tape, { seq: entry.seq, hash: entry.hash });
    const leaf = await sha256(Uint8Array.of(0, entry.link), digest);
    if ((await nodes.root(entry.position - 1, size, leaf, entry.proof.map(unhex))) !== root) refuse(`${where} is not in the journal at this position`);
    if (shown) proven += 1;
    else sealed += 1;
  }
  return [proven, sealed];
}

/** The bundle holds what it says it is about, without a gap. */
function checkScope(about: ProofBundle["about"], entries: BundledEntry[]): void {
  const { session_id: session = "", run_id: run = "" } = about;
  const [first] = entries;
  if (!first || typeof session !== "string" || typeof run !== "string") refuse("the bundle has no entries, or does not say what it is about");
  if (session && first.seq !== 1) refuse("the session does not begin with its first entry");
  const tapes = new Set(entries.map((each) => each.tape));
  if ((session && (tapes.size !== 1 || !tapes.has(session))) || (run && tapes.size !== 1)) refuse("the bundle has entries of another session");
  if (run && (first.kind !== "run.accepted" || first.run_id !== run)) refuse("the run does not begin with its first entry");
  if (!session && !run) {
    const last = first.position + entries.length - 1;
    if (!Number.isSafeInteger(about.last) || about.first !== first.position || about.last !== last || entries.some((each, at) => each.position !== first.position + at)) refuse("positions are missing between");
  }
}

/** Under which policies calls were decided. A version is the digest of its texts. */
async function checkPolicies(bundle: ProofBundle): Promise<string[]> {
  const known = new Set<unknown>();
  for (const each of bundle.policies) {
    if (!Array.isArray(each.files)) refuse("the policies are malformed");
    const parts = each.files.flatMap((file) => [utf8(file.name), utf8(file.text)]);
    const digest = await sha256(...parts.flatMap((part) => [numbers([part.length, 8]), part]));
    if (hex(digest) !== each.version) refuse("policies are not those of their version");
    known.add(each.version);
  }
  const decisions = bundle.entries.filter((each) => each.kind === "tool.decided" && each.body).map((each) => JSON.parse(each.body!) as { policy_version?: string });
  const decided = [...new Set(decisions.map((each) => each.policy_version ?? ""))].filter(Boolean).sort();
  return decided.map((version) => `calls were decided by policies ${version.slice(0, 16)}, ${known.has(version) ? "whose texts are here" : "WARNING: whose texts are not here"}`);
}

/** Sentences about what is proven. Throws Refuted if the bundle is not what it says. `trusted` are keys that the reader was given. */
export async function check(bundle: ProofBundle, trusted: readonly string[]): Promise<string[]> {
  if (bundle.format !== "palyra-proof-1") refuse("this is no proof bundle of a known version");
  if (![bundle.keys, bundle.rotations, bundle.entries, bundle.policies].every(Array.isArray)) refuse("the bundle is malformed");
  const [origin = "", count = "", packed = ""] = readNote(bundle.checkpoint).text.split("\n");
  const size = Number(count);
  if (!/^(?:0|[1-9][0-9]*)$/.test(count) || !Number.isSafeInteger(size)) refuse("the checkpoint is malformed");
  const root = hex(unbase64(packed));
  const own = await Promise.all(bundle.keys.map(readKey));
  const known = await replaced(await Promise.all(trusted.map(readKey)), bundle.rotations);
  const signers: NoteKey[] = [];
  for (const key of known.length ? known : own) if (await signed(bundle.checkpoint, key)) signers.push(key);
  if (!signers.length) refuse("the checkpoint is not signed by a key that is trusted");
  const [proven, sealed] = await checkEntries(bundle.entries, size, root);
  checkScope(bundle.about, bundle.entries);
  const policies = await checkPolicies(bundle);
  const told = [
    `signed by ${signers.map((each) => each.name).join(", ")} for ${size} entries of ${origin}`,
    `${proven} entries proven with their content, ${sealed} by their hash alone`,
    "nothing is missing between the first and the last of them",
  ];
  const run = bundle.about.run_id;
  if (run) told.push(bundle.entries.some((each) => ENDS.includes(each.kind) && each.run_id === run) ? "the run is complete" : "the run had not ended");
  return [...told, ...policies];
}
