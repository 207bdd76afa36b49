// What is behind the bell: every notice with the page it is about, and which of them were read.
import type { VNode } from "preact";
import { markRead, moreNotices, notices, pageOf, showOlderNotices, unread } from "../core/notices";
import { ago, visible, when } from "../core/words";
import { useAttempt } from "./page";
import { Badge, Problem } from "./parts";
import { Tell } from "./tell";
import type { Notice } from "../types";

export const ABOUT: Record<Notice["about"], string> = {
  approval: "Approval", budget: "Budget", channel: "Channel", daemon: "Daemon", incident: "Incident", learning: "Learning", notes: "Project notes", provider: "Provider", schedule: "Schedule",
};

export function Told(): VNode {
  const { error, busy, attempt } = useAttempt();
  const all = notices.value;
  return (
    <>
      <div class="row told-head"><h2>Notices</h2>{unread.value > 0 && <button type="button" class="quiet small" disabled={busy} onClick={() => void attempt(() => markRead(), "All marked as read.")}>Mark all as read</button>}</div>
      <Problem text={error} />
      {!all ? <p role="status">Loading…</p> : !all.length && <p class="hint">No notices yet. Approvals that wait long, budgets near their limit, failed schedules and new learning appear here.</p>}
      <ul class="told-list" aria-label="Notices">{all?.map((each) => <One key={each.notice_id} notice={each} onRead={() => void attempt(() => markRead(each))} />)}</ul>
      {moreNotices.value && <button type="button" class="quiet" disabled={busy} onClick={() => void attempt(showOlderNotices)}>Show older</button>}
      <Tell />
    </>
  );
}

function One({ notice, onRead }: { notice: Notice; onRead: () => void }): VNode {
  const leads = pageOf(notice.link);
  return (
    <li class={notice.read_ms ? "" : "fresh-notice"}>
      <div class="row"><Badge tone={notice.about === "incident" ? "bad" : notice.read_ms ? "" : "warn"}>{ABOUT[notice.about] ?? notice.about}</Badge><time class="hint" dateTime={new Date(notice.created_ms).toISOString()} title={when(notice.created_ms)}>{ago(notice.created_ms)}</time>{!notice.read_ms && <span class="unseen">unread</span>}</div>
      <p><bdi>{visible(notice.text)}</bdi></p>
      <div class="row">
        {leads && <a href={`#${leads}`} onClick={onRead}>Open</a>}
        {!notice.read_ms && <button type="button" class="quiet small" onClick={onRead}>Mark as read</button>}
      </div>
    </li>
  );
}
