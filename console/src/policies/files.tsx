// The policy files: written here, judged while they are written, tried on the record, and saved only if everything loads with them.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { Editor, type Fault } from "../ui/editor";
import { TextField } from "../ui/form";
import { Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { colouredCedar, offers, schemaOf, type Schema } from "./cedar";
import { TryOut } from "./testing";
import type { PolicyFile, Validated } from "../types";

interface Draft {
  name: string;
  text: string;
  /** The digest of what is edited; empty for a file that is not there yet. */
  was: string;
  saved: string;
  shipped: boolean;
}

/** What is being written; it stays while one looks at other pages. */
export const draft = signal<Draft | undefined>(undefined);

const SOON_MS = 300;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,80}\.cedar$/;
const FIRST = `// Who may do what. Remove the two slashes before a line to put it in force.
//
// @id("my-first-rule")
// @reason("nobody touches the secrets folder")
// forbid (principal, action == Action::"run", resource) when {
//   context.touches.contains("/home/me/secrets")
// };
`;

export function edit(file: PolicyFile): void {
  draft.value = { name: file.name, text: file.text, was: file.digest, saved: file.text, shipped: Boolean(file.shipped) };
}

/** Take a text over into a file: behind what is there, and not yet saved. */
export async function takeOver(name: string, text: string): Promise<void> {
  const { files } = await palyra.listPolicyFiles();
  const there = files.find((each) => each.name === name && !each.shipped);
  const open = draft.peek();
  const before = open?.name === name ? open.text : (there?.text ?? "");
  draft.value = { name, was: there?.digest ?? "", saved: there?.text ?? "", text: before.includes(text) ? before : `${before ? `${before.trimEnd()}\n\n` : ""}${text}`, shipped: false };
}

function useVerdict(name: string, text: string): { faults: Fault[]; verdict: Validated | undefined; error: string } {
  const [found, setFound] = useState<{ text: string; verdict: Validated } | undefined>();
  const [error, setError] = useState("");
  useEffect(() => {
    if (!name) return;
    let stale = false;
    const timer = setTimeout(() => {
      palyra.validatePolicy({ name, text }).then(
        (verdict) => { if (!stale) { setFound({ text, verdict }); setError(""); } },
        (failure: unknown) => { if (!stale) setError(wordsOf(failure)); },
      );
    }, SOON_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [name, text]);
  const faults = (found?.verdict.problems ?? []).map((each) => ({ line: each.line, message: each.message, ...(each.file === name ? {} : { file: each.file }) }));
  return { faults, verdict: found?.text === text ? found.verdict : undefined, error };
}

export function Files(): VNode {
  const [turn, setTurn] = useState(0);
  const files = useLoaded(() => palyra.listPolicyFiles(), [turn]);
  const [fresh, setFresh] = useState<string | undefined>();
  const now = draft.value;
  useEffect(() => {
    const first = files.value?.files[0];
    if (!draft.peek() && first) edit(first);
  }, [files.value]);
  const all = files.value?.files ?? [];
  const schema = useMemo(() => schemaOf(files.value?.schema ?? ""), [files.value?.schema]);
  const open = (file: PolicyFile) => edit(file);
  const wrong = fresh === undefined || !fresh ? "" : !NAME.test(fresh) ? "Use letters, digits, dots, dashes and underscores, ending in .cedar." : all.some((each) => each.name === fresh && !each.shipped) ? "A file with this name exists." : "";
  return (
    <>
      <Problem text={files.error} />
      <div class="row files" role="group" aria-label="Policy files">
        {all.map((each) => <button type="button" key={`${each.name}${each.shipped}`} aria-pressed={now?.name === each.name && now.shipped === Boolean(each.shipped)} onClick={() => open(each)}>{each.name}{each.shipped && <Badge>Built in</Badge>}</button>)}
        {now && !now.shipped && !all.some((each) => each.name === now.name && !each.shipped) && <button type="button" aria-pressed={true}>{now.name}<Badge tone="warn">New</Badge></button>}
        <button type="button" class="quiet" aria-expanded={fresh !== undefined} onClick={() => setFresh(fresh === undefined ? "" : undefined)}>New file…</button>
      </div>
      {fresh !== undefined && (
        <form class="form" onSubmit={(event) => { event.preventDefault(); if (!fresh || wrong) return; draft.value = { name: fresh, text: FIRST, was: "", saved: "", shipped: false }; setFresh(undefined); }}>
          <TextField label="File name" mono value={fresh} onInput={setFresh} wrong={wrong} eager placeholder="mine.cedar" required />
          <button type="submit" disabled={!fresh || Boolean(wrong)}>Create file</button>
        </form>
      )}
      {now && <Edited key={`${now.name} ${now.shipped}`} now={now} schema={schema} onSaved={() => setTurn(turn + 1)} />}
      {files.value && <p class="hint">Files are in <span class="mono breaks">{files.value.folder}</span>. Changes made there by other programs load automatically.</p>}
    </>
  );
}

function Edited({ now, schema, onSaved }: { now: Draft; schema: Schema; onSaved: () => void }): VNode {
  const { faults, verdict, error } = useVerdict(now.shipped ? "" : now.name, now.text);
  const { error: failed, busy, attempt } = useAttempt();
  const [said, setSaid] = useState("");
  const changed = now.text !== now.saved;
  const save = () => attempt(async () => {
    setSaid("");
    const { file, reloaded } = await palyra.savePolicyFile({ name: now.name, text: now.text, was: now.was });
    edit(file!);
    setSaid(`Saved and active: ${told(reloaded.added, "added")}${told(reloaded.changed, "changed")}${told(reloaded.removed, "removed")}version ${reloaded.version.slice(0, 16)}.`);
    onSaved();
  });
  const remove = () => attempt(async () => {
    await palyra.removePolicyFile({ name: now.name, was: now.was });
    draft.value = undefined;
    onSaved();
  }, "Deleted.");
  if (now.shipped) return <><p class="hint">Built into Palyra and read-only. Your own files add to it.</p><Editor label={`${now.name}, built in`} value={now.text} onInput={() => undefined} faults={[]} readOnly colour={colouredCedar} /></>;
  return (
    <>
      <Editor label={now.name} value={now.text} faults={faults} colour={colouredCedar} offering={(before, asked) => offers(schema, before, asked)} onInput={(text) => { setSaid(""); draft.value = { ...now, text }; }} />
      <p role="status" class="verdict">{verdict?.ok ? <span class="fine">Valid. {verdict.policies.length ? `This file: ${verdict.policies.map((each) => `${each.effect} ${each.id}`).join(", ")}.` : "This file has no policies."}</span> : faults.length ? `${faults.length === 1 ? "1 error" : `${faults.length} errors`}; the active policies stay as they are.` : "Checking…"}</p>
      <Problem text={error || failed} />
      {said && <p class="notice good" role="status">{said}</p>}
      <div class="row">
        <button type="button" class="main" disabled={busy || !changed || !verdict?.ok} onClick={() => void save()}>Save and activate</button>
        <button type="button" class="quiet" disabled={!changed} onClick={() => (draft.value = now.was ? { ...now, text: now.saved } : undefined)}>Discard changes</button>
        {now.was && <Sure words="Delete file…" question={`Delete ${now.name}? Its rules no longer apply.`} yes="Delete" onYes={() => void remove()} />}
      </div>
      <TryOut trial={{ name: now.name, text: now.text }} words="Backtest" disabled={!verdict?.ok} />
    </>
  );
}

function told(ids: readonly string[] | undefined, words: string): string {
  return ids?.length ? `${words} ${ids.join(", ")}; ` : "";
}
