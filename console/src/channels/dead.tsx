// Replies that could not be delivered: why, to whom, and another try.
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { visible } from "../core/words";
import { useChanged } from "../ui/fresh";
import { useAttempt, useLoaded } from "../ui/page";
import { Problem } from "../ui/parts";
import { ReplyCard } from "./messages";

export function Dead(): VNode {
  const found = useLoaded(() => palyra.listDeadLetters(), [], useChanged("channels"));
  const { error, busy, attempt } = useAttempt();
  const rows = found.value?.replies ?? [];
  const again = (id: string) => attempt(async () => { await palyra.replayDeadLetter(id); found.again(); }, "Sent again.");
  const drop = (id: string) => attempt(async () => { await palyra.dropDeadLetter(id); found.again(); }, "Dropped.");
  return (
    <>
      <Problem text={found.error || error} />
      {found.value && !rows.length && <p class="hint">No dead letters.</p>}
      <ul class="cards" aria-label="Dead letters">
        {rows.map((each) => (
          <ReplyCard key={each.number} it={each}>
            <div class="row">
              <button type="button" disabled={busy} onClick={() => void again(each.reply_id)}>Resend</button>
              <button type="button" disabled={busy} onClick={() => void drop(each.reply_id)}>Drop</button>
              <span class="hint mono breaks">{visible(each.conversation)}</span>
              {each.message_id && <a href={href("channels", "messages", each.message_id)}>Original message</a>}
            </div>
          </ReplyCard>
        ))}
      </ul>
    </>
  );
}
