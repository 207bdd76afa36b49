"""Every setting with its type, its default and its meaning, in one place. A setting that is not
here does not exist.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
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


_DAY_MS = 24 * 60 * MINUTE_MS


class PatienceSection(Section, frozen=True, kw_only=True):
    interactive: Annotated[
        int, says("a person started the run and is watching; 0: it fails at once", least=0)
    ] = 15 * MINUTE_MS
    api: Annotated[int, says("a program started the run", least=0)] = 15 * MINUTE_MS
    channel: Annotated[int, says("somebody in a chat started the run", least=0)] = _DAY_MS // 4
    scheduled: Annotated[int, says("a schedule started the run", least=0)] = _DAY_MS


class WaitingSection(Section, frozen=True, kw_only=True):
    longest_pause_ms: Annotated[
        int, says("longest pause between two tries, unless the provider asks for more", least=1_000)
    ] = 2 * MINUTE_MS
    patience_ms: PatienceSection = PatienceSection()


class SpendingLimit(Section, frozen=True, kw_only=True):
    per: Annotated[
        Per,
        says("whose spending is counted, each by itself: everybody's together, or by one of these"),
    ] = "all"
    every: Annotated[Every, says("how often it resets, by UTC")] = "ever"
    tokens: Annotated[int, says("tokens, sent and produced", least=0, most=MOST_AMOUNT)] = 0
    usd: Annotated[float, says("dollars, instead of tokens", least=0, most=1_000_000_000)] = 0.0
    warn_at: Annotated[float, says("share of it at which the owner is told", least=0, most=1)] = 0.8
    then: Annotated[Then, says("when it is used up: end the run, or ask a person")] = "block"
    who: Annotated[str, says("only this principal, session or schedule; empty: each of them")] = ""


class RoutingRule(Section, frozen=True, kw_only=True):
    tasks: Annotated[
        Words, says("interactive, background, summary, extraction or vision; none: all")
    ] = ()
    label: Annotated[Label, says("what is sent is private, or is not")] = "any"
    tokens_above: Annotated[int, says("only inputs of at least so many tokens", least=0)] = 0
    budget_left_below: Annotated[
        float, says("only when less than this share of a budget is left", least=0, most=1)
    ] = 0.0
    use: Annotated[
        Words, says('"provider/model" to ask, in this order; a provider for its first model')
    ] = ()
    fallbacks: Annotated[bool, says("whether models.fallbacks come after these")] = True


class BudgetsSection(Section, frozen=True, kw_only=True):
    turns: Annotated[int, says("model turns a run may take", least=1)] = 50
    calls: Annotated[int, says("tool calls a run may make", least=1)] = 100
    active_minutes: Annotated[
        int, says("minutes a run may work; waiting does not count", least=1)
    ] = 30
    tokens: Annotated[int, says("tokens a run may use; 0: no limit", least=0, most=MOST_AMOUNT)] = 0
    usd: Annotated[
        float, says("dollars a run may cost; 0: no limit", least=0, most=1_000_000_000)
    ] = 0.0
    limits: dict[str, SpendingLimit] = msgspec.field(default_factory=dict)


class LimitsSection(Section, frozen=True, kw_only=True):
    body_bytes: Annotated[int, says("largest request body", least=1_024)] = 4 << 20
    headers: Annotated[int, says("most headers in a request", least=8)] = 100
    requests_per_second: Annotated[int, says("requests per second and client", least=1)] = 50
    streams: Annotated[int, says("open event streams per client", least=1)] = 64
    answer_s: Annotated[
        int,
        says(
            "seconds that an answer which is no stream is waited for (/v1/chat/completions)",
            least=1,
        ),
    ] = 540
    unavailable_s: Annotated[
        int,
        says(
            "seconds until 503 while no provider can answer, for programs that do not say their own"
            " time-out (/v1/chat/completions)",
            least=1,
        ),
    ] = 30


class WorkersSection(Section, frozen=True, kw_only=True):
    listen: Annotated[
        str,
        says(
            'address and port for workers on other machines, "0.0.0.0:7445"; empty: there are none'
        ),
    ] = ""
    quic: Annotated[
        bool, says("let them connect by QUIC as well, on the UDP port of the same number")
    ] = False
    lease_ms: Annotated[
        int, says("a worker that is not heard for so long is lost", least=1_000, most=3_600_000)
    ] = 30_000


class NetworkSection(Section, frozen=True, kw_only=True):
    private_hosts: Annotated[
        Words,
        says(
            "places on this machine or its network that tools may reach, each with its port:"
            ' "127.0.0.1:3000"'
        ),
    ] = ()


class Workspace(Section, frozen=True, kw_only=True):
    root: Annotated[
        str, says("folder that new sessions work in; empty: where the daemon was started")
    ] = ""


class MailboxSection(Section, frozen=True, kw_only=True):
    depth: Annotated[
        int, says("messages that may wait for a busy session", least=1, most=1_000)
    ] = 8


class JournalSection(Section, frozen=True, kw_only=True):
    origin: Annotated[
        str,
        says("name of the journal in its signed checkpoints; empty: one is made at first start"),
    ] = ""
    checkpoint_entries: Annotated[
        int,
        says("sign a checkpoint after so many new entries", least=1, most=1_000_000),
    ] = 5_000
    checkpoint_seconds: Annotated[
        int,
        says("or so many seconds after the first of fewer entries", least=1, most=86_400),
    ] = 300
    key_store: Annotated[
        Literal["file", "keyring"],
        says("where the signing key lies: in `keys`, or in the keyring of the operating system"),
    ] = "file"
    anchors: Annotated[
        Words,
        says(
            "where checkpoints go besides: `file:/PATH`, `git:/FOLDER`, `https://HOST/PATH`,"
            " `chat:CHANNEL/CONVERSATION`, `witness KEY https://HOST`"
        ),
    ] = ()
    witness_for: Annotated[
        Words,
        says("public keys of the journals of others that this daemon cosigns as a witness"),
    ] = ()


class RetentionSection(Section, frozen=True, kw_only=True):
    sessions_after_days: Annotated[
        int,
        says(
            "days without use after which a session is put into a segment; 0: never",
            least=0,
            most=36_500,
        ),
    ] = 0
    unused_files_after_days: Annotated[
        int,
        says("days after which a stored file that nothing names is removed", least=1, most=36_500),
    ] = 7
    chat_messages_after_days: Annotated[
        int,
        says(
            "days after which it is forgotten which way a message from a chat went; 0: never",
            least=0,
            most=36_500,
        ),
    ] = 90


class BackupsSection(Section, frozen=True, kw_only=True):
    every: Annotated[
        str,
        says("make a backup so often: hourly, daily, weekly, monthly, 6h, 2d; empty: only by hand"),
    ] = ""
    keep: Annotated[int, says("keep so many of the newest", least=1, most=10_000)] = 7
    target: Annotated[
        str,
        says(
            "where backups go: a folder, `s3://BUCKET/PREFIX`, `sftp://USER@HOST/FOLDER`; empty:"
            " backups in the home folder"
        ),
    ] = ""
    drill: Annotated[
        str, says("so often, restore the newest into a scratch home and verify it; empty: never")
    ] = ""
    passphrase: Annotated[
        str,
        says(
            "where the passphrase is that encrypts them: `env:NAME`, `file:/path` or"
            " `keyring:NAME`; empty: plain"
        ),
    ] = ""
    endpoint: Annotated[
        str, says("https address of the S3-compatible store; empty: that of AWS")
    ] = ""
    region: Annotated[str, says("region that requests to the store are signed for")] = "us-east-1"
    access_key: Annotated[str, says("where the store's access key is, as `env:NAME`")] = ""
    secret_key: Annotated[str, says("where the store's secret key is, as `env:NAME`")] = ""
    identity: Annotated[str, says("key file for SFTP; empty: what ssh is configured to use")] = ""


class MemorySection(Section, frozen=True, kw_only=True):
    embeddings: Annotated[
        bool, says("search what is remembered by its meaning too; false: by its words only")
    ] = True


class CompactionSection(Section, frozen=True, kw_only=True):
    automatic: Annotated[
        bool, says("condense by itself; false: only on demand, and older runs are left out instead")
    ] = True
    threshold: Annotated[
        float,
        says("share of a model's budget from which older turns are condensed", least=0.1, most=1.0),
    ] = 0.6
    notes: Annotated[
        bool,
        says("also note in MEMORY.md of the workspace what the user requires and what was decided"),
    ] = False


class LearningSection(Section, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, says("read finished runs for what is worth learning; false: only on demand")
    ] = True
    automatic: Annotated[
        bool, says("apply what is sure at once, with undo; false: everything waits for you")
    ] = True
    cooldown_minutes: Annotated[
        int, says("a session is read at most once in so many minutes", least=1, most=1_440)
    ] = 5
    fact_review_bps: Annotated[
        int, says("confidence from which a fact is shown, in basis points", least=0, most=10_000)
    ] = 7_500
    fact_auto_bps: Annotated[
        int, says("confidence from which a fact is remembered at once", least=0, most=10_001)
    ] = 9_000
    preference_review_bps: Annotated[
        int, says("confidence from which a preference is shown", least=0, most=10_000)
    ] = 8_000
    preference_auto_bps: Annotated[
        int, says("confidence from which a preference is used at once", least=0, most=10_001)
    ] = 9_500
    procedure_review_bps: Annotated[
        int, says("confidence from which a procedure is shown", least=0, most=10_000)
    ] = 8_500
    policy_review_bps: Annotated[
        int, says("confidence from which a policy is suggested", least=0, most=10_000)
    ] = 8_500


class Browser(Section, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, says("offer the browser tools where Playwright and Chromium are installed")
    ] = True
    chromium: Annotated[str, says("path of the Chromium to use; empty: the one that is found")] = ""


class HealingSection(Section, frozen=True, kw_only=True):
    mode: Annotated[
        Healed,
        says("look for what is stuck, leaking or broken: not at all, only report it, or repair it"),
    ] = "auto"
    every_ms: Annotated[int, says("how often it is looked at", least=1_000)] = 30_000
    run_ms: Annotated[
        int,
        says(
            "longest silence of a run at work, beyond what its tool or provider may take",
            least=10_000,
        ),
    ] = 2 * MINUTE_MS
    task_ms: Annotated[int, says("longest silence of a background task's worker", least=10_000)] = (
        2 * MINUTE_MS
    )
    helper_ms: Annotated[int, says("longest that an MCP server may be away", least=10_000)] = (
        2 * MINUTE_MS
    )
    approval_ms: Annotated[
        int, says("an approval that waits for longer counts as forgotten", least=10_000)
    ] = 10 * MINUTE_MS
    forgotten: Annotated[
        Literal["remind", "expire"], says("what is done about a forgotten approval in mode auto")
    ] = "remind"
    free_mb: Annotated[int, says("least free space for the home folder", least=0)] = 200
    log_mb: Annotated[int, says("largest size of the journal's log", least=1)] = 64


class Rehearsal(Section, frozen=True, kw_only=True):
    tools: Annotated[
        bool, says("offer the tools that only pretend to have effects, for trying out crashes")
    ] = False


class LogSection(Section, frozen=True, kw_only=True):
    level: Annotated[Level, says("least important message that is written")] = "info"


class Config(Section, frozen=True, kw_only=True):
    server: ServerSection = ServerSection()
    models: ModelsSection = ModelsSection()
    providers: dict[str, Provider] = msgspec.field(default_factory=dict)
    model_options: dict[str, ModelOptions] = msgspec.field(default_factory=dict)
    mcp: dict[str, McpServer] = msgspec.field(default_factory=dict)
    channel_router: ChannelRouter = ChannelRouter()
    channels: dict[str, ChannelSection] = msgspec.field(default_factory=dict)
    policy: PolicySection = PolicySection()
    approvals: ApprovalsSection = ApprovalsSection()
    waiting: WaitingSection = WaitingSection()
    budgets: BudgetsSection = BudgetsSection()
    routing: dict[str, RoutingRule] = msgspec.field(default_factory=dict)
    limits: LimitsSection = LimitsSection()
    workers: WorkersSection = WorkersSection()
    network: NetworkSection = NetworkSection()
    workspace: Workspace = Workspace()
    mailbox: MailboxSection = MailboxSection()
    memory: MemorySection = MemorySection()
    journal: JournalSection = JournalSection()
    retention: RetentionSection = RetentionSection()
    backups: BackupsSection = BackupsSection()
    compaction: CompactionSection = CompactionSection()
    learning: LearningSection = LearningSection()
    browser: Browser = Browser()
    healing: HealingSection = HealingSection()
    rehearsal: Rehearsal = Rehearsal()
    log: LogSection = LogSection()


class SettingLeaf(Struct, frozen=True, kw_only=True):
    """One leaf of the tree. In `path`, NAME stands for a name the user chooses."""

    path: Path
    type: Any
    default: Any
    description: str
    accepts: str


NAME = "NAME"


@cache
def settings() -> tuple[SettingLeaf, ...]:
    """Every setting there is, in the order of the file."""
    return tuple(_settings(Config, ()))


def section_of(kind: Any) -> type[Section] | None:
    """The table type behind a field's type, if it is a table."""
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def members_of(kind: Any) -> type[Section] | None:
    """The table type behind a field that holds named tables."""
    return section_of(get_args(kind)[1]) if get_origin(kind) is dict else None


