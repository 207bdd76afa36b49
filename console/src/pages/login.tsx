// The login page: how to get a one-time link from the terminal where Palyra runs, and a field to paste it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { argument } from "../core/router";
import { Copy } from "../ui/code";
import { Problem } from "../ui/parts";

export function LoginPage(): VNode {
  const [error, setError] = useState("");
  const used = argument.value === "used";
  const open = (given: string) => {
    try {
      const link = new URL(given.trim(), location.origin);
      const code = link.searchParams.get("code");
      if (!code) throw new Error("no code");
      // Only the code is taken: the link itself could lead anywhere.
      location.assign(`/login?code=${encodeURIComponent(code)}`);
    } catch {
      setError("This is not a login link. It looks like http://127.0.0.1:7142/login?code=…");
    }
  };
  return (
    <main class="login" id="main">
      <span class="brand"><span class="logo" aria-hidden="true" /></span>
      <h1>Log in to Palyra</h1>
      {used && <p class="problem" role="alert">This link was already used or is older than 10 minutes. Get a new one.</p>}
      <p>On the computer where Palyra runs, type:</p>
      <p class="row command"><code>palyra login</code><Copy text="palyra login" /></p>
      <p>Open the link it prints, or paste it here:</p>
      <form onSubmit={(event) => { event.preventDefault(); open(String(new FormData(event.currentTarget).get("link") ?? "")); }}>
        <label>Login link<input name="link" autocomplete="off" spellcheck={false} required /></label>
        <button type="submit" class="main">Log in</button>
      </form>
      <Problem text={error} />
    </main>
  );
}
