// What a channel lets in, changed while it runs. What differs from the file is said, and can be taken back.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { visible } from "../core/words";
import { CheckField, SelectField, TextField } from "../ui/form";
import { Part, useAttempt } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { ChannelStatus, Rules } from "../types";

const DIRECT = [["pairing", "pairing code"], ["allow", "accept"], ["deny", "reject"]] as const;
const GROUPS = [["paired", "paired or allowed people"], ["allow", "everyone"]] as const;
const BROADCAST = [["mention_only", "only with a mention"], ["deny", "reject"], ["allow", "accept; replies may ping everyone"]] as const;
const LISTS = ["names", "allow", "deny"] as const;
const NUMBERS = ["per_minute", "waiting", "concurrency"] as const;

type Draft = Required<Pick<Rules, "direct" | "groups" | "broadcast" | "mention" | "isolate_session_by_sender">> & Record<(typeof LISTS)[number] | (typeof NUMBERS)[number], string>;

/** What stands on the wire only if it is not the usual. */
function drafted(rules: Rules): Draft {
  return {
    direct: rules.direct ?? "pairing", groups: rules.groups ?? "paired", broadcast: rules.broadcast ?? "mention_only", mention: rules.mention ?? true, isolate_session_by_sender: rules.isolate_session_by_sender ?? true,
    names: (rules.names ?? ["@palyra"]).join(", "), allow: (rules.allow ?? []).join(", "), deny: (rules.deny ?? []).join(", "),
    per_minute: String(rules.per_minute ?? 30), waiting: String(rules.waiting ?? 8), concurrency: String(rules.concurrency ?? 8),
  };
}

function wire(key: keyof Draft, draft: Draft): unknown {
  const value = draft[key];
  if ((LISTS as readonly string[]).includes(key)) return String(value).split(",").map((each) => each.trim()).filter(Boolean);
  return (NUMBERS as readonly string[]).includes(key) ? Number(value) : value;
}

export function RulesForm({ channel, onSaved }: { channel: ChannelStatus; onSaved: () => void }): VNode {
  const before = drafted(channel.rules);
  const [draft, setDraft] = useState(before);
  const { error, busy, attempt } = useAttempt();
  const set = (some: Partial<Draft>) => setDraft({ ...draft, ...some });
  const different = (Object.keys(before) as (keyof Draft)[]).filter((key) => draft[key] !== before[key]);
  const odd = (key: (typeof NUMBERS)[number]) => (/^[1-9]\d{0,3}$/.test(draft[key]) ? "" : "Enter a number from 1.");
  const bad = NUMBERS.some(odd);
  const changed = Object.keys(channel.changed);
  const save = (changes: Record<string, unknown>, said: string) => attempt(async () => {
    await palyra.changeChannelRules(channel.name, { changes });
    onSaved();
  }, said);
  return (
    <Part id="rules" title="Rules">
      <form class="form wide" aria-label="Rules" onSubmit={(event) => { event.preventDefault(); if (!bad) void save(Object.fromEntries(different.map((key) => [key, wire(key, draft)])), "Rules saved."); }}>
        <div class="row fields">
          <SelectField label="Direct messages from unknown people" value={draft.direct} options={DIRECT} onChoose={(direct) => set({ direct })} />
          <SelectField label="Accepted in groups" value={draft.groups} options={GROUPS} onChoose={(groups) => set({ groups })} />
          <SelectField label="Broadcast messages" value={draft.broadcast} options={BROADCAST} onChoose={(broadcast) => set({ broadcast })} />
        </div>
        <CheckField label="In groups, reply only when mentioned" checked={draft.mention} onChange={(mention) => set({ mention })} />
        <CheckField label="In groups, one session per sender" hint="When off, the group shares one session that everyone in it sees." checked={draft.isolate_session_by_sender} onChange={(on) => set({ isolate_session_by_sender: on })} />
        <TextField label="Mention names" mono value={draft.names} onInput={(names) => set({ names })} hint="Comma-separated. The account's own name always counts." />
        <div class="row fields">
          <TextField label="Allow list" mono value={draft.allow} onInput={(allow) => set({ allow })} hint="Comma-separated senders. When set, only these and paired people are accepted." />
          <TextField label="Block list" mono value={draft.deny} onInput={(deny) => set({ deny })} hint="Comma-separated senders." />
        </div>
        <div class="row fields">
          <TextField label="Messages per minute and sender" value={draft.per_minute} onInput={(per_minute) => set({ per_minute })} wrong={odd("per_minute")} eager />
          <TextField label="Concurrent messages per sender" value={draft.waiting} onInput={(waiting) => set({ waiting })} wrong={odd("waiting")} eager />
          <TextField label="Concurrent conversations" value={draft.concurrency} onInput={(concurrency) => set({ concurrency })} wrong={odd("concurrency")} eager />
        </div>
        {changed.length > 0 && <p class="row hint">Differs from the file: {changed.map((each) => <Badge key={each}>{visible(each)}</Badge>)}<button type="button" class="quiet small" disabled={busy} onClick={() => void save(Object.fromEntries(changed.map((key) => [key, null])), "Rules reset.")}>Reset to file</button></p>}
        <Problem text={error} />
        <button type="submit" class="main" disabled={busy || bad || !different.length}>Save rules</button>
      </form>
    </Part>
  );
}
