// What a page stands on: its frame, what it has loaded, what it tries, and pages that are fetched when somebody goes there.
import { effect, signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import { Empty, PageHead, Problem, Skeleton, spoken } from "./parts";

/** How many things are loaded for the first time now. */
const firstLoads = signal(0);
/** Whatever takes longer appears when it comes. */
const LATEST_MS = 500;

/** Whether what a page begins with is there: until then it keeps its place unseen, so that nothing jumps under who reads. */
export function useComplete(): boolean {
  const [complete, setComplete] = useState(false);
  useEffect(() => {
    if (complete) return;
    const late = setTimeout(() => setComplete(true), LATEST_MS);
    let frame = 0;
    const stop = effect(() => {
      cancelAnimationFrame(frame);
      if (!firstLoads.value) frame = requestAnimationFrame(() => (frame = requestAnimationFrame(() => setComplete(true))));
    });
    return () => {
      stop();
      clearTimeout(late);
      cancelAnimationFrame(frame);
    };
  }, [complete]);
  return complete;
}

export function Page({ title, actions, error, children }: {
  title: string;
  actions?: ComponentChildren;
  error?: string;
  children: ComponentChildren;
}): VNode {
  const complete = useComplete();
  return <div class={complete ? "page" : "page unready"}><PageHead title={title}>{actions}</PageHead><Problem text={error ?? ""} />{children}</div>;
}

/** A part of a page with a heading of its own. */
export function Part({ id, title, children }: { id: string; title: string; children: ComponentChildren }): VNode {
  return <section aria-labelledby={`part-${id}`}><h2 id={`part-${id}`}>{title}</h2>{children}</section>;
}

export interface Loaded<T> {
  value: T | undefined;
  error: string;
  again: () => void;
}

/** What `load` gives. When something of `when` changes it is another thing that is loaded, and what was asked for before no longer counts;
 * when `fresh` does, the same is loaded anew. What was there stays until the new is: nothing flickers. */
export function useLoaded<T>(load: () => Promise<T>, when: readonly unknown[] = [], fresh = 0): Loaded<T> {
  const [value, setValue] = useState<T | undefined>();
  const [error, setError] = useState("");
  const latest = useRef(load);
  latest.current = load;
  const ask = useRef(() => undefined as void);
  const seen = useRef(fresh);
  useEffect(() => {
    let stale = false;
    let busy = false;
    let more = false;
    let first = true;
    firstLoads.value++;
    const arrived = () => {
      if (first) firstLoads.value--;
      first = false;
    };
    // One at a time: however often something changes, what is asked for arrives.
    ask.current = () => {
      if (stale || busy) return void (more = true);
      busy = true;
      more = false;
      const end = () => {
        busy = false;
        arrived();
        if (more) ask.current();
      };
      latest.current().then(
        (found) => { if (!stale) { setValue(() => found); setError(""); end(); } },
        (failure: unknown) => { if (!stale) { setError(wordsOf(failure)); end(); } },
      );
    };
    ask.current();
    return () => { stale = true; arrived(); };
  }, [...when]);
  useEffect(() => {
    if (seen.current === fresh) return;
    seen.current = fresh;
    ask.current();
  }, [fresh]);
  return { value, error, again: useCallback(() => ask.current(), []) };
}

export interface Attempts {
  error: string;
  busy: boolean;
  /** Does something once at a time; what goes wrong is in `error`, and true is what went well. `said` is told to screen readers. */
  attempt: (work: () => Promise<unknown>, said?: string) => Promise<boolean>;
  forget: () => void;
}

export function useAttempt(): Attempts {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const working = useRef(false);
  const attempt = async (work: () => Promise<unknown>, said = "") => {
    if (working.current) return false;
    working.current = true;
    setBusy(true);
    setError("");
    try {
      await work();
      if (said) spoken.value = said;
      return true;
    } catch (failure) {
      setError(wordsOf(failure));
      return false;
    } finally {
      working.current = false;
      setBusy(false);
    }
  };
  return { error, busy, attempt, forget: () => setError("") };
}

/** A page whose program is fetched when it is opened first. */
export function later(load: () => Promise<() => VNode>): () => VNode {
  const failed = signal(false);
  const Part = laterPart<object>(load, () => failed.value
    ? <Empty><h1>This page could not be loaded</h1><p>Palyra may have been updated, or it cannot be reached.</p><div class="row"><button type="button" onClick={() => location.reload()}>Reload</button></div></Empty>
    : <div class="page"><Skeleton label="Loading…" lines={8} /></div>, () => (failed.value = true));
  return () => <Part />;
}

type Drawing<T> = (given: T) => VNode | null;

/** A part of a page whose program is fetched when it is first drawn; until then `meanwhile` is. */
export function laterPart<T extends object>(load: () => Promise<Drawing<T>>, meanwhile: (given: T) => VNode | null = () => null, onFailed: () => void = () => undefined): (given: T) => VNode | null {
  const found = signal<{ draw: Drawing<T> } | undefined>(undefined);
  return function Later(given: T): VNode | null {
    useEffect(() => {
      if (!found.peek()) void load().then((draw) => (found.value = { draw }), onFailed);
    }, []);
    const There = found.value?.draw;
    return There ? <There {...given} /> : meanwhile(given);
  };
}

/** One function for all: with another one for each drawing, whoever has moved on would be taken back whenever the page is drawn anew. */
function focused(it: HTMLElement | null): void {
  it?.focus();
}

/** Something that is done after a second, deliberate click: what it does is said before. */
export function Sure({ words, question, yes, onYes, tone = "no", disabled = false }: {
  words: string;
  question: ComponentChildren;
  yes: string;
  onYes: () => void;
  tone?: string;
  disabled?: boolean;
}): VNode {
  const [asked, ask] = useState(false);
  if (!asked) return <button type="button" class="quiet small" disabled={disabled} onClick={() => ask(true)}>{words}</button>;
  return (
    <div class="sure" role="group" aria-label={words}>
      <span>{question}</span>
      <button type="button" class={tone} disabled={disabled} onClick={() => { ask(false); onYes(); }}>{yes}</button>
      <button type="button" class="quiet" ref={focused} onClick={() => ask(false)}>{yes.startsWith("Cancel") ? "Keep" : "Cancel"}</button>
    </div>
  );
}
