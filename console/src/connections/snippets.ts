// What to paste where, for each kind of program: with the address by which this browser has reached Palyra, and a place for a token.
import type { Listening, Token } from "../types";

export const NO_TOKEN = "YOUR_TOKEN";
/** What other machines are given to trust Palyra's own authority. */
export const AUTHORITY = "palyra-ca.pem";
const GRPC_PORT = "7443";

export interface Place {
  origin: string;
  host: string;
  token: string;
  /** Where gRPC is; empty while it is shut. */
  grpc: string;
  /** Whether callers have to be told to trust Palyra's own authority. */
  own: boolean;
  tls: boolean;
}

export interface Snippet {
  language: string;
  text: string;
  words?: string;
}

export interface Program {
  name: string;
  title: string;
  words: string;
  scope: Extract<Token["scope"], "client" | "operator">;
  snippets: (at: Place) => Snippet[];
  /** The door that it needs, if that is not always open. */
  door?: "grpc";
}

export function placeOf(found: Listening | undefined, token: string): Place {
  const grpc = found?.listeners.find((each) => each.name === "grpc");
  const tls = location.protocol === "https:";
  const port = grpc?.address.split(":").at(-1) ?? GRPC_PORT;
  return { origin: location.origin, host: location.hostname, token: token || NO_TOKEN, grpc: grpc ? `${location.hostname}:${port}` : "", own: tls && Boolean(found?.served?.own), tls };
}

function exported(at: Place, names: Record<string, string>, authority: string): string {
  const own: Record<string, string> = at.own ? { [authority]: AUTHORITY } : {};
  return Object.entries({ ...names, ...own }).map(([name, value]) => `export ${name}=${value}`).join("\n");
}

const ASK = "What is in this folder?";
const environment = (at: Place, authority = AUTHORITY) => ({ PALYRA_URL: at.origin, PALYRA_TOKEN: at.token, ...(at.own ? { PALYRA_CA: authority } : {}) });
// Nobody knows in which folder an editor starts its programs.
const started = (at: Place) => environment(at, `/PATH/TO/${AUTHORITY}`);
const json = (value: unknown): Snippet => ({ language: "json", text: JSON.stringify(value, null, 2) });

