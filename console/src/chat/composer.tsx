// Where a message is written: files by drag and paste, `@` names and `/` commands with completion, and how it joins what runs.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { online, wordsOf } from "../core/api";
import * as palyra from "../core/verbs";
import { type Conversation, ended } from "../core/conversation";
import { go } from "../core/router";
import { listen, sessions } from "../core/store";
import { count, size, visible } from "../core/words";
import { Badge, Problem } from "../ui/parts";
import type { ReferencesPreview, StoredFile, Submission } from "../types";
import { asked, begunPath, change, COMMANDS, completed, drafts, editing, goesOn, mode, NOTHING, type Offer, pathOffers, REFERENCES, sent } from "./composing";
import { FolderChip, PresetPicker } from "./chips";
import { isPicture, Picture } from "./items";
import { ModelPicker } from "./model";
import { branch, command, create, stop, submit } from "./verbs";

const NEW = "new";
const LOOK_MS = 350;
const PATHS_MS = 80;
const MODES = [
  ["followup", "Queue", "Runs after the current run"],
  ["steer", "Steer", "Joins the current run"],
  ["interrupt", "Interrupt", "Replaces the current run"],
] as const;

function suggestions(text: string): readonly Offer[] {
  if (/^\/\w*$/.test(text)) return COMMANDS.filter(([name]) => name.startsWith(text));
  const word = /(?:^|\s)(@\w*)$/.exec(text)?.[1];
  return word ? REFERENCES.filter(([name]) => name.startsWith(word) && name !== word) : [];
}

