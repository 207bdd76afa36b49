// Where people reach Palyra outside of this console: channels, who is admitted, what came of each message, what could not be delivered.
import type { VNode } from "preact";
import { All } from "../channels/all";
import { Dead } from "../channels/dead";
import { NewOne } from "../channels/making";
import { Messages, Traced } from "../channels/messages";
import { One } from "../channels/one";
import { People } from "../channels/people";
import { argument, go, href, second } from "../core/router";
import { visible } from "../core/words";
import { Page } from "../ui/page";
import { Choice } from "../ui/parts";

const VIEWS = [["", "Channels"], ["people", "People"], ["messages", "Messages"], ["dead", "Dead letters"]] as const;
type View = (typeof VIEWS)[number][0];

export function ChannelsPage(): VNode {
  const view = VIEWS.find(([each]) => each === argument.value)?.[0] ?? "";
  const [title, shown] = drawn();
  return (
    <Page title={title} actions={argument.value === "new" ? undefined : <a class="button main" href={href("channels", "new")}>Add channel</a>}>
      <div class="tabs"><Choice<View> label="View" value={view} options={VIEWS} onChoose={(each) => (each ? go("channels", each) : go("channels"))} /></div>
      {shown}
    </Page>
  );
}

function drawn(): readonly [string, VNode] {
  switch (argument.value) {
    case "new": return ["New channel", <NewOne />];
    case "at": return [visible(second.value), <One key={second.value} name={second.value} />];
    case "people": return ["Channels", <People />];
    case "messages": return second.value ? ["Message", <Traced key={second.value} id={second.value} />] : ["Channels", <Messages />];
    case "dead": return ["Channels", <Dead />];
    default: return ["Channels", <All />];
  }
}
