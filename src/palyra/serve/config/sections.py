"""Parts that every table of the settings file is made of, and the tables for listeners, models,
providers, MCP servers, channels, policies and approvals.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from palyra.core.call_options import Effort

Kind = Literal[
    "openai-chat", "openai-responses", "anthropic", "gemini", "demo", "scripted", "faulty"
]

# Kinds that ask nobody outside the daemon.
BUILT_IN: tuple[Kind, ...] = ("demo", "scripted", "faulty")

ToolMode = Literal["auto", "native", "text", "none"]

Preset = Literal["locked", "default", "coding", "research"]

Healed = Literal["disabled", "observe_only", "auto"]

Level = Literal["debug", "info", "warning", "error"]

Timeout = Annotated[int, Meta(ge=1_000)] | Literal["never"]

Limit = Annotated[int, Meta(ge=1_000)] | Literal["auto", "never"]

Per = Literal["all", "principal", "session", "schedule", "run"]

Every = Literal["ever", "month", "day"]

Then = Literal["block", "ask"]

Label = Literal["any", "private", "public"]

Words = tuple[str, ...]

Path = tuple[str, ...]

PromptCache = Literal["auto", "off", "5m", "1h", "24h"]

MINUTE_MS = 60_000

MOST_AMOUNT = 1 << 50


def says(description: str, *, least: float | None = None, most: float | None = None) -> Meta:
    return Meta(description=description, ge=least, le=most)


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every table in the file."""


class Tls(Section, frozen=True, kw_only=True):
    enabled: Annotated[
        bool,
        says("serve HTTPS; without cert and key, with a certificate of the daemon's own authority"),
    ] = False
    cert: Annotated[
        str, says("your own certificate with its chain, a PEM file; empty: the daemon makes one")
    ] = ""
    key: Annotated[
        str, says("the key of your own certificate, a PEM file without a passphrase")
    ] = ""
    names: Annotated[
        Words,
        says("names and addresses by which others call this machine, beside those that it finds"),
    ] = ()


class ServerSection(Section, frozen=True, kw_only=True):
    host: Annotated[
        str, says("address to listen on, 0.0.0.0 for all; beyond loopback it needs TLS and a token")
    ] = "127.0.0.1"
    http_port: Annotated[
        int, says("port of the API and the console; 0 picks a free one", least=0, most=65_535)
    ] = 7142
    grpc: Annotated[bool, says("offer the API over gRPC too")] = False
    grpc_port: Annotated[
        int, says("port of the API over gRPC; 0 picks a free one", least=0, most=65_535)
    ] = 7443
    allowed_hosts: Annotated[
        Words, says("Host headers accepted besides the address and localhost")
    ] = ()
    allowed_origins: Annotated[
        Words, says("web origins that may call the API besides the console's own")
    ] = ()
    quic: Annotated[bool, says("serve the API over HTTP/3 as well")] = False
    quic_port: Annotated[
        int, says("UDP port for HTTP/3; 0 picks a free one", least=0, most=65_535)
    ] = 7444
    one_processor: Annotated[
        bool, says("keep the daemon's own threads on one processor; what it starts has all of them")
    ] = True
    tls: Tls = Tls()


class ClusterSection(Section, frozen=True, kw_only=True):
    secret: Annotated[
        str,
        says(
            "where the secret is that all nodes of a journal in PostgreSQL share: `env:NAME`,"
            " `file:/PATH`, `keyring:NAME` or `command:PROGRAM`; empty: this daemon is the only one"
        ),
    ] = ""
    name: Annotated[
        str, says("name of this node; empty: that of the machine and a few letters")
    ] = ""
    listen: Annotated[
        str, says("address and port for the other nodes, while this one leads; port 0: a free one")
    ] = "127.0.0.1:0"
    address: Annotated[
        str, says("HOST:PORT by which the other nodes reach it; empty: the one it listens on")
    ] = ""
    lease_ms: Annotated[
        int,
        says("a leader that is not heard for so long is replaced", least=1_000, most=60_000),
    ] = 5_000


class ModelsSection(Section, frozen=True, kw_only=True):
    default: Annotated[
        str, says('"provider/model", or a provider for its first model; empty: what is found')
    ] = ""
    fallbacks: Annotated[
        Words, says("tried in this order when the default cannot answer, written the same way")
    ] = ()
    summary: Annotated[
        str,
        says(
            '"provider/model" that writes the summaries of long sessions; empty: rules write them'
        ),
    ] = ""
    extraction: Annotated[
        str, says('"provider/model" that finds what is worth remembering; empty: rules find it')
    ] = ""
    context_tokens: Annotated[
        int, says("window to assume of a model whose provider does not say", least=1_024)
    ] = 128_000
    max_output_tokens: Annotated[
        int, says("longest reply where a budget has to be kept: so much is reserved", least=256)
    ] = 16_384