export const PROGRAMS: readonly Program[] = [
  {
    name: "curl", title: "curl", scope: "client", words: "HTTP and JSON; live updates as server-sent events.",
    snippets: (at) => {
      const curl = `curl${at.own ? ` --cacert ${AUTHORITY}` : ""}`;
      const bearer = `-H "Authorization: Bearer $PALYRA_TOKEN"`;
      return [
        { language: "sh", text: exported({ ...at, own: false }, { PALYRA_URL: at.origin, PALYRA_TOKEN: at.token }, "") },
        { language: "sh", words: "Send a message:", text: `${curl} "$PALYRA_URL/v1/chat/completions" ${bearer} \\\n  -H "Content-Type: application/json" \\\n  -d '{"model": "palyra", "messages": [{"role": "user", "content": "${ASK}"}]}'` },
        { language: "sh", words: "Watch all events:", text: `${curl} -N ${bearer} "$PALYRA_URL/v1/events"` },
      ];
    },
  },
  {
    name: "python", title: "Python", scope: "client", words: "The typed client comes with the palyra package, sync or async.",
    snippets: (at) => [
      { language: "python", text: `from palyra.client import Client\n\nwith Client("${at.origin}", "${at.token}"${at.own ? `, authority="${AUTHORITY}"` : ""}) as palyra:\n    print(palyra.ask("${ASK}").text)` },
      { language: "python", words: "Or async:", text: `import asyncio\n\nfrom palyra.client import AsyncClient\n\n\nasync def main():\n    async with AsyncClient("${at.origin}", "${at.token}"${at.own ? `, authority="${AUTHORITY}"` : ""}) as palyra:\n        print((await palyra.ask("${ASK}")).text)\n\n\nasyncio.run(main())` },
    ],
  },
  {
    name: "javascript", title: "JavaScript", scope: "client", words: "For Node 18 or newer. The package is in clients/js of Palyra's sources.",
    snippets: (at) => [
      { language: "sh", text: `npm install ./palyra/clients/js${at.own ? `\nexport NODE_EXTRA_CA_CERTS=${AUTHORITY}` : ""}` },
      { language: "javascript", text: `import { Palyra } from "@palyra/client";\n\nconst palyra = new Palyra({ url: "${at.origin}", token: "${at.token}" });\nconsole.log((await palyra.ask("${ASK}")).text);` },
    ],
  },
  {
    name: "openai", title: "OpenAI SDK", scope: "client", words: "Use OpenAI libraries, or any program with a configurable base URL, with the agent.",
    snippets: (at) => [
      { language: "sh", text: exported(at, { OPENAI_BASE_URL: `${at.origin}/v1`, OPENAI_API_KEY: at.token }, "SSL_CERT_FILE") },
      { language: "python", words: "Python:", text: `from openai import OpenAI\n\nclient = OpenAI(base_url="${at.origin}/v1", api_key="${at.token}")\nanswer = client.chat.completions.create(model="palyra", messages=[{"role": "user", "content": "${ASK}"}])\nprint(answer.choices[0].message.content)` },
      { language: "javascript", words: "JavaScript:", text: `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${at.origin}/v1", apiKey: "${at.token}" });\nconst answer = await client.chat.completions.create({ model: "palyra", messages: [{ role: "user", content: "${ASK}" }] });\nconsole.log(answer.choices[0].message.content);` },
    ],
  },
  {
    name: "grpc", title: "gRPC", scope: "client", door: "grpc", words: "The typed API over one connection. The .proto files are in proto/palyra/v1 of Palyra's sources; reflection is on.",
    snippets: (at) => {
      const there = at.grpc || `${at.host}:${GRPC_PORT}`;
      const secure = at.own ? `-cacert ${AUTHORITY}` : at.tls ? "" : "-plaintext";
      const channel = !at.tls ? `grpc.insecure_channel("${there}")` : at.own ? `grpc.secure_channel("${there}", grpc.ssl_channel_credentials(open("${AUTHORITY}", "rb").read()))` : `grpc.secure_channel("${there}", grpc.ssl_channel_credentials())`;
      return [
        { language: "sh", text: ["grpcurl", secure, `-H "authorization: Bearer ${at.token}"`, there, "palyra.v1.Admin/Status"].filter(Boolean).join(" ") },
        { language: "python", words: "In Python, with the code that comes with palyra[grpc]:", text: `import grpc\nfrom palyra.v1 import admin_pb2, admin_pb2_grpc\n\nwith ${channel} as channel:\n    admin = admin_pb2_grpc.AdminStub(channel)\n    print(admin.Status(admin_pb2.AdminStatusRequest(), metadata=[("authorization", "Bearer ${at.token}")]))` },
      ];
    },
  },
  {
    name: "mcp", title: "MCP", scope: "client", words: "Another agent uses Palyra as an MCP server. Most agents read a file such as .mcp.json.",
    snippets: (at) => [
      { ...json({ mcpServers: { palyra: { type: "http", url: `${at.origin}/mcp`, headers: { Authorization: `Bearer ${at.token}` } } } }), words: "Over HTTP:" },
      { ...json({ mcpServers: { palyra: { command: "palyra", args: ["mcp", "serve"], env: started(at) } } }), words: "Over stdio. As Palyra's own user on the same machine, env is not needed:" },
    ],
  },
  {
    name: "acp", title: "Editor (ACP)", scope: "operator", words: "The agent in an editor that speaks the Agent Client Protocol, such as Zed: this goes into its settings. As Palyra's own user on its own machine, env can be left out.",
    snippets: (at) => [json({ agent_servers: { Palyra: { type: "custom", command: "palyra", args: ["acp"], env: started(at) } } })],
  },
  {
    name: "cli", title: "Command line", scope: "operator", words: "The command palyra on another machine, against this daemon.",
    snippets: (at) => [{ language: "sh", text: `${exported({ ...at, own: false }, environment(at), "")}\npalyra status` }],
  },
];