/** Paths that begin as what is being typed. A session that is not begun has the workspace of the last one. */
function usePaths(text: string, sessionId: string | undefined): readonly Offer[] {
  const begun = begunPath(text);
  const where = sessionId ?? sessions.value[0]?.session_id;
  const key = begun && where ? `${begun.kind}:${begun.prefix}` : "";
  const [found, setFound] = useState<{ key: string; offers: readonly Offer[] }>({ key: "", offers: [] });
  useEffect(() => {
    if (!key || !begun || !where) return;
    let stale = false;
    const timer = setTimeout(() => {
      void palyra.listPaths(where, { prefix: begun.prefix }).then(({ paths }) => {
        if (!stale) setFound({ key, offers: pathOffers(begun.kind, paths, begun.prefix) });
      }, () => undefined);
    }, PATHS_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [key, where]);
  return found.key === key ? found.offers : [];
}

export function Composer({ conversation }: { conversation: Conversation | undefined }): VNode {
  const key = conversation?.id ?? NEW;
  const draft = drafts.value[key] ?? NOTHING;
  const run = conversation?.run.value;
  const working = !!run && !ended(run);
  const [error, setError] = useState("");
  const [sending, setSending] = useState(false);
  const [chosen, setChosen] = useState(0);
  const [preview, setPreview] = useState<ReferencesPreview | undefined>();
  const [help, setHelp] = useState(false);
  const [dropping, setDropping] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const before = useRef<Promise<void>>(Promise.resolve());
  const paths = usePaths(draft.text, conversation?.id);
  const [refused, setRefused] = useState("");
  const all = paths.length ? paths : suggestions(draft.text);
  const offered = refused === draft.text ? [] : all;
  const edit = editing.value?.sessionId === conversation?.id ? editing.value : undefined;

  useEffect(() => {
    if (!conversation || !goesOn.here) return;
    goesOn.here = false;
    box.current?.focus();
  }, []);

  useEffect(() => {
    if (!edit) return;
    change(key, { text: edit.text });
    box.current?.focus();
  }, [edit]);

  useEffect(() => {
    if (!conversation || !/(^|\s)@(file|folder|diff|staged|url|memory|run)\b/.test(draft.text)) return setPreview(undefined);
    let stale = false;
    const timer = setTimeout(() => {
      void palyra.previewReferences(conversation.id, { text: draft.text }).then(
        (found) => { if (!stale) setPreview(found); },
        () => { if (!stale) setPreview(undefined); },
      );
    }, LOOK_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [draft.text, conversation]);

  useEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
  }, [draft.text]);

  const attach = async (files: Iterable<File>) => {
    setError("");
    try {
      const session = conversation?.id ?? (await create()).session_id;
      const stored: StoredFile[] = [];
      for (const file of files)
        stored.push(await palyra.storeFile(session, file, { name: file.name || "pasted" }));
      // What was typed and attached meanwhile stays.
      const typed = drafts.peek()[key] ?? NOTHING;
      change(session, { text: typed.text, files: [...typed.files, ...stored] });
      if (!conversation) {
        change(NEW, NOTHING);
        go("chat", session);
      }
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };

  const words = asked.value;
  useEffect(() => {
    if (!words || conversation) return;
    asked.value = "";
    change(key, { text: words });
    setTimeout(() => box.current?.form?.requestSubmit());
  }, [words]);

  const send = () => {
    if ((!draft.text.trim() && !draft.files.length) || (sending && (edit || !conversation))) return;
    const how = working && !edit ? { mode: mode.value } : {};
    // What is typed from here on is the next message, which waits for this one.
    change(key, NOTHING);
    mode.value = "followup";
    box.current?.focus();
    before.current = before.current.then(() => deliver(how));
  };

  const deliver = async (how: Pick<Submission, "mode">) => {
    const text = draft.text.trim();
    const spaced = /^\s/.test(draft.text);
    setError("");
    setSending(true);
    try {
      if (text === "/help") setHelp(true);
      else if (spaced || !text.startsWith("/") || !(await command(text, conversation))) {
        const session = edit ? (await branched(edit.sessionId, edit.at)) : (conversation?.id ?? (await create()).session_id);
        if (session !== conversation?.id) {
          goesOn.here = !conversation;
          await listen(session);
        }
        const attachments = draft.files.map(({ artifact, name }) => ({ artifact, name }));
        await submit(session, { text, ...how, ...(attachments.length ? { attachments } : {}) });
        if (edit && editing.peek() === edit) editing.value = undefined;
        sent.value++;
      }
    } catch (failure) {
      // Back where it was, in the order in which it was written.
      const both = [draft, drafts.peek()[key] ?? NOTHING];
      if (sending) both.reverse();
      change(key, { text: both.map((each) => each.text).filter(Boolean).join("\n"), files: both.flatMap((each) => each.files) });
      mode.value = how.mode ?? "followup";
      setError(wordsOf(failure));
    }
    setSending(false);
  };

  const take = (name: string) => {
    change(key, { text: completed(draft.text, name) });
    setChosen(0);
    box.current?.focus();
  };

  const pressed = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const exact = offered.length === 1 && offered[0]![0] === draft.text;
    if (offered.length && !exact && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      setChosen((chosen + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
      event.preventDefault();
    } else if (offered.length && !exact && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) {
      take(offered[Math.min(chosen, offered.length - 1)]![0]);
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && offered.length) {
      setRefused(draft.text);
    } else if (event.key === "Escape" && edit) {
      editing.value = undefined;
      change(key, NOTHING);
    }
  };

  const used = run?.budget ? Math.round((run.context / run.budget) * 100) : 0;
  return (
    <form class={`composer${dropping ? " dropping" : ""}${working ? " busy" : ""}`} aria-label="Write a message"
      onSubmit={(event) => { event.preventDefault(); send(); }}
      onDragOver={(event) => { event.preventDefault(); setDropping(true); }} onDragLeave={() => setDropping(false)}
      onDrop={(event) => { event.preventDefault(); setDropping(false); if (event.dataTransfer?.files.length) void attach(event.dataTransfer.files); }}>
      <Problem text={error} />
      {help && <div class="help"><dl>{COMMANDS.map(([name, words]) => <><dt class="mono">{name}</dt><dd>{words}</dd></>)}</dl><button type="button" class="quiet small" onClick={() => setHelp(false)}>Close</button></div>}
      {edit && <p class="hint row">Sends in a new branch; this session stays as it is.<button type="button" class="quiet small" onClick={() => { editing.value = undefined; change(key, NOTHING); }}>Cancel</button></p>}
      {preview && <References preview={preview} />}
      {draft.files.length > 0 && (
        <ul class="attached">{draft.files.map((file) => (
          <li>{conversation && isPicture(file) && <Picture file={file} sessionId={conversation.id} />}<bdi>{visible(file.name)}</bdi><span class="hint">{size(file.size)}{file.note ? `, ${file.note}` : ""}</span>
            <button type="button" class="quiet small" aria-label={`Remove ${file.name}`} onClick={() => change(key, { files: draft.files.filter((each) => each !== file) })}>Remove</button></li>
        ))}</ul>
      )}
      {offered.length > 0 && (
        <ul class="offered" id="offered" role="listbox" aria-label="Suggestions" tabIndex={0}>
          {offered.map(([name, words], at) => (
            <li id={`offered-${at}`} role="option" aria-selected={at === chosen} onMouseDown={(event) => { event.preventDefault(); take(name); }}><bdi class="mono">{visible(name)}</bdi> {words}</li>
          ))}
        </ul>
      )}
      <div class="write">
        <textarea ref={box} rows={1} aria-label="Message" placeholder={working ? "Message Palyra while it works…" : "Message Palyra…   / for commands, @ for files"} value={draft.text}
          aria-autocomplete="list" aria-controls={offered.length ? "offered" : undefined} aria-activedescendant={offered.length ? `offered-${chosen}` : undefined}
          onInput={(event) => change(key, { text: event.currentTarget.value })} onKeyDown={pressed}
          onPaste={(event) => { const files = event.clipboardData?.files; if (files?.length) { event.preventDefault(); void attach(files); } }} />
        <div class="chips">
          <label class="chip" title="Attach files">
            <span>+<span class="attach-word"> Attach</span></span>
            <input class="unseen" type="file" multiple aria-label="Attach files" onChange={(event) => { void attach([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ""; }} />
          </label>
          <ModelPicker conversation={conversation} onError={(failure) => setError(wordsOf(failure))} />
          <PresetPicker onError={(failure) => setError(wordsOf(failure))} />
          <FolderChip conversation={conversation} />
          {used > 0 && <span class="chip" title={`Context: ${count(run!.context)} of ${count(run!.budget)} tokens`}><Ring percent={used} />{used} %</span>}
          <div class="end">
            {working && !edit && <select aria-label="While Palyra works" title={MODES.find(([each]) => each === mode.value)?.[2]} value={mode.value === "collect" ? "followup" : mode.value} onChange={(event) => (mode.value = event.currentTarget.value as typeof mode.value)}>{MODES.map(([value, words]) => <option value={value}>{words}</option>)}</select>}
            {working && conversation && <button type="button" class="no" onClick={() => void stop(conversation).catch((failure: unknown) => setError(wordsOf(failure)))}>Stop</button>}
            <button type="submit" class="main" disabled={sending || !online.value}>{edit ? "Send in branch" : "Send"}</button>
          </div>
        </div>
      </div>
    </form>
  );
}

/** How full the model's context is. */
function Ring({ percent }: { percent: number }): VNode {
  return <svg class={percent > 80 ? "ring warn" : "ring"} viewBox="0 0 20 20" role="meter" aria-label="Context used" aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}><circle cx="10" cy="10" r="8" /><circle cx="10" cy="10" r="8" pathLength="100" stroke-dasharray={`${Math.min(100, percent)} 100`} /></svg>;
}

/** The first message has nothing before it to share: then the branch is a new session. */
async function branched(sessionId: string, at: number): Promise<string> {
  return (at >= 1 ? await branch(sessionId, at) : await create()).session_id;
}

function References({ preview }: { preview: ReferencesPreview }): VNode {
  return (
    <div class="references" role="status">
      {preview.references.map((each) => (
        <Badge tone={each.error ? "bad" : ""} title={each.error || (each.warnings ?? []).join("; ")}>
          <bdi>{visible(each.reference)}</bdi> {each.error ? visible(each.error) : `${count(each.tokens ?? 0)} tokens${each.truncated ? ", truncated" : ""}`}
        </Badge>
      ))}
      {(preview.errors ?? []).map((each) => <Badge tone="bad">{visible(each)}</Badge>)}
    </div>
  );
}