EffortSetting = Annotated[
    Effort, says("how much its models reason; empty: as they do by themselves")
]

Temperature = Annotated[
    float, says("how freely they choose their words; -1: the provider's default", least=-1, most=2)
]

TopP = Annotated[
    float,
    says("only the likeliest words up to this share; 0: the provider's default", least=0, most=1),
]

MaxTokens = Annotated[
    int, says("longest reply in tokens, reasoning included; 0: the provider's default", least=0)
]

StopAt = Annotated[Words, says("texts at which a reply ends")]

Seed = Annotated[int, says("the same seed makes replies alike; -1: none", least=-1)]

ServiceTier = Annotated[
    str, says('the provider\'s own word for how fast it serves, such as "flex" or "priority"')
]


class ModelOptions(Section, frozen=True, kw_only=True):
    models: Annotated[
        Words, says('"provider/model" that these are for, over its provider\'s own')
    ] = ()
    effort: EffortSetting = ""
    temperature: Temperature = -1.0
    top_p: TopP = 0.0
    max_tokens: MaxTokens = 0
    stop: StopAt = ()
    seed: Seed = -1
    service_tier: ServiceTier = ""


class Provider(Section, frozen=True, kw_only=True):
    kind: Annotated[Kind, says("the dialect it speaks")]
    base_url: Annotated[str, says("address of the API; empty: the vendor's own")] = ""
    api_key: Annotated[
        str,
        says('where the key is: "vault:NAME", "env:NAME" or "file:/path", never the key itself'),
    ] = ""
    models: Annotated[Words, says("model names it offers; the first is its default")] = ()
    context_tokens: Annotated[
        int, says("window of its models; 0: models.context_tokens", least=0)
    ] = 0
    windows: Annotated[
        Words, says('windows of single models, "MODEL=TOKENS"; the others have context_tokens')
    ] = ()
    vision: Annotated[
        bool, says("its models can look at images; false: they are told that there was one")
    ] = True
    private: Annotated[
        bool, says("it may be sent private data: files, memory, what tools brought; false: never")
    ] = True
    timeout_ms: Annotated[
        Limit,
        says("longest silence on a call before it counts as failed; the next four say it in parts"),
    ] = "auto"
    connect_ms: Annotated[
        Limit, says("longest wait for a connection; auto: 15 s, a local server 5 s")
    ] = "auto"
    first_token_ms: Annotated[
        Limit,
        says(
            "longest wait for the first token; auto: 2 min of silence (openai-responses 10 min), a"
            " local server has no limit"
        ),
    ] = "auto"
    stall_ms: Annotated[
        Limit, says("longest silence after the first token; auto: 2 min, a local server 10 min")
    ] = "auto"
    call_ms: Annotated[Limit, says("longest that a whole call may take; auto: no limit")] = "auto"
    tools: Annotated[
        ToolMode,
        says("how its models get tools: native calls, text in the prompt, none, or what works"),
    ] = "auto"
    tools_of: Annotated[Words, says('the same for single models, each as "MODEL=text"')] = ()
    script: Annotated[str, says("path of the script, for kind scripted only")] = ""
    api_version: Annotated[
        str, says("Azure's dated version of its API; empty: Azure's v1 API, or no Azure")
    ] = ""
    prompt_cache: Annotated[
        PromptCache,
        says(
            "what it is told about caching prompts: what its kind and host are known to take,"
            " nothing, or how long to keep them (5m and 1h: Anthropic's way, 24h: OpenAI's)"
        ),
    ] = "auto"
    effort: EffortSetting = ""
    temperature: Temperature = -1.0
    top_p: TopP = 0.0
    max_tokens: MaxTokens = 0
    stop: StopAt = ()
    seed: Seed = -1
    service_tier: ServiceTier = ""


class McpServer(Section, frozen=True, kw_only=True):
    command: Annotated[str, says("program of a server that runs here, in the sandbox")] = ""
    args: Annotated[Words, says("its arguments")] = ()
    env: Annotated[
        Words, says('its environment, "NAME=value"; a secret as "NAME=vault:NAME", env: or file:')
    ] = ()
    folder: Annotated[
        str, says("folder that it works in and may see; empty: one of its own in the home folder")
    ] = ""
    writable: Annotated[bool, says("whether it may change that folder")] = True
    readable: Annotated[
        Words, says("more folders that it may read: where its program is installed")
    ] = ()
    hosts: Annotated[Words, says("hosts that its program may reach; none: no network")] = ()
    tier: Annotated[Literal["B", "C"], says("sandbox tier that it must have at least")] = "C"
    package: Annotated[
        str,
        says("what was accepted of the package that npx or uvx names: `palyra mcp update` sets it"),
    ] = ""
    url: Annotated[
        str, says("address of a server that runs elsewhere and speaks streamable HTTP")
    ] = ""
    headers: Annotated[
        Words,
        says(
            'sent with each request, "Name: value"; a secret as "Authorization: Bearer vault:NAME"'
        ),
    ] = ()
    enabled: Annotated[bool, says("whether it is used")] = True
    timeout_ms: Annotated[int, says("longest that one call may take", least=1_000)] = MINUTE_MS
    trusted: Annotated[bool, says("believe what it says about the effects of its tools")] = False


