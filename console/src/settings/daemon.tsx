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
    if (Date.now() > end) throw new Error("Palyra did not restart within 30 s. Start it with `palyra up` and check its log.");
  }
}

export function Daemon(): VNode | null {
  const [said, setSaid] = useState("");
  const { error, busy, attempt } = useAttempt();
  const now = status.value;
  if (!now) return null;
  const stopAll = () => attempt(async () => {
    const { cancelled } = await palyra.stop();
    setSaid(cancelled.length ? `Stopped ${cancelled.length}.` : "Nothing was running.");
  });
  const again = () => attempt(async () => {
    setSaid("Restarting…");
    await restart();
    setSaid("Restarted.");
  });
  return (
    <Part id="daemon" title="Daemon">
      <dl class="facts">
        <dt>Version</dt><dd>{now.version}</dd><dt>Workspace</dt><dd class="mono breaks">{now.workspace || "no folder"}</dd><dt>Data folder</dt><dd class="mono breaks">{now.home}</dd>
        <dt>Policy</dt><dd>{now.policy.preset} (<a href={href("policies", "presets")}>change</a>)</dd><dt>Tools</dt><dd>{now.tools.length}</dd><dt>Journal entries</dt><dd>{count(now.entries)}</dd><dt>Uptime</dt><dd>{lasting(now.uptime_ms)}</dd>
      </dl>
      {now.notes.map((note) => <p key={note} class="notice warn">{note}</p>)}
      <Problem text={error} />
      <div class="row">
        <button type="button" class="no" disabled={busy} onClick={() => void stopAll()}>Stop everything</button>
        <Sure words="Restart…" question="Palyra stops and starts again. Active runs continue by themselves." yes="Restart" disabled={busy} onYes={() => void again()} />
        <span role="status">{said}</span>
      </div>
    </Part>
  );
}
