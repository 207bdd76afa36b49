// Connecting a program: choose it, make a token for it, copy what it needs. A token is in the text once, when it was just made here.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { go, href } from "../core/router";
import { visible } from "../core/words";
import { Code } from "../ui/code";
import { Download } from "../ui/stored";
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
      {!found.value ? !found.error && <p role="status">Loading…</p> : <Connecting key={program.name} it={program} found={found.value} onChanged={found.again} />}
    </>
  );
}

function Connecting({ it, found, onChanged }: { it: Program; found: Listening; onChanged: () => void }): VNode {
  const [made, setMade] = useState<MadeToken | undefined>();
  const { error, busy, attempt } = useAttempt();
  const at = placeOf(found, made?.token ?? "");
  const mint = () => attempt(async () => setMade(await palyra.createToken({ name: it.title, scope: it.scope, expires_ms: Date.now() + LIFE_MS })), "Token created.");
  const enable = () => attempt(async () => { await palyra.changeListeners({ grpc: true }); onChanged(); }, "Enabled.");
  return (
    <section aria-label={it.title}>
      <p>{it.words}</p>
      {it.door === "grpc" && !at.grpc && <p class="notice warn row"><span>gRPC is disabled.</span><button type="button" disabled={busy} onClick={() => void enable()}>Enable gRPC</button><a href={href("connections", "listening")}>Listeners</a></p>}
      <div class="once">
        {made ? <p class="row"><span role="status">The token <strong>{visible(made.info.name)}</strong> is in the text below and shown only once: copy it now. It is valid for a year.</span><button type="button" class="quiet small" onClick={() => setMade(undefined)}>Done</button></p>
          : <p class="row"><button type="button" disabled={busy} onClick={() => void mint()}>Create token</button><span class="hint">{SCOPES[it.scope]}; valid for a year. You can <a href={href("connections", "tokens")}>revoke it</a> at any time.</span></p>}
        <Problem text={error} />
      </div>
      {at.own && <p>The program must trust Palyra's certificate authority: put <Download path={palyra.getCertificateAuthorityPath()} name={AUTHORITY}>{AUTHORITY}</Download> where it runs.</p>}
      {it.snippets(at).map((each) => <div key={each.text}>{each.words && <p>{each.words}</p>}<Code language={each.language} plain={each.language === "sh"} text={each.text} /></div>)}
      {it.name === "cli" && <p>To run tools for Palyra on that machine: <a href={href("connections", "workers")}>enrol it as a worker</a>.</p>}
    </section>
  );
}
