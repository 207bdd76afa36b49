// The question before sessions are deleted: what goes, what stays provable, and how they come back.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../core/api";
import { argument, go } from "../core/router";
import { refreshLists } from "../core/store";
import * as palyra from "../core/verbs";
import { count, visible } from "../core/words";
import { Problem } from "../ui/parts";
import type { Session } from "../types";

export interface Deletable extends Pick<Session, "session_id"> { title?: string | undefined; head_seq?: number | undefined }

export function DeleteDialog({ which, onClose }: { which: readonly Deletable[]; onClose: () => void }): VNode {
  const box = useRef<HTMLDialogElement>(null);
  const [left, setLeft] = useState(which);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => box.current?.showModal(), []);
  const one = left.length === 1 ? left[0] : undefined;
  const entries = left.reduce((sum, each) => sum + (each.head_seq ?? 0), 0);
  const erase = async () => {
    setBusy(true);
    setError("");
    let rest = left;
    try {
      while (rest[0]) {
        await palyra.deleteSession(rest[0].session_id);
        if (rest[0].session_id === argument.peek()) go("chat");
        rest = rest.slice(1);
      }
      box.current?.close();
    } catch (failure) {
      setError(`${visible(rest[0]?.title || "Untitled")}: ${wordsOf(failure)}`);
    }
    setLeft(rest);
    setBusy(false);
    await refreshLists().catch(() => undefined);
  };
  return (
    <dialog ref={box} class="palette ask" aria-labelledby="deleting" onClose={onClose} onClick={(event) => { if (event.target === box.current) box.current?.close(); }}>
      <div>
        <h2 id="deleting">{one ? <>Delete “<bdi>{visible(one.title || "Untitled")}</bdi>”?</> : `Delete ${left.length} sessions?`}</h2>
        <dl>
          <dt>What you lose</dt>
          <dd>{entries > 1 ? `${count(entries)} entries leave` : "The conversation leaves"} the journal, the session list and search, with attachments, results and undo data. You cannot undo, rewind or fork from {one ? "it" : "them"} any more.</dd>
          <dt>What stays provable</dt>
          <dd>Palyra keeps a sealed, read-only copy and records its SHA-256 on the system tape, so the journal still verifies from the first entry to the last. Costs and token counts stay in Usage.</dd>
          <dt>How to get {one ? "it" : "them"} back</dt>
          <dd>Restore under <strong>Archived</strong>, as long as the sealed copy exists.</dd>
        </dl>
        <Problem text={error} />
        <div class="row">
          <button type="button" class="no" disabled={busy || !left.length} onClick={() => void erase()}>{busy ? "Deleting…" : one ? "Delete session" : `Delete ${left.length} sessions`}</button>
          <button type="button" disabled={busy} autofocus onClick={() => box.current?.close()}>Cancel</button>
        </div>
      </div>
    </dialog>
  );
}
