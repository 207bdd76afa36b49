// What this console and the daemon are set to, and the way out.
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import * as palyra from "../core/verbs";
import { logOut } from "../core/leaving";
import { href, query, setQuery } from "../core/router";
import { status } from "../core/store";
import { theme, type Theme } from "../core/theme";
import { Presets } from "../policies/presets";
import { Daemon } from "../settings/daemon";
import { Providers } from "../settings/providers";
import { Vault } from "../settings/vault";
import { Page, Part, useAttempt } from "../ui/page";
import { Choice, Empty, Problem } from "../ui/parts";

const THEMES: readonly (readonly [Theme, string])[] = [["auto", "System"], ["light", "Light"], ["dark", "Dark"]];

/** Sections with the words that they are found by, besides their titles. */
const SECTIONS: readonly (readonly [string, string, () => VNode | null])[] = [
  ["look", "appearance theme dark light system", () => <Part id="look" title="Appearance"><Choice label="Appearance" value={theme.value} options={THEMES} onChoose={(value) => (theme.value = value)} /></Part>],
  ["models", "models providers key api default ollama openai anthropic gemini", Providers],
  ["preset", "policy preset permissions approval", () => <Part id="preset" title="Policy preset"><Presets /><p><a href={href("policies")}>Permissions and policy files</a></p></Part>],
  ["vault", "vault secrets passwords keys", Vault],
  ["access", "access programs tokens listeners tls connect", () => <Part id="tokens" title="Access"><p><a href={href("connections")}>Connect a program</a>, manage <a href={href("connections", "tokens")}>tokens</a> and <a href={href("connections", "listening")}>listeners</a>.</p></Part>],
  ["daemon", "daemon version workspace folder restart stop uptime", Daemon],
  ["browser", "this browser log out", ThisBrowser],
];

export function SettingsPage(): VNode {
  useEffect(() => void palyra.status().then((found) => (status.value = found), () => undefined), []);
  const wanted = (query.value.get("q") ?? "").trim().toLowerCase();
  const shown = SECTIONS.filter(([, words]) => wanted.split(/\s+/).every((each) => words.includes(each)));
  return (
    <Page title="Settings" actions={<input type="search" aria-label="Search settings" placeholder="Search settings" value={query.value.get("q") ?? ""} onInput={(event) => setQuery({ q: event.currentTarget.value })} />}>
      {shown.map(([id, , Shown]) => <Shown key={id} />)}
      {!shown.length && <Empty><h2>No setting matches</h2><div class="row"><button type="button" onClick={() => setQuery({ q: "" })}>Clear search</button></div></Empty>}
    </Page>
  );
}

function ThisBrowser(): VNode {
  const { error, attempt } = useAttempt();
  return <Part id="out" title="This browser"><Problem text={error} /><button type="button" onClick={() => void attempt(logOut)}>Log out</button></Part>;
}
