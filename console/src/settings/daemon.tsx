// The daemon itself: what it is, stopping everything, and starting it again.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { status } from "../core/store";
import { count, lasting } from "../core/words";
import { Part, Sure, useAttempt } from "../ui/page";
import { Problem } from "../ui/parts";

const ASK_MS = 250;
const MOST_MS = 30_000;

/** End it and wait until the next one answers. */
export async function restart(): Promise<void> {
  const before = await palyra.status();
  await palyra.restart({ started_ms: before.started_ms });
  const end = Date.now() + MOST_MS;
  for (;;) {
    await new Promise((done) => setTimeout(done, ASK_MS));
    const now = await palyra.status().catch(() => undefined);
    if (now && now.started_ms !== before.started_ms) {
      status.value = now;
      return;
    }
    if (Date.now() > end) throw new Error("Palyra did not come back within 30 s. Start it with `palyra up`; its log says why.");
  }
}

export function Daemon(): VNode | null {
  const [said, setSaid] = useState("");
  const { error, busy, attempt } = useAttempt();
  const now = status.value;
  if (!now) return null;
  const stopAll = () => attempt(async () => {
    const { cancelled } = await palyra.stop();
    setSaid(cancelled.length ? `${cancelled.length} stopped.` : "Nothing was running.");
  });
  const again = () => attempt(async () => {
    setSaid("Starting again…");
    await restart();
    setSaid("It runs again.");
  });
  return (
    <Part id="daemon" title="This Palyra">
      <dl class="facts">
        <dt>version</dt><dd>{now.version}</dd><dt>works in</dt><dd class="mono breaks">{now.workspace || "no folder"}</dd><dt>kept in</dt><dd class="mono breaks">{now.home}</dd>
        <dt>policy</dt><dd>{now.policy.preset} (<a href={href("policies", "presets")}>change it</a>)</dd><dt>tools</dt><dd>{now.tools.length}</dd><dt>entries</dt><dd>{count(now.entries)}</dd><dt>up for</dt><dd>{lasting(now.uptime_ms)}</dd>
      </dl>
      {now.notes.map((note) => <p key={note} class="notice warn">{note}</p>)}
      <Problem text={error} />
      <div class="row">
        <button type="button" class="no" disabled={busy} onClick={() => void stopAll()}>Stop everything</button>
        <Sure words="Start it again…" question="It ends at once and starts again. What runs goes on by itself." yes="Start again" disabled={busy} onYes={() => void again()} />
        <span role="status">{said}</span>
      </div>
    </Part>
  );
}
