// What this console and the daemon are set to, and the way out.
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { access } from "../core/api";
import * as palyra from "../core/verbs";
import { href } from "../core/router";
import { status } from "../core/store";
import { theme, type Theme } from "../core/theme";
import { Presets } from "../policies/presets";
import { Daemon } from "../settings/daemon";
import { Providers } from "../settings/providers";
import { Vault } from "../settings/vault";
import { Page, Part, useAttempt } from "../ui/page";
import { Choice, Problem } from "../ui/parts";

const THEMES: readonly (readonly [Theme, string])[] = [["auto", "As the system"], ["light", "Light"], ["dark", "Dark"]];

export function SettingsPage(): VNode {
  useEffect(() => void palyra.status().then((found) => (status.value = found), () => undefined), []);
  return (
    <Page title="Settings">
      <Part id="look" title="Appearance"><Choice label="Appearance" value={theme.value} options={THEMES} onChoose={(value) => (theme.value = value)} /></Part>
      <Providers />
      <Part id="preset" title="What it may do"><Presets /><p><a href={href("policies")}>Who can do what, and policies of your own</a></p></Part>
      <Vault />
      <Part id="tokens" title="Programs and tokens"><p><a href={href("connections")}>Connect a program</a>, see <a href={href("connections", "tokens")}>who has a token</a>, and <a href={href("connections", "listening")}>where Palyra listens</a>.</p></Part>
      <Daemon />
      <ThisBrowser />
    </Page>
  );
}

function ThisBrowser(): VNode {
  const { error, attempt } = useAttempt();
  const logout = () => attempt(async () => {
    await palyra.logout();
    access.value = "out";
  });
  return <Part id="out" title="This browser"><Problem text={error} /><button type="button" onClick={() => void logout()}>Log out</button></Part>;
}
