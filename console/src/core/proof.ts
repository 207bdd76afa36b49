// Whether an entry says what it said when it was written: its hash is made anew in this browser, from its bytes and the hash before it.
import { text } from "./api";

const encoder = new TextEncoder();

interface Envelope {
  tape: string;
  seq: number;
  position: number;
  time_ms: number;
  run_id?: string;
  principal: string;
  kind: string;
  hash: string;
  /** The version of the hash; the first one was not written out. */
  link?: number;
}

export interface Proof {
  fits: boolean;
  before: string;
  computed: string;
  stored: string;
}

/** An entry as it stands in the answer, and the very bytes of its event: reading and writing JSON anew could change them. */
function parts(page: string): { envelope: Envelope; event: string } {
  const begin = page.indexOf('"event":') + '"event":'.length;
  const end = page.lastIndexOf('}],"next":');
  const { entries } = JSON.parse(page) as { entries: Envelope[] };
  return { envelope: entries[0]!, event: page.slice(begin, end) };
}

async function one(id: string, seq: number): Promise<{ envelope: Envelope; event: string }> {
  return parts(await text(`/v1/sessions/${id}/entries?after=${seq - 1}&limit=1`));
}

export async function prove(id: string, seq: number): Promise<Proof> {
  const { envelope, event } = await one(id, seq);
  const before = seq === 1 ? "00".repeat(32) : (await one(id, seq - 1)).envelope.hash;
  const computed = hex(await sha256(...(envelope.link === 2 ? await secondLink(before, envelope, event) : firstLink(before, envelope, event))));
  return { fits: computed === envelope.hash, before, computed, stored: envelope.hash };
}

/** The first version covers the position and the whole event. */
function firstLink(before: string, envelope: Envelope, event: string): BlobPart[] {
  const names = [envelope.tape, envelope.run_id ?? "", envelope.principal, envelope.kind, event].map((each) => encoder.encode(each));
  const head = new DataView(new ArrayBuffer(44));
  for (const [at, value] of [envelope.seq, envelope.position, envelope.time_ms].entries()) head.setBigUint64(at * 8, BigInt(value));
  names.forEach((each, at) => head.setUint32(24 + at * 4, each.length));
  return [unhex(before), head, ...names];
}

/** The second one leaves the position to the Merkle tree and covers the event by its hash. */
async function secondLink(before: string, envelope: Envelope, event: string): Promise<BlobPart[]> {
  const names = [envelope.tape, envelope.run_id ?? "", envelope.principal, envelope.kind].map((each) => encoder.encode(each));
  const head = new DataView(new ArrayBuffer(32));
  for (const [at, value] of [envelope.seq, envelope.time_ms].entries()) head.setBigUint64(at * 8, BigInt(value));
  names.forEach((each, at) => head.setUint32(16 + at * 4, each.length));
  return ["palyra link 2\n", unhex(before), head, ...names, await sha256(event)];
}

async function sha256(...parts: BlobPart[]): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));
}

function unhex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}
