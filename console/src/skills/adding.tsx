// A new MCP server: a program on Palyra's machine, in the sandbox, or an address. It starts at once; its tools wait for a review.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import * as palyra from "../core/verbs";
import { AreaField, CheckField, TextField } from "../ui/form";
import { useAttempt } from "../ui/page";
import { Choice, Problem } from "../ui/parts";

const NAME = /^[a-z0-9][a-z0-9-]{0,30}$/;
const lines = (text: string): string[] => text.split("\n").map((each) => each.trim()).filter(Boolean);

/** A command line in its words: what stands in quotes is one. */
export function words(line: string): string[] {
  return [...line.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|(\S+)/g)].map((found) => found[1]?.replace(/\\(.)/g, "$1") ?? found[2] ?? found[3]!);
}

export function AddServer({ onAdded }: { onAdded: () => void }): VNode {
  const [kind, setKind] = useState<"program" | "address">("program");
  const [name, setName] = useState("");
  const [command, setCommand] = useState("");
  const [url, setUrl] = useState("");
  const [secrets, setSecrets] = useState("");
  const [hosts, setHosts] = useState("");
  const [folder, setFolder] = useState("");
  const [writable, setWritable] = useState(true);
  const { error, busy, attempt } = useAttempt();
  const wrong = !name || NAME.test(name) ? "" : "Use lower-case letters, digits and dashes.";
  const odd = !url || /^https?:\/\/\S+$/.test(url) ? "" : "Enter an address that begins with https://.";
  const ready = name && !wrong && (kind === "program" ? command.trim() : url && !odd);
  const add = () => attempt(async () => {
    await palyra.saveMcpServer(kind === "program"
      ? { name, command: words(command), env: lines(secrets), hosts: hosts.split(/[\s,]+/).filter(Boolean), folder: folder.trim(), writable }
      : { name, url, headers: lines(secrets) });
    for (const clear of [setName, setCommand, setUrl, setSecrets, setHosts, setFolder]) clear("");
    onAdded();
  }, "Added. Review its tools when it is ready.");
  return (
    <form class="form" aria-label="Add MCP server" onSubmit={(event) => { event.preventDefault(); if (ready) void add(); }}>
      <Choice label="Kind" value={kind} options={[["program", "Program"], ["address", "Address"]]} onChoose={setKind} />
      <TextField label="Name" mono value={name} onInput={setName} wrong={wrong} required hint="Its tools are called mcp:NAME/TOOL." />
      {kind === "program" ? (
        <>
          <TextField label="Command" mono value={command} onInput={setCommand} required placeholder="mcp-server-time --local-timezone UTC" hint="It runs on Palyra's machine, in the sandbox." />
          <details>
            <summary>Advanced</summary>
            <AreaField label="Environment" value={secrets} onInput={setSecrets} placeholder="TOKEN=vault:MY_TOKEN" hint="One NAME=value a line; secrets as NAME=vault:SECRET." />
            <TextField label="Hosts it may reach" mono value={hosts} onInput={setHosts} placeholder="api.example.org" hint="Without any, it has no network." />
            <TextField label="Folder it works in" mono value={folder} onInput={setFolder} hint="Empty: a folder of its own." />
            <CheckField label="It may change this folder" checked={writable} onChange={setWritable} />
          </details>
        </>
      ) : (
        <>
          <TextField label="Address" mono value={url} onInput={setUrl} wrong={odd} required placeholder="https://notes.example.org/mcp" />
          <AreaField label="Headers" value={secrets} onInput={setSecrets} placeholder="Authorization: Bearer vault:NOTES" hint="One a line; secrets as vault:SECRET." />
        </>
      )}
      <Problem text={error} />
      <button type="submit" class="main" disabled={busy || !ready}>Add server</button>
    </form>
  );
}
