// Every other way to Palyra than this console: programs and their tokens, machines that work for it, where it listens and what it shows there.
import type { VNode } from "preact";
import { Listening } from "../connections/listening";
import { Programs } from "../connections/programs";
import { Tokens } from "../connections/tokens";
import { One } from "../connections/worker";
import { Workers } from "../connections/workers";
import { argument, go, second } from "../core/router";
import { visible } from "../core/words";
import { Page } from "../ui/page";
import { Choice } from "../ui/parts";

const VIEWS = [["", "Programs"], ["tokens", "Tokens"], ["workers", "Workers"], ["listening", "Listeners"]] as const;
type View = (typeof VIEWS)[number][0];

export function ConnectionsPage(): VNode {
  const view = VIEWS.find(([each]) => each === argument.value)?.[0] ?? "";
  const [title, shown] = drawn();
  return (
    <Page title={title}>
      <div class="tabs"><Choice<View> label="View" value={view} options={VIEWS} onChoose={(each) => (each ? go("connections", each) : go("connections"))} /></div>
      {shown}
    </Page>
  );
}

function drawn(): readonly [string, VNode] {
  switch (argument.value) {
    case "tokens": return ["Connections", <Tokens />];
    case "workers": return second.value ? [visible(second.value), <One key={second.value} name={second.value} />] : ["Connections", <Workers />];
    case "listening": return ["Connections", <Listening />];
    default: return ["Connections", <Programs name={second.value} />];
  }
}
