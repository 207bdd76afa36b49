"""Every setting with its type, its default and its meaning: the tables of `sections` and these
here. A setting that is in neither does not exist.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from palyra.serve.config.sections import (
    MINUTE_MS,
    MOST_AMOUNT,
    ApprovalsSection,
    Browser,
    ChannelRouter,
    ChannelSection,
    ClusterSection,
    Every,
    Healed,
    Label,
    Level,
    McpServer,
    ModelOptions,
    ModelsSection,
    Path,
    Per,
    PolicySection,
    Provider,
    Section,
    ServerSection,
    Then,
    WebSearchSection,
    Words,
    says,
)

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
    store: Annotated[
        str,
        says(
            "where the journal lies: empty for `journal.db` in the home folder, or"
            " `postgresql://USER@HOST/DATABASE`, or where that is, as `env:NAME` or `file:/PATH`"
        ),
    ] = ""
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
    unnamed_archived_after_hours: Annotated[
        int,
        says(
            "hours without use after which a session that a program did not name is archived"
            " (/v1/chat/completions); 0: never",
            least=0,
            most=876_000,
        ),
    ] = 24
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


class TelemetrySection(Section, frozen=True, kw_only=True):
    endpoint: Annotated[
        str,
        says(
            "address of an OpenTelemetry collector that takes OTLP over HTTP,"
            ' "http://127.0.0.1:4318"; empty: nothing is sent'
        ),
    ] = ""
    authorization: Annotated[
        str, says("where the value of its Authorization header is, as `env:NAME`; empty: none")
    ] = ""
    service: Annotated[str, says("name of this daemon at the collector")] = "palyra"
    traces: Annotated[bool, says("send a trace of every run")] = True
    metrics: Annotated[bool, says("send what /metrics shows")] = True
    logs: Annotated[bool, says("send the log, without secrets")] = False
    content: Annotated[
        bool,
        says("put messages, answers, arguments and results into traces, without secrets"),
    ] = False
    metrics_seconds: Annotated[
        int, says("seconds between two reports of metrics", least=1, most=3_600)
    ] = 60


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
    cluster: ClusterSection = ClusterSection()
    retention: RetentionSection = RetentionSection()
    backups: BackupsSection = BackupsSection()
    compaction: CompactionSection = CompactionSection()
    learning: LearningSection = LearningSection()
    browser: Browser = Browser()
    web_search: WebSearchSection = WebSearchSection()
    healing: HealingSection = HealingSection()
    telemetry: TelemetrySection = TelemetrySection()
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
    """Return what a value must be, in words."""
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