def tree(values: Mapping[Path, Any]) -> dict[str, Any]:
    """Values by their path, as nested tables."""
    root: dict[str, Any] = {}
    for path, value in values.items():
        table = root
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = value
    return root


def _settings(section: type[Section], path: Path) -> Iterator[SettingLeaf]:
    for field in msgspec.structs.fields(section):
        here = (*path, field.name)
        if inner := section_of(field.type):
            yield from _settings(inner, here)
        elif inner := members_of(field.type):
            yield from _settings(inner, (*here, NAME))
        else:
            yield _setting(here, field)


def _setting(path: Path, field: msgspec.structs.FieldInfo) -> SettingLeaf:
    information = msgspec.inspect.type_info(field.type)
    extra = (
        information.extra_json_schema if isinstance(information, msgspec.inspect.Metadata) else None
    )
    return SettingLeaf(
        path=path,
        type=field.type,
        default=None if field.required else field.default,
        description=(extra or {}).get("description", ""),
        accepts=_accepts(information),
    )


def _accepts(kind: msgspec.inspect.Type) -> str:
    """What a value must be, in words."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _accepts(inner)
        case msgspec.inspect.IntType(ge=least, le=most):
            if least is not None and most is not None:
                return f"a whole number from {least} to {most}"
            return "a whole number" if least is None else f"a whole number, at least {least}"
        case msgspec.inspect.FloatType(ge=least, le=most):
            return f"a number from {least} to {most}"
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.LiteralType(values=values):
            quoted = [f'"{value}"' for value in values]
            return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
        case msgspec.inspect.VarTupleType():
            return "a list of texts"
        case msgspec.inspect.UnionType(types=types):
            return ", or ".join(_accepts(each) for each in types)
        case _:
            return "a text"