class ChannelRouter(Section, frozen=True, kw_only=True):
    enabled: Annotated[
        bool,
        says("hear what is written in chats; false: every message is refused, on every channel"),
    ] = True
    notices_to: Annotated[
        str, says('which chat gets what you are told, as "channel/conversation"; empty: none')
    ] = ""
    approvals_to: Annotated[
        str,
        says(
            'which chat gets what your own runs ask, "owner" (where you last wrote) or'
            ' "channel/conversation"; empty: none'
        ),
    ] = ""


class ChannelSection(Section, frozen=True, kw_only=True):
    kind: Annotated[str, says("the platform: `palyra channels add` lists them")] = ""
    enabled: Annotated[bool, says("whether it is connected")] = True
    settings: Annotated[
        Words,
        says('what its platform needs, "name=value"; a secret as "name=vault:NAME", env: or file:'),
    ] = ()
    allow: Annotated[
        Words,
        says(
            "senders who are heard without pairing; if there are any, nobody else is but who is"
            " paired"
        ),
    ] = ()
    deny: Annotated[Words, says("senders who are not heard")] = ()
    direct: Annotated[
        Literal["deny", "pairing", "allow"], says("direct messages of people who are not paired")
    ] = "pairing"
    groups: Annotated[
        Literal["paired", "allow"],
        says("who is heard in groups: who is paired or listed, or anybody"),
    ] = "paired"
    mention: Annotated[bool, says("in groups, answer only if mentioned")] = True
    names: Annotated[Words, says("what counts as a mention, beside the account's own name")] = (
        "@palyra",
    )
    broadcast: Annotated[
        Literal["deny", "mention_only", "allow"],
        says("messages to everyone: refused, only if mentioned, or taken and answered so"),
    ] = "mention_only"
    isolate_session_by_sender: Annotated[
        bool, says("in groups, a session for each sender; false: the group shares one")
    ] = True
    per_minute: Annotated[int, says("messages a sender may send in a minute", least=1)] = 30
    waiting: Annotated[int, says("messages of a sender that may be under way", least=1)] = 8
    concurrency: Annotated[
        int, says("conversations that are worked on at once", least=1, most=1_000)
    ] = 8
    workspace: Annotated[
        str, says("folder for people who are no users of the daemon; empty: they have none")
    ] = ""
    approvals_to: Annotated[
        str,
        says(
            'where its approvals are asked, "channel/conversation"; empty: the asker, or the owner'
        ),
    ] = ""


class PolicySection(Section, frozen=True, kw_only=True):
    preset: Annotated[Preset, says("the shipped rules in force")] = "default"
    folder: Annotated[
        str, says("folder of your own Cedar files; empty: policies in the home folder")
    ] = ""
    shadow: Annotated[
        str,
        says("a preset or a folder that is asked too and only recorded, for a trial; empty: none"),
    ] = ""


class Timeouts(Section, frozen=True, kw_only=True):
    interactive: Annotated[Timeout, says("a person started the run")] = 15 * MINUTE_MS
    api: Annotated[Timeout, says("a program started the run")] = 15 * MINUTE_MS
    child: Annotated[Timeout, says("another run started the run")] = 15 * MINUTE_MS
    channel: Annotated[Timeout, says("somebody in a chat started the run")] = 24 * 60 * MINUTE_MS
    scheduled: Annotated[
        Timeout, says("a schedule started the run: it waits until somebody answers")
    ] = "never"


class ApprovalsSection(Section, frozen=True, kw_only=True):
    timeout_ms: Timeouts = Timeouts()


class Browser(Section, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, says("offer the browser tools where Playwright and Chromium are installed")
    ] = True
    chromium: Annotated[str, says("path of the Chromium to use; empty: the one that is found")] = ""


class WebSearchSection(Section, frozen=True, kw_only=True):
    engine: Annotated[
        Literal["", "searxng", "brave", "tavily", "exa", "kagi"],
        says("engine that web.search asks; empty: the tool is not offered"),
    ] = ""
    url: Annotated[
        str,
        says(
            "where the engine is, needed for searxng, as http://127.0.0.1:8888; empty: the"
            " service's own address"
        ),
    ] = ""
    key: Annotated[
        str, says("where the engine's key is, as `vault:NAME`, `env:NAME` or `file:/PATH`")
    ] = ""
    results: Annotated[int, says("most pages that a search gives", least=1, most=20)] = 8
    cache_minutes: Annotated[
        int, says("how long the same search is answered from memory", least=0, most=1_440)
    ] = 10
