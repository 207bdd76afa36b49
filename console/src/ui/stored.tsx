// Stored files: fetched with the key in a header and handed over as a local file, so that no address carries the key.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { send, wordsOf } from "../core/api";
import { Problem } from "./parts";

const SOON_MS = 10_000;

/** Hand a value over as a local file. */
export function saveJson(name: string, value: unknown): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(value, null, 1)], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SOON_MS);
}

export function Download({ path, name, quiet = "", children }: { path: string; name: string; quiet?: string; children: ComponentChildren }): VNode {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const fetchIt = async () => {
    setBusy(true);
    setError("");
    try {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await (await send("GET", path)).blob());
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), SOON_MS);
    } catch (failure) {
      setError(wordsOf(failure));
    }
    setBusy(false);
  };
  return (
    <>
      <a class={quiet} href={path} download={name} aria-busy={busy} onClick={(event) => { event.preventDefault(); if (!busy) void fetchIt(); }}>{children}</a>
      <Problem text={error} />
    </>
  );
}

const MOST_KEPT = 60;
const kept = new Map<string, Promise<string>>();

function imageAt(path: string): Promise<string> {
  const known = kept.get(path);
  if (known) return known;
  const made = send("GET", path).then((answer) => answer.blob()).then((data) => URL.createObjectURL(data));
  made.catch(() => kept.delete(path));
  kept.set(path, made);
  const [oldest] = kept.keys();
  if (kept.size > MOST_KEPT && oldest) {
    void kept.get(oldest)?.then((address) => URL.revokeObjectURL(address), () => undefined);
    kept.delete(oldest);
  }
  return made;
}

/** The local address of a stored picture; empty until it is there. */
export function useImage(path: string): string {
  const [address, setAddress] = useState("");
  useEffect(() => {
    let stale = false;
    void imageAt(path).then((found) => { if (!stale) setAddress(found); }, () => undefined);
    return () => { stale = true; };
  }, [path]);
  return address;
}
