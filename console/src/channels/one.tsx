// One channel: its connection, a test message, its rules, what would become of a message, and ways to hold or remove it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { count, visible, when } from "../core/words";
import { TextField } from "../ui/form";
import { useChanged } from "../ui/fresh";
import { Part, Sure, useAttempt, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { RoutePreview } from "./preview";
import { RulesForm } from "./rules";
import { MESSAGES, stateOf } from "./words";
import type { ChangeChannel, StoredMessage as Message, Tested } from "../types";

export function One({ name }: { name: string }): VNode {
  const found = useLoaded(() => palyra.getChannel(name), [name], useChanged("channels", "settings"));
  const { error, busy, attempt } = useAttempt();
  const it = found.value;
  if (!it) return <><Problem text={found.error} />{!found.error && <p role="status">Loading…</p>}<p><a href={href("channels")}>All channels</a></p></>;
  const [tone, words] = stateOf(it);
  const act = (verb: ChangeChannel["verb"], said: string) => attempt(async () => { await palyra.changeChannel(name, { verb }); found.again(); }, said);
  return (
    <>
      <p class="row"><a href={href("channels")}>All channels</a><span class="hint">{it.kind}</span><Badge tone={tone}>{words}</Badge></p>
      <Problem text={found.error || error} />
      {it.connection.detail && it.connection.state !== "connected" && <p class="notice warn breaks" role="status">{visible(it.connection.detail)}</p>}
      <dl class="facts">
        <dt>Account</dt><dd class="breaks"><bdi>{visible(it.connection.account || "unknown")}</bdi></dd>
        {it.connection.place && <><dt>Server</dt><dd class="breaks">{visible(it.connection.place)}</dd></>}
        <dt>Connections</dt><dd>{it.connection.connects === 1 ? "once" : `${count(it.connection.connects ?? 0)} times`}{it.connection.since_ms ? `; ${words} since ${when(it.connection.since_ms)}` : ""}</dd>
        <dt>Messages</dt><dd>{Object.entries(it.messages ?? {}).map(([state, many]) => `${count(many)} ${MESSAGES[state as Message["state"]]?.[1] ?? state}`).join(", ") || "none yet"}</dd>
      </dl>
      <div class="row">
        {it.paused ? <button type="button" class="small" disabled={busy} onClick={() => void act("resume", "Resumed.")}>Resume</button> : <button type="button" class="small" disabled={busy} onClick={() => void act("pause", "Paused.")}>Pause</button>}
        {it.enabled && <button type="button" class="quiet small" disabled={busy} onClick={() => void act("reconnect", "Reconnecting.")}>Reconnect</button>}
        <Sure words="Remove…" question={`Remove ${it.name} from the settings? Its sessions and its secrets in the vault stay.`} yes="Remove" disabled={busy}
          onYes={() => void attempt(async () => { await palyra.removeChannel(name); go("channels"); }, `${it.name} removed.`)} />
      </div>
      <Test name={name} />
      <RulesForm key={JSON.stringify(it.rules)} channel={it} onSaved={found.again} />
      <RoutePreview name={name} rules={it.rules} />
    </>
  );
}

function Test({ name }: { name: string }): VNode {
  const [conversation, setConversation] = useState("");
  const [text, setText] = useState("This is a test message.");
  const [tested, setTested] = useState<Tested | undefined>();
  const { error, busy, attempt } = useAttempt();
  const ask = () => attempt(async () => { setTested(undefined); setTested(await palyra.testChannel(name, { conversation: conversation.trim(), text })); });
  return (
    <Part id="test" title="Test">
      <form class="form" aria-label="Test channel" onSubmit={(event) => { event.preventDefault(); void ask(); }}>
        <div class="row fields">
          <TextField label="Conversation (optional)" mono value={conversation} onInput={setConversation} hint="Where to send a test message. Empty: only check the account." />
          <TextField label="Test message" value={text} onInput={setText} />
        </div>
        <Problem text={error} />
        {tested && <p class="notice good" role="status">Connected as <bdi class="mono">{visible(tested.me.account)}</bdi>{tested.me.place && ` on ${visible(tested.me.place)}`}.{tested.reply_id && " The message was sent."}</p>}
        <button type="submit" disabled={busy}>{busy ? "Testing…" : conversation.trim() ? "Send test message" : "Test connection"}</button>
      </form>
    </Part>
  );
}
