// What came in and what became of it, while it happens: every message, and one of them step by step.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { ago, lasting, visible, when } from "../core/words";
import { SelectField } from "../ui/form";
import { useChanged } from "../ui/fresh";
import { Part, useLoaded } from "../ui/page";
import { Badge, Problem } from "../ui/parts";
import { Table } from "../ui/table";
import { MESSAGES, REPLIES, REPLY_KINDS } from "./words";
import type { StoredMessage as Message, Reply } from "../types";

const STATES = [["", "all"], ...Object.entries(MESSAGES).map(([state, [, words]]) => [state as Message["state"], words] as const)] as const;

export function Messages(): VNode {
  const [channel, setChannel] = useState("");
  const [state, setState] = useState<Message["state"] | "">("");
  const [most, setMost] = useState(50);
  const channels = useLoaded(() => palyra.listChannels());
  const found = useLoaded(() => palyra.listChannelMessages({ limit: most, channel, state }), [channel, state, most], useChanged("channels"));
  const rows = found.value?.messages ?? [];
  const names = (channels.value?.channels ?? []).map((each) => [each.name, each.name] as const);
  return (
    <>
      <Problem text={found.error} />
      <div class="row fields">
        <SelectField label="Channel" value={channel} options={[["", "all"], ...names]} onChoose={setChannel} />
        <SelectField label="State" value={state} options={STATES} onChoose={setState} />
      </div>
      {!found.value ? !found.error && <p role="status">Loading…</p> : !rows.length ? <p class="hint">No messages yet.</p> : (
        <Table label="Messages" rows={rows} keyOf={(each) => each.message_id} onOpen={(each) => go("channels", "messages", each.message_id)} columns={[
          { key: "when", words: "Received", draw: (each) => <time dateTime={new Date(each.received_ms).toISOString()} title={when(each.received_ms)}>{ago(each.received_ms)}</time> },
          { key: "who", words: "From", draw: (each) => <><bdi>{visible(each.inbound.sender.display || each.sender)}</bdi> <span class="hint">{each.connector}</span></> },
          { key: "text", words: "Message", draw: (each) => <a class="breaks" href={href("channels", "messages", each.message_id)}><bdi>{short(each)}</bdi></a> },
          { key: "state", words: "State", draw: (each) => <State it={each} /> },
        ]} />
      )}
      {found.value?.next ? <button type="button" onClick={() => setMost(Math.min(most + 50, 1000))}>Show older</button> : null}
    </>
  );
}

function short(message: Message): string {
  const text = visible(message.inbound.text ?? "");
  return (text.length > 120 ? `${text.slice(0, 120)}…` : text) || (message.files ? `${message.files} files` : "nothing");
}

function State({ it }: { it: Message }): VNode {
  const [tone, words] = MESSAGES[it.state];
  return <><Badge tone={tone}>{words}</Badge>{it.reason && it.reason !== "accepted" && <code> {visible(it.reason)}</code>}</>;
}

export function Traced({ id }: { id: string }): VNode {
  const found = useLoaded(() => palyra.traceMessage({ of: id }), [id], useChanged("channels"));
  const it = found.value;
  if (!it) return <><Problem text={found.error} />{!found.error && <p role="status">Loading…</p>}</>;
  const { message, steps, replies } = it;
  return (
    <>
      <p class="row"><a href={href("channels", "messages")}>All messages</a><State it={message} /></p>
      <Problem text={found.error} />
      <blockquote class="says breaks"><bdi>{visible(message.inbound.text ?? "") || "no text"}</bdi></blockquote>
      <dl class="facts">
        <dt>From</dt><dd class="breaks"><bdi>{visible(message.inbound.sender.display || message.sender)}</bdi> <span class="mono hint">{visible(message.sender)}</span></dd>
        <dt>Channel</dt><dd class="breaks"><a href={href("channels", "at", message.connector)}>{message.connector}</a>, <span class="mono">{visible(message.conversation)}</span>{message.thread && <>, thread <span class="mono">{visible(message.thread)}</span></>}</dd>
        {message.principal && <><dt>Acts as</dt><dd class="mono breaks">{visible(message.principal)}</dd></>}
        {message.files ? <><dt>Files</dt><dd>{message.files}</dd></> : null}
        {message.session_id && <><dt>Session</dt><dd><a href={href("timeline", message.session_id)}>Timeline</a></dd></>}
      </dl>
      <Part id="steps" title="Trace">
        <ol aria-label="Steps" aria-live="polite">{steps.map((each, at) => <li key={at}><strong>{visible(each.step)}</strong> <span class="hint">{at ? `after ${lasting(Math.max(0, each.time_ms - steps[0]!.time_ms))}` : when(each.time_ms)}</span>{each.detail && <div class="breaks">{visible(each.detail)}</div>}</li>)}</ol>
      </Part>
      <Part id="replies" title="Replies">
        {!replies.length && <p class="hint">None yet.</p>}
        <ul class="cards" aria-label="Replies">{replies.map((each) => <ReplyCard key={each.number} it={each}><p><a href={`${href("journal")}?why=${each.reply_id}`}>Why was this sent?</a></p></ReplyCard>)}</ul>
      </Part>
    </>
  );
}

export function ReplyCard({ it, children }: { it: Reply; children?: VNode | false }): VNode {
  const [tone, words] = REPLIES[it.state];
  return (
    <li class="card">
      <div class="row"><Badge tone={tone}>{words}</Badge><span>{REPLY_KINDS[it.kind]}{it.parts > 1 && `, part ${it.part + 1} of ${it.parts}`}</span><span class="hint">{it.connector}, {ago(it.created_ms)}{(it.attempts ?? 0) > 1 && `, ${it.attempts} attempts`}</span>{it.doubtful && <Badge tone="warn">{it.state === "sent" ? "Possible duplicate" : "May have arrived"}</Badge>}</div>
      <div class="says breaks"><bdi>{visible(it.body.text)}</bdi></div>
      {it.error && <p class="hint breaks">{visible(it.error)}</p>}
      {children}
    </li>
  );
}
