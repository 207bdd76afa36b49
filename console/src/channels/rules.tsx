// What a channel lets in, changed while it runs. What differs from the file is said, and can be taken back.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { visible } from "../core/words";
import { CheckField, SelectField, TextField } from "../ui/form";
import { Part, useAttempt } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import type { ChannelStatus, Rules } from "../types";

const DIRECT = [["pairing", "get a code to approve"], ["allow", "are heard"], ["deny", "are refused"]] as const;
const GROUPS = [["paired", "who is paired or listed"], ["allow", "anybody"]] as const;
const BROADCAST = [["mention_only", "only with a mention"], ["deny", "refused"], ["allow", "taken; answers may ping, too"]] as const;
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
  const odd = (key: (typeof NUMBERS)[number]) => (/^[1-9]\d{0,3}$/.test(draft[key]) ? "" : "A number from 1 up.");
  const bad = NUMBERS.some(odd);
  const changed = Object.keys(channel.changed);
  const save = (changes: Record<string, unknown>, said: string) => attempt(async () => {
    await palyra.changeChannelRules(channel.name, { changes });
    onSaved();
  }, said);
  return (
    <Part id="rules" title="Who is heard">
      <form class="form wide" aria-label="Rules" onSubmit={(event) => { event.preventDefault(); if (!bad) void save(Object.fromEntries(different.map((key) => [key, wire(key, draft)])), "The rules are changed."); }}>
        <div class="row fields">
          <SelectField label="Strangers who write directly" value={draft.direct} options={DIRECT} onChoose={(direct) => set({ direct })} />
          <SelectField label="Heard in groups" value={draft.groups} options={GROUPS} onChoose={(groups) => set({ groups })} />
          <SelectField label="Messages to everyone" value={draft.broadcast} options={BROADCAST} onChoose={(broadcast) => set({ broadcast })} />
        </div>
        <CheckField label="In groups, answer only if mentioned" checked={draft.mention} onChange={(mention) => set({ mention })} />
        <CheckField label="In groups, a session for each sender" hint="Without it the group shares one, and everybody in it sees what is said there." checked={draft.isolate_session_by_sender} onChange={(on) => set({ isolate_session_by_sender: on })} />
        <TextField label="Names that count as a mention" mono value={draft.names} onInput={(names) => set({ names })} hint="Separated by commas; the account's own name always does." />
        <div class="row fields">
          <TextField label="Always heard" mono value={draft.allow} onInput={(allow) => set({ allow })} hint="Senders, separated by commas. If there are any, nobody else is heard but who is paired." />
          <TextField label="Never heard" mono value={draft.deny} onInput={(deny) => set({ deny })} hint="Senders, separated by commas." />
        </div>
        <div class="row fields">
          <TextField label="Messages a minute, of one sender" value={draft.per_minute} onInput={(per_minute) => set({ per_minute })} wrong={odd("per_minute")} eager />
          <TextField label="Under way at once, of one sender" value={draft.waiting} onInput={(waiting) => set({ waiting })} wrong={odd("waiting")} eager />
          <TextField label="Conversations worked on at once" value={draft.concurrency} onInput={(concurrency) => set({ concurrency })} wrong={odd("concurrency")} eager />
        </div>
        {changed.length > 0 && <p class="row hint">Changed over the file: {changed.map((each) => <Badge key={each}>{visible(each)}</Badge>)}<button type="button" class="quiet small" disabled={busy} onClick={() => void save(Object.fromEntries(changed.map((key) => [key, null])), "The rules are as in the file.")}>As in the file again</button></p>}
        <Problem text={error} />
        <button type="submit" class="main" disabled={busy || bad || !different.length}>Save the rules</button>
      </form>
    </Part>
  );
}
