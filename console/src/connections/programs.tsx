// Connecting a program: choose it, make a token for it, copy what it needs. A token is in the text once, when it was just made here.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { withKey } from "../core/api";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { visible } from "../core/words";
import { Code } from "../ui/code";
import { useAttempt, useLoaded } from "../ui/page";
import { Choice, Problem } from "../ui/parts";
import { AUTHORITY, PROGRAMS, placeOf, type Program } from "./snippets";
import { SCOPES } from "./words";
import type { Listening, MadeToken } from "../types";

const LIFE_MS = 365 * 86_400_000;
const NAMES = PROGRAMS.map((each) => [each.name, each.title] as const);

export function Programs({ name }: { name: string }): VNode {
  const found = useLoaded(() => palyra.tlsStatus());
  const program = PROGRAMS.find((each) => each.name === name) ?? PROGRAMS[0]!;
  return (
    <>
      <Choice label="Program" value={program.name} options={NAMES} onChoose={(each) => go("connections", "programs", each)} />
      <Problem text={found.error} />
      {!found.value ? !found.error && <p role="status">Loading…</p> : <Connecting key={program.name} it={program} found={found.value} />}
    </>
  );
}

function Connecting({ it, found }: { it: Program; found: Listening }): VNode {
  const [made, setMade] = useState<MadeToken | undefined>();
  const { error, busy, attempt } = useAttempt();
  const at = placeOf(found, made?.token ?? "");
  const mint = () => attempt(async () => setMade(await palyra.createToken({ name: it.title, scope: it.scope, expires_ms: Date.now() + LIFE_MS })), "The token is in the text.");
  return (
    <section aria-label={it.title}>
      <p>{it.words}</p>
      {it.door === "grpc" && !at.grpc && <div class="notice warn"><p>This door is shut. On Palyra's own machine, then start it again:</p><Code language="sh" plain text="palyra config set server.grpc true" /></div>}
      <div class="once">
        {made ? <p class="row"><span role="status">The token <strong>{visible(made.info.name)}</strong> is in the text below, and is shown only now: copy it before you leave this page. It is good for a year.</span><button type="button" class="quiet small" onClick={() => setMade(undefined)}>I have it</button></p>
          : <p class="row"><button type="button" disabled={busy} onClick={() => void mint()}>Make a token for it</button><span class="hint">{SCOPES[it.scope]}; for a year. It can be <a href={href("connections", "tokens")}>taken back</a> at any time.</span></p>}
        <Problem text={error} />
      </div>
      {at.own && <p>It has to trust Palyra's own authority: put <a href={withKey(palyra.getCertificateAuthorityPath())} download={AUTHORITY}>{AUTHORITY}</a> where it runs.</p>}
      {it.snippets(at).map((each) => <div key={each.text}>{each.words && <p>{each.words}</p>}<Code language={each.language} plain={each.language === "sh"} text={each.text} /></div>)}
      {it.name === "cli" && <p>To let a machine run tools for Palyra instead: <a href={href("connections", "workers")}>enrol it as a worker</a>.</p>}
    </section>
  );
}
