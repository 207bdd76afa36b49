// What decides the next answer besides the model, in sight below the text: the policy preset and the folder. Both are changed in place.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Conversation } from "../core/conversation";
import { sessions, status } from "../core/store";
import * as palyra from "../core/verbs";
import { shortPath, visible } from "../core/words";
import { PRESETS } from "../policies/preset_words";
import type { NewPreset } from "../types";
import { folder } from "./verbs";

type OnError = (failure: unknown) => void;

/** A choice is not yet a change: what it means is said first, and it holds for every session. */
export function PresetPicker({ onError }: { onError: OnError }): VNode | null {
  const [chosen, setChosen] = useState<NewPreset["preset"] | undefined>();
  const now = status.value?.policy.preset;
  if (!now) return null;
  const wanted = PRESETS.find(([each]) => each === chosen);
  const use = async () => {
    try {
      await palyra.setPreset({ preset: chosen! });
      status.value = await palyra.status();
    } catch (failure) {
      onError(failure);
    }
    setChosen(undefined);
  };
  return (
    <>
      <select aria-label="Policy preset" title="Policy preset: decides what runs without approval" value={chosen ?? now} onChange={(event) => setChosen(event.currentTarget.value === now ? undefined : event.currentTarget.value as NewPreset["preset"])}>
        {PRESETS.map(([name, words]) => <option key={name} value={name}>{words}</option>)}
      </select>
      {wanted && (
        <div class="above" role="group" aria-label="Change policy preset">
          <p>{wanted[2]} In force at once, in all sessions.</p>
          <div class="row"><button type="button" class="main" onClick={() => void use()}>Use {wanted[1]}</button><button type="button" onClick={() => setChosen(undefined)}>Cancel</button></div>
        </div>
      )}
    </>
  );
}

/** The folder of a session is chosen before its first message, and stays. */
export function FolderChip({ conversation }: { conversation: Conversation | undefined }): VNode | null {
  const [opened, setOpened] = useState(false);
  const used = conversation ? conversation.session.value?.workspace : folder.value || status.value?.workspace;
  if (conversation) return used ? <span class="chip folder" title={`Folder of this session: ${visible(used)}`}>{visible(shortPath(used))}</span> : null;
  const known = [...new Set(sessions.value.map((each) => each.workspace ?? "").filter(Boolean))].slice(0, 20);
  return (
    <>
      <button type="button" class="chip folder" aria-expanded={opened} title={`Folder of the new session: ${visible(used ?? "none")}`} onClick={() => setOpened(!opened)}>{visible(shortPath(used || "no folder"))}</button>
      {opened && (
        <div class="above" role="group" aria-label="Choose folder">
          <label>Folder<input class="mono" list="known-folders" placeholder={status.value?.workspace ?? ""} value={folder.value} spellcheck={false}
            onInput={(event) => (folder.value = event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Enter") { event.preventDefault(); setOpened(false); } }} /></label>
          <datalist id="known-folders">{known.map((each) => <option key={each} value={each} />)}</datalist>
          <p class="hint">The agent works in this folder; the session keeps it.</p>
          <div class="row"><button type="button" class="main" onClick={() => setOpened(false)}>Use folder</button><button type="button" onClick={() => { folder.value = ""; setOpened(false); }}>Reset</button></div>
        </div>
      )}
    </>
  );
}
