// What this console and the daemon are set to, and the way out.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { access, get, post, wordsOf } from "../core/api";
import { status } from "../core/store";
import { theme, type Theme } from "../core/theme";
import { count, lasting } from "../core/words";
import { Badge, Choice, PageHead, Problem } from "../ui/parts";
import type { Status } from "../types";

const THEMES: readonly (readonly [Theme, string])[] = [["auto", "As the system"], ["light", "Light"], ["dark", "Dark"]];

export function SettingsPage(): VNode {
  const [error, setError] = useState("");
  const [stopped, setStopped] = useState("");
  useEffect(() => void get<Status>("/v1/status").then((found) => (status.value = found), (failure: unknown) => setError(wordsOf(failure))), []);
  const attempt = (work: Promise<void>) => void work.catch((failure: unknown) => setError(wordsOf(failure)));
  const logout = async () => {
    await post("/v1/logout", {});
    access.value = "out";
  };
  const stopAll = async () => {
    const { cancelled } = await post<{ cancelled: string[] }>("/v1/stop", {});
    setStopped(cancelled.length ? `${cancelled.length} stopped.` : "Nothing was running.");
  };
  const now = status.value;
  return (
    <div class="page">
      <PageHead title="Settings" />
      <Problem text={error} />
      <section aria-labelledby="look"><h2 id="look">Appearance</h2><Choice label="Appearance" value={theme.value} options={THEMES} onChoose={(value) => (theme.value = value)} /></section>
      {now && (
        <>
          <section aria-labelledby="models">
            <h2 id="models">Models</h2>
            <ul class="plain-list">{now.models.map((each) => <li><span class="mono">{each.name}</span> {each.default && <Badge>used first</Badge>} <Badge tone={each.healthy ? "good" : "bad"}>{each.healthy ? "works" : "does not answer now"}</Badge> <span class="hint">{count(each.context_tokens)} tokens at once</span></li>)}</ul>
            <p class="hint">Keys are stored with <code>palyra vault set</code>, providers are named in <code>{now.home}/config.toml</code>.</p>
          </section>
          <section aria-labelledby="daemon">
            <h2 id="daemon">This Palyra</h2>
            <dl class="facts">
              <dt>version</dt><dd>{now.version}</dd><dt>works in</dt><dd class="mono breaks">{now.workspace || "no folder"}</dd><dt>kept in</dt><dd class="mono breaks">{now.home}</dd>
              <dt>policy</dt><dd>{now.policy.preset}</dd><dt>tools</dt><dd>{now.tools.length}</dd><dt>entries</dt><dd>{count(now.entries)}</dd><dt>up for</dt><dd>{lasting(now.uptime_ms)}</dd>
            </dl>
            {now.notes.map((note) => <p class="notice warn">{note}</p>)}
            <div class="row"><button type="button" class="no" onClick={() => attempt(stopAll())}>Stop everything</button><span role="status">{stopped}</span></div>
          </section>
        </>
      )}
      <section aria-labelledby="out"><h2 id="out">This browser</h2><button type="button" onClick={() => attempt(logout())}>Log out</button></section>
    </div>
  );
}
