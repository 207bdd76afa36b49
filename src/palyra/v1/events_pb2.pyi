from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Budgets(_message.Message):
    __slots__ = ("turns", "calls", "active_ms", "tokens", "microusd")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_MS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MICROUSD_FIELD_NUMBER: _ClassVar[int]
    turns: int
    calls: int
    active_ms: int
    tokens: int
    microusd: int
    def __init__(self, turns: _Optional[int] = ..., calls: _Optional[int] = ..., active_ms: _Optional[int] = ..., tokens: _Optional[int] = ..., microusd: _Optional[int] = ...) -> None: ...

class ListOfString(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[str]] = ...) -> None: ...

class Label(_message.Message):
    __slots__ = ("integrity", "confidentiality", "sources", "private_sources")
    INTEGRITY_FIELD_NUMBER: _ClassVar[int]
    CONFIDENTIALITY_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_SOURCES_FIELD_NUMBER: _ClassVar[int]
    integrity: str
    confidentiality: str
    sources: _containers.RepeatedScalarFieldContainer[str]
    private_sources: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, integrity: _Optional[str] = ..., confidentiality: _Optional[str] = ..., sources: _Optional[_Iterable[str]] = ..., private_sources: _Optional[_Iterable[str]] = ...) -> None: ...

class Commission(_message.Message):
    __slots__ = ("session_id", "run_id", "call_id", "root", "depth", "task", "tools", "label", "serves")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SERVES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    run_id: str
    call_id: str
    root: str
    depth: int
    task: str
    tools: ListOfString
    label: Label
    serves: str
    def __init__(self, session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., call_id: _Optional[str] = ..., root: _Optional[str] = ..., depth: _Optional[int] = ..., task: _Optional[str] = ..., tools: _Optional[_Union[ListOfString, _Mapping]] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., serves: _Optional[str] = ...) -> None: ...

class ClientTool(_message.Message):
    __slots__ = ("name", "description", "parameters_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters_json: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters_json: _Optional[str] = ...) -> None: ...

class Wanted(_message.Message):
    __slots__ = ("form", "name", "schema_json", "strict", "call")
    FORM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    form: str
    name: str
    schema_json: str
    strict: bool
    call: str
    def __init__(self, form: _Optional[str] = ..., name: _Optional[str] = ..., schema_json: _Optional[str] = ..., strict: _Optional[bool] = ..., call: _Optional[str] = ...) -> None: ...

class RunAccepted(_message.Message):
    __slots__ = ("origin", "model", "budgets", "parent_run_id", "forked_run_id", "policy", "commission", "schedule_id", "offered", "wanted")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FORKED_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    COMMISSION_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFERED_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    origin: str
    model: str
    budgets: Budgets
    parent_run_id: str
    forked_run_id: str
    policy: str
    commission: Commission
    schedule_id: str
    offered: _containers.RepeatedCompositeFieldContainer[ClientTool]
    wanted: Wanted
    def __init__(self, origin: _Optional[str] = ..., model: _Optional[str] = ..., budgets: _Optional[_Union[Budgets, _Mapping]] = ..., parent_run_id: _Optional[str] = ..., forked_run_id: _Optional[str] = ..., policy: _Optional[str] = ..., commission: _Optional[_Union[Commission, _Mapping]] = ..., schedule_id: _Optional[str] = ..., offered: _Optional[_Iterable[_Union[ClientTool, _Mapping]]] = ..., wanted: _Optional[_Union[Wanted, _Mapping]] = ...) -> None: ...

class RunStarted(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class RunResumed(_message.Message):
    __slots__ = ("after", "node", "wanted")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    after: str
    node: str
    wanted: Wanted
    def __init__(self, after: _Optional[str] = ..., node: _Optional[str] = ..., wanted: _Optional[_Union[Wanted, _Mapping]] = ...) -> None: ...

class RunClockChanged(_message.Message):
    __slots__ = ("active_ms", "moved_ms", "slept_ms")
    ACTIVE_MS_FIELD_NUMBER: _ClassVar[int]
    MOVED_MS_FIELD_NUMBER: _ClassVar[int]
    SLEPT_MS_FIELD_NUMBER: _ClassVar[int]
    active_ms: int
    moved_ms: int
    slept_ms: int
    def __init__(self, active_ms: _Optional[int] = ..., moved_ms: _Optional[int] = ..., slept_ms: _Optional[int] = ...) -> None: ...

class RunCompleted(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class RunFailed(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class RunCancelled(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Attachment(_message.Message):
    __slots__ = ("artifact", "media_type", "name", "size", "width", "height", "text", "text_artifact", "note", "label")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TEXT_ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    artifact: str
    media_type: str
    name: str
    size: int
    width: int
    height: int
    text: str
    text_artifact: str
    note: str
    label: Label
    def __init__(self, artifact: _Optional[str] = ..., media_type: _Optional[str] = ..., name: _Optional[str] = ..., size: _Optional[int] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., text: _Optional[str] = ..., text_artifact: _Optional[str] = ..., note: _Optional[str] = ..., label: _Optional[_Union[Label, _Mapping]] = ...) -> None: ...

class Reference(_message.Message):
    __slots__ = ("kind", "target", "label", "size", "unit", "truncated", "text", "artifact", "note")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    target: str
    label: Label
    size: int
    unit: str
    truncated: bool
    text: str
    artifact: str
    note: str
    def __init__(self, kind: _Optional[str] = ..., target: _Optional[str] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., size: _Optional[int] = ..., unit: _Optional[str] = ..., truncated: _Optional[bool] = ..., text: _Optional[str] = ..., artifact: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class Earlier(_message.Message):
    __slots__ = ("role", "text")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    role: str
    text: str
    def __init__(self, role: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Given(_message.Message):
    __slots__ = ("instructions", "earlier")
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    instructions: str
    earlier: _containers.RepeatedCompositeFieldContainer[Earlier]
    def __init__(self, instructions: _Optional[str] = ..., earlier: _Optional[_Iterable[_Union[Earlier, _Mapping]]] = ...) -> None: ...

class InputReceived(_message.Message):
    __slots__ = ("submission_id", "text", "mode", "attachments", "label", "references", "sender", "given")
    SUBMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    REFERENCES_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    submission_id: str
    text: str
    mode: str
    attachments: _containers.RepeatedCompositeFieldContainer[Attachment]
    label: Label
    references: _containers.RepeatedCompositeFieldContainer[Reference]
    sender: str
    given: Given
    def __init__(self, submission_id: _Optional[str] = ..., text: _Optional[str] = ..., mode: _Optional[str] = ..., attachments: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., references: _Optional[_Iterable[_Union[Reference, _Mapping]]] = ..., sender: _Optional[str] = ..., given: _Optional[_Union[Given, _Mapping]] = ...) -> None: ...

class AssembledPart(_message.Message):
    __slots__ = ("source", "tokens", "label", "note")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    source: str
    tokens: int
    label: Label
    note: str
    def __init__(self, source: _Optional[str] = ..., tokens: _Optional[int] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., note: _Optional[str] = ...) -> None: ...

class InputAssembled(_message.Message):
    __slots__ = ("turn", "upto_seq", "parts", "tokens", "budget", "notes", "from_seq", "digest", "surroundings")
    TURN_FIELD_NUMBER: _ClassVar[int]
    UPTO_SEQ_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    turn: int
    upto_seq: int
    parts: _containers.RepeatedCompositeFieldContainer[AssembledPart]
    tokens: int
    budget: int
    notes: _containers.RepeatedScalarFieldContainer[str]
    from_seq: int
    digest: str
    surroundings: str
    def __init__(self, turn: _Optional[int] = ..., upto_seq: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[AssembledPart, _Mapping]]] = ..., tokens: _Optional[int] = ..., budget: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., from_seq: _Optional[int] = ..., digest: _Optional[str] = ..., surroundings: _Optional[str] = ...) -> None: ...

class PassedOver(_message.Message):
    __slots__ = ("model", "why")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    model: str
    why: str
    def __init__(self, model: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class RoutePlanned(_message.Message):
    __slots__ = ("provider", "model", "reason", "fallbacks", "task", "reasons", "passed_over", "rule", "expected_input_tokens", "expected_output_tokens", "expected_microusd")
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    PASSED_OVER_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    provider: str
    model: str
    reason: str
    fallbacks: _containers.RepeatedScalarFieldContainer[str]
    task: str
    reasons: _containers.RepeatedScalarFieldContainer[str]
    passed_over: _containers.RepeatedCompositeFieldContainer[PassedOver]
    rule: str
    expected_input_tokens: int
    expected_output_tokens: int
    expected_microusd: int
    def __init__(self, provider: _Optional[str] = ..., model: _Optional[str] = ..., reason: _Optional[str] = ..., fallbacks: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ..., reasons: _Optional[_Iterable[str]] = ..., passed_over: _Optional[_Iterable[_Union[PassedOver, _Mapping]]] = ..., rule: _Optional[str] = ..., expected_input_tokens: _Optional[int] = ..., expected_output_tokens: _Optional[int] = ..., expected_microusd: _Optional[int] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("id", "tool", "arguments_json", "native_id", "malformed")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    NATIVE_ID_FIELD_NUMBER: _ClassVar[int]
    MALFORMED_FIELD_NUMBER: _ClassVar[int]
    id: str
    tool: str
    arguments_json: str
    native_id: str
    malformed: str
    def __init__(self, id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., native_id: _Optional[str] = ..., malformed: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., cache_write_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ...) -> None: ...

class Native(_message.Message):
    __slots__ = ("dialect", "items_json")
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_JSON_FIELD_NUMBER: _ClassVar[int]
    dialect: str
    items_json: str
    def __init__(self, dialect: _Optional[str] = ..., items_json: _Optional[str] = ...) -> None: ...

class ModelReplied(_message.Message):
    __slots__ = ("turn", "provider", "model", "text", "reasoning", "calls", "stop", "usage", "cost_microusd", "priced", "task", "estimated", "first_delta_ms", "duration_ms", "native")
    TURN_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    PRICED_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    FIRST_DELTA_MS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    NATIVE_FIELD_NUMBER: _ClassVar[int]
    turn: int
    provider: str
    model: str
    text: str
    reasoning: str
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    stop: str
    usage: Usage
    cost_microusd: int
    priced: str
    task: str
    estimated: bool
    first_delta_ms: int
    duration_ms: int
    native: Native
    def __init__(self, turn: _Optional[int] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., text: _Optional[str] = ..., reasoning: _Optional[str] = ..., calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., stop: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., cost_microusd: _Optional[int] = ..., priced: _Optional[str] = ..., task: _Optional[str] = ..., estimated: _Optional[bool] = ..., first_delta_ms: _Optional[int] = ..., duration_ms: _Optional[int] = ..., native: _Optional[_Union[Native, _Mapping]] = ...) -> None: ...

class ModelFailed(_message.Message):
    __slots__ = ("turn", "provider", "model", "failure", "message", "will_retry", "attempt", "wait_ms", "text", "reasoning", "usage", "cost_microusd", "priced", "task", "estimated", "first_delta_ms", "duration_ms")
    TURN_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WILL_RETRY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    PRICED_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    FIRST_DELTA_MS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    turn: int
    provider: str
    model: str
    failure: str
    message: str
    will_retry: bool
    attempt: int
    wait_ms: int
    text: str
    reasoning: str
    usage: Usage
    cost_microusd: int
    priced: str
    task: str
    estimated: bool
    first_delta_ms: int
    duration_ms: int
    def __init__(self, turn: _Optional[int] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., failure: _Optional[str] = ..., message: _Optional[str] = ..., will_retry: _Optional[bool] = ..., attempt: _Optional[int] = ..., wait_ms: _Optional[int] = ..., text: _Optional[str] = ..., reasoning: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., cost_microusd: _Optional[int] = ..., priced: _Optional[str] = ..., task: _Optional[str] = ..., estimated: _Optional[bool] = ..., first_delta_ms: _Optional[int] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class ModelUsed(_message.Message):
    __slots__ = ("provider", "model", "task", "purpose", "usage", "cost_microusd", "priced", "estimated", "first_delta_ms", "duration_ms")
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    PRICED_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    FIRST_DELTA_MS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    provider: str
    model: str
    task: str
    purpose: str
    usage: Usage
    cost_microusd: int
    priced: str
    estimated: bool
    first_delta_ms: int
    duration_ms: int
    def __init__(self, provider: _Optional[str] = ..., model: _Optional[str] = ..., task: _Optional[str] = ..., purpose: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., cost_microusd: _Optional[int] = ..., priced: _Optional[str] = ..., estimated: _Optional[bool] = ..., first_delta_ms: _Optional[int] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class Scope(_message.Message):
    __slots__ = ("paths", "workspace", "program", "command", "hosts", "recipients", "secrets", "capabilities", "harmless", "destructive")
    PATHS_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    RECIPIENTS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    HARMLESS_FIELD_NUMBER: _ClassVar[int]
    DESTRUCTIVE_FIELD_NUMBER: _ClassVar[int]
    paths: _containers.RepeatedScalarFieldContainer[str]
    workspace: str
    program: str
    command: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    recipients: _containers.RepeatedScalarFieldContainer[str]
    secrets: _containers.RepeatedScalarFieldContainer[str]
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    harmless: bool
    destructive: bool
    def __init__(self, paths: _Optional[_Iterable[str]] = ..., workspace: _Optional[str] = ..., program: _Optional[str] = ..., command: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., recipients: _Optional[_Iterable[str]] = ..., secrets: _Optional[_Iterable[str]] = ..., capabilities: _Optional[_Iterable[str]] = ..., harmless: _Optional[bool] = ..., destructive: _Optional[bool] = ...) -> None: ...

class SessionRule(_message.Message):
    __slots__ = ("rule_id", "words")
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    words: str
    def __init__(self, rule_id: _Optional[str] = ..., words: _Optional[str] = ...) -> None: ...

class Circumstances(_message.Message):
    __slots__ = ("now_ms", "origin", "label", "capabilities", "source", "agent", "channel", "rules", "exact")
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    now_ms: int
    origin: str
    label: Label
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    source: str
    agent: str
    channel: str
    rules: _containers.RepeatedCompositeFieldContainer[SessionRule]
    exact: bool
    def __init__(self, now_ms: _Optional[int] = ..., origin: _Optional[str] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., capabilities: _Optional[_Iterable[str]] = ..., source: _Optional[str] = ..., agent: _Optional[str] = ..., channel: _Optional[str] = ..., rules: _Optional[_Iterable[_Union[SessionRule, _Mapping]]] = ..., exact: _Optional[bool] = ...) -> None: ...

class ToolProposed(_message.Message):
    __slots__ = ("call_id", "tool", "arguments_json", "effect", "scope", "asked")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    arguments_json: str
    effect: str
    scope: Scope
    asked: Circumstances
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., effect: _Optional[str] = ..., scope: _Optional[_Union[Scope, _Mapping]] = ..., asked: _Optional[_Union[Circumstances, _Mapping]] = ...) -> None: ...

class Shadow(_message.Message):
    __slots__ = ("verdict", "reason", "policies", "policy_version")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    verdict: str
    reason: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    policy_version: str
    def __init__(self, verdict: _Optional[str] = ..., reason: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ..., policy_version: _Optional[str] = ...) -> None: ...

class ToolDecided(_message.Message):
    __slots__ = ("call_id", "verdict", "reason", "by", "policies", "policy_version", "shadow")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    SHADOW_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    verdict: str
    reason: str
    by: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    policy_version: str
    shadow: Shadow
    def __init__(self, call_id: _Optional[str] = ..., verdict: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ..., policy_version: _Optional[str] = ..., shadow: _Optional[_Union[Shadow, _Mapping]] = ...) -> None: ...

class ToolStarted(_message.Message):
    __slots__ = ("call_id", "key", "attempt")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    key: str
    attempt: int
    def __init__(self, call_id: _Optional[str] = ..., key: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class FileChange(_message.Message):
    __slots__ = ("path", "change")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    path: str
    change: str
    def __init__(self, path: _Optional[str] = ..., change: _Optional[str] = ...) -> None: ...

class Attestation(_message.Message):
    __slots__ = ("executor", "tier", "policy_version", "input_sha256", "output_sha256", "approval_id")
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SHA256_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SHA256_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    executor: str
    tier: str
    policy_version: str
    input_sha256: str
    output_sha256: str
    approval_id: str
    def __init__(self, executor: _Optional[str] = ..., tier: _Optional[str] = ..., policy_version: _Optional[str] = ..., input_sha256: _Optional[str] = ..., output_sha256: _Optional[str] = ..., approval_id: _Optional[str] = ...) -> None: ...

class AgentEnd(_message.Message):
    __slots__ = ("session_id", "run_id", "seq", "state", "turns", "calls", "active_ms", "input_tokens", "output_tokens", "cost_microusd")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_MS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    run_id: str
    seq: int
    state: str
    turns: int
    calls: int
    active_ms: int
    input_tokens: int
    output_tokens: int
    cost_microusd: int
    def __init__(self, session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., seq: _Optional[int] = ..., state: _Optional[str] = ..., turns: _Optional[int] = ..., calls: _Optional[int] = ..., active_ms: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_microusd: _Optional[int] = ...) -> None: ...

class ToolFinished(_message.Message):
    __slots__ = ("call_id", "outcome", "text", "data_json", "images", "artifact", "size", "duration_ms", "changes", "label", "attestation", "agent")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ATTESTATION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    outcome: str
    text: str
    data_json: str
    images: _containers.RepeatedCompositeFieldContainer[Attachment]
    artifact: str
    size: int
    duration_ms: int
    changes: _containers.RepeatedCompositeFieldContainer[FileChange]
    label: Label
    attestation: Attestation
    agent: AgentEnd
    def __init__(self, call_id: _Optional[str] = ..., outcome: _Optional[str] = ..., text: _Optional[str] = ..., data_json: _Optional[str] = ..., images: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., artifact: _Optional[str] = ..., size: _Optional[int] = ..., duration_ms: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[FileChange, _Mapping]]] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., attestation: _Optional[_Union[Attestation, _Mapping]] = ..., agent: _Optional[_Union[AgentEnd, _Mapping]] = ...) -> None: ...

class ToolHandedOver(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, calls: _Optional[_Iterable[str]] = ...) -> None: ...

class AnswerRefused(_message.Message):
    __slots__ = ("turn", "problem")
    TURN_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    turn: int
    problem: str
    def __init__(self, turn: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class ToolUndone(_message.Message):
    __slots__ = ("call_id", "changes", "tool", "why")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    changes: _containers.RepeatedCompositeFieldContainer[FileChange]
    tool: str
    why: str
    def __init__(self, call_id: _Optional[str] = ..., changes: _Optional[_Iterable[_Union[FileChange, _Mapping]]] = ..., tool: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Preview(_message.Message):
    __slots__ = ("kind", "title", "body", "length", "digest")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    kind: str
    title: str
    body: str
    length: int
    digest: str
    def __init__(self, kind: _Optional[str] = ..., title: _Optional[str] = ..., body: _Optional[str] = ..., length: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class Subject(_message.Message):
    __slots__ = ("tool", "kind", "value")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    tool: str
    kind: str
    value: str
    def __init__(self, tool: _Optional[str] = ..., kind: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Brought(_message.Message):
    __slots__ = ("source", "seq", "tool", "tape", "untrusted", "private")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    TAPE_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    source: str
    seq: int
    tool: str
    tape: str
    untrusted: bool
    private: bool
    def __init__(self, source: _Optional[str] = ..., seq: _Optional[int] = ..., tool: _Optional[str] = ..., tape: _Optional[str] = ..., untrusted: _Optional[bool] = ..., private: _Optional[bool] = ...) -> None: ...

class Flow(_message.Message):
    __slots__ = ("sources", "sinks", "sends_private")
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    SINKS_FIELD_NUMBER: _ClassVar[int]
    SENDS_PRIVATE_FIELD_NUMBER: _ClassVar[int]
    sources: _containers.RepeatedCompositeFieldContainer[Brought]
    sinks: _containers.RepeatedScalarFieldContainer[str]
    sends_private: bool
    def __init__(self, sources: _Optional[_Iterable[_Union[Brought, _Mapping]]] = ..., sinks: _Optional[_Iterable[str]] = ..., sends_private: _Optional[bool] = ...) -> None: ...

class Asker(_message.Message):
    __slots__ = ("task", "depth", "root")
    TASK_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    task: str
    depth: int
    root: str
    def __init__(self, task: _Optional[str] = ..., depth: _Optional[int] = ..., root: _Optional[str] = ...) -> None: ...

class BudgetAsked(_message.Message):
    __slots__ = ("name", "account", "unit", "limit", "spent", "upto")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    UPTO_FIELD_NUMBER: _ClassVar[int]
    name: str
    account: str
    unit: str
    limit: int
    spent: int
    upto: int
    def __init__(self, name: _Optional[str] = ..., account: _Optional[str] = ..., unit: _Optional[str] = ..., limit: _Optional[int] = ..., spent: _Optional[int] = ..., upto: _Optional[int] = ...) -> None: ...

class ApprovalRequested(_message.Message):
    __slots__ = ("approval_id", "call_id", "tool", "about", "preview", "risk", "why", "subjects", "policies", "label", "expires_ms", "cost_microusd", "flow", "asker", "budget")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    ASKER_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    call_id: str
    tool: str
    about: str
    preview: Preview
    risk: str
    why: str
    subjects: _containers.RepeatedCompositeFieldContainer[Subject]
    policies: _containers.RepeatedScalarFieldContainer[str]
    label: Label
    expires_ms: int
    cost_microusd: int
    flow: Flow
    asker: Asker
    budget: BudgetAsked
    def __init__(self, approval_id: _Optional[str] = ..., call_id: _Optional[str] = ..., tool: _Optional[str] = ..., about: _Optional[str] = ..., preview: _Optional[_Union[Preview, _Mapping]] = ..., risk: _Optional[str] = ..., why: _Optional[str] = ..., subjects: _Optional[_Iterable[_Union[Subject, _Mapping]]] = ..., policies: _Optional[_Iterable[str]] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., expires_ms: _Optional[int] = ..., cost_microusd: _Optional[int] = ..., flow: _Optional[_Union[Flow, _Mapping]] = ..., asker: _Optional[_Union[Asker, _Mapping]] = ..., budget: _Optional[_Union[BudgetAsked, _Mapping]] = ...) -> None: ...

class ApprovalResolved(_message.Message):
    __slots__ = ("approval_id", "call_id", "decision", "scope", "subject", "until_ms", "arguments_json", "reason", "surface", "preview")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SURFACE_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    call_id: str
    decision: str
    scope: str
    subject: Subject
    until_ms: int
    arguments_json: str
    reason: str
    surface: str
    preview: Preview
    def __init__(self, approval_id: _Optional[str] = ..., call_id: _Optional[str] = ..., decision: _Optional[str] = ..., scope: _Optional[str] = ..., subject: _Optional[_Union[Subject, _Mapping]] = ..., until_ms: _Optional[int] = ..., arguments_json: _Optional[str] = ..., reason: _Optional[str] = ..., surface: _Optional[str] = ..., preview: _Optional[_Union[Preview, _Mapping]] = ...) -> None: ...

class AgentSpawned(_message.Message):
    __slots__ = ("call_id", "session_id", "run_id", "budgets")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session_id: str
    run_id: str
    budgets: Budgets
    def __init__(self, call_id: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., budgets: _Optional[_Union[Budgets, _Mapping]] = ...) -> None: ...

class AgentAsked(_message.Message):
    __slots__ = ("call_id", "session_id", "run_id", "request")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session_id: str
    run_id: str
    request: ApprovalRequested
    def __init__(self, call_id: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., request: _Optional[_Union[ApprovalRequested, _Mapping]] = ...) -> None: ...

class AgentAnswered(_message.Message):
    __slots__ = ("call_id", "session_id", "run_id", "answer")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session_id: str
    run_id: str
    answer: ApprovalResolved
    def __init__(self, call_id: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., answer: _Optional[_Union[ApprovalResolved, _Mapping]] = ...) -> None: ...

class SessionCreated(_message.Message):
    __slots__ = ("owner", "key", "label", "title", "device", "channel", "workspace", "parent_run_id")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    owner: str
    key: str
    label: str
    title: str
    device: str
    channel: str
    workspace: str
    parent_run_id: str
    def __init__(self, owner: _Optional[str] = ..., key: _Optional[str] = ..., label: _Optional[str] = ..., title: _Optional[str] = ..., device: _Optional[str] = ..., channel: _Optional[str] = ..., workspace: _Optional[str] = ..., parent_run_id: _Optional[str] = ...) -> None: ...

class SessionReset(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SessionBranched(_message.Message):
    __slots__ = ("parent", "parent_seq", "child")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PARENT_SEQ_FIELD_NUMBER: _ClassVar[int]
    CHILD_FIELD_NUMBER: _ClassVar[int]
    parent: str
    parent_seq: int
    child: str
    def __init__(self, parent: _Optional[str] = ..., parent_seq: _Optional[int] = ..., child: _Optional[str] = ...) -> None: ...

class Point(_message.Message):
    __slots__ = ("kind", "text", "seq", "times")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    text: str
    seq: int
    times: int
    def __init__(self, kind: _Optional[str] = ..., text: _Optional[str] = ..., seq: _Optional[int] = ..., times: _Optional[int] = ...) -> None: ...

class SessionCompacted(_message.Message):
    __slots__ = ("summary", "upto_seq", "strategy", "tokens_before", "tokens_after", "label", "from_seq", "records", "turns", "points", "pins", "kept_from", "checkpoint", "automatic", "written_by", "fallback", "provider", "model", "usage", "cost_microusd", "priced", "estimated", "duration_ms")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    UPTO_SEQ_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AFTER_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    PINS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FROM_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_BY_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    PRICED_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    summary: str
    upto_seq: int
    strategy: str
    tokens_before: int
    tokens_after: int
    label: Label
    from_seq: int
    records: int
    turns: int
    points: _containers.RepeatedCompositeFieldContainer[Point]
    pins: _containers.RepeatedScalarFieldContainer[int]
    kept_from: int
    checkpoint: int
    automatic: bool
    written_by: str
    fallback: str
    provider: str
    model: str
    usage: Usage
    cost_microusd: int
    priced: str
    estimated: bool
    duration_ms: int
    def __init__(self, summary: _Optional[str] = ..., upto_seq: _Optional[int] = ..., strategy: _Optional[str] = ..., tokens_before: _Optional[int] = ..., tokens_after: _Optional[int] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., from_seq: _Optional[int] = ..., records: _Optional[int] = ..., turns: _Optional[int] = ..., points: _Optional[_Iterable[_Union[Point, _Mapping]]] = ..., pins: _Optional[_Iterable[int]] = ..., kept_from: _Optional[int] = ..., checkpoint: _Optional[int] = ..., automatic: _Optional[bool] = ..., written_by: _Optional[str] = ..., fallback: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., cost_microusd: _Optional[int] = ..., priced: _Optional[str] = ..., estimated: _Optional[bool] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class SessionUncompacted(_message.Message):
    __slots__ = ("compactions",)
    COMPACTIONS_FIELD_NUMBER: _ClassVar[int]
    compactions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, compactions: _Optional[_Iterable[int]] = ...) -> None: ...

class SessionPinned(_message.Message):
    __slots__ = ("accepted_seq", "removed")
    ACCEPTED_SEQ_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    accepted_seq: int
    removed: bool
    def __init__(self, accepted_seq: _Optional[int] = ..., removed: _Optional[bool] = ...) -> None: ...

class SessionRestored(_message.Message):
    __slots__ = ("to_seq", "changes", "conversation", "files", "left")
    TO_SEQ_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    to_seq: int
    changes: _containers.RepeatedCompositeFieldContainer[FileChange]
    conversation: bool
    files: bool
    left: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, to_seq: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[FileChange, _Mapping]]] = ..., conversation: _Optional[bool] = ..., files: _Optional[bool] = ..., left: _Optional[_Iterable[str]] = ...) -> None: ...

class SessionRuled(_message.Message):
    __slots__ = ("rule_id", "words", "removed")
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    words: str
    removed: bool
    def __init__(self, rule_id: _Optional[str] = ..., words: _Optional[str] = ..., removed: _Optional[bool] = ...) -> None: ...

class SessionChanged(_message.Message):
    __slots__ = ("title", "archived", "kept")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    title: str
    archived: bool
    kept: bool
    def __init__(self, title: _Optional[str] = ..., archived: _Optional[bool] = ..., kept: _Optional[bool] = ...) -> None: ...

class CandidateProposed(_message.Message):
    __slots__ = ("candidate_id", "candidate_kind", "content", "confidence_bps", "risk", "evidence", "owner", "session_id", "label", "found_by")
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_BPS_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    FOUND_BY_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    candidate_kind: str
    content: str
    confidence_bps: int
    risk: str
    evidence: _containers.RepeatedScalarFieldContainer[int]
    owner: str
    session_id: str
    label: Label
    found_by: str
    def __init__(self, candidate_id: _Optional[str] = ..., candidate_kind: _Optional[str] = ..., content: _Optional[str] = ..., confidence_bps: _Optional[int] = ..., risk: _Optional[str] = ..., evidence: _Optional[_Iterable[int]] = ..., owner: _Optional[str] = ..., session_id: _Optional[str] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., found_by: _Optional[str] = ...) -> None: ...

class CandidateSettled(_message.Message):
    __slots__ = ("candidate_id", "state", "reason", "automatic", "became")
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    BECAME_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    state: str
    reason: str
    automatic: bool
    became: str
    def __init__(self, candidate_id: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., automatic: _Optional[bool] = ..., became: _Optional[str] = ...) -> None: ...

class MemoryWritten(_message.Message):
    __slots__ = ("memory_id", "text", "memory_kind", "scope", "label", "supersedes", "state", "pinned", "digest")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    text: str
    memory_kind: str
    scope: str
    label: Label
    supersedes: str
    state: str
    pinned: bool
    digest: str
    def __init__(self, memory_id: _Optional[str] = ..., text: _Optional[str] = ..., memory_kind: _Optional[str] = ..., scope: _Optional[str] = ..., label: _Optional[_Union[Label, _Mapping]] = ..., supersedes: _Optional[str] = ..., state: _Optional[str] = ..., pinned: _Optional[bool] = ..., digest: _Optional[str] = ...) -> None: ...

class MemoryRemoved(_message.Message):
    __slots__ = ("memory_id", "reason")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    reason: str
    def __init__(self, memory_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class MessageReceived(_message.Message):
    __slots__ = ("message_id", "connector", "conversation", "sender", "text", "label")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    connector: str
    conversation: str
    sender: str
    text: str
    label: Label
    def __init__(self, message_id: _Optional[str] = ..., connector: _Optional[str] = ..., conversation: _Optional[str] = ..., sender: _Optional[str] = ..., text: _Optional[str] = ..., label: _Optional[_Union[Label, _Mapping]] = ...) -> None: ...

class MessageRefused(_message.Message):
    __slots__ = ("message_id", "reason")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    reason: str
    def __init__(self, message_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReplySent(_message.Message):
    __slots__ = ("message_id", "native_id", "possibly_duplicated")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    NATIVE_ID_FIELD_NUMBER: _ClassVar[int]
    POSSIBLY_DUPLICATED_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    native_id: str
    possibly_duplicated: bool
    def __init__(self, message_id: _Optional[str] = ..., native_id: _Optional[str] = ..., possibly_duplicated: _Optional[bool] = ...) -> None: ...

class ReplyAbandoned(_message.Message):
    __slots__ = ("message_id", "reason")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    reason: str
    def __init__(self, message_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class IncidentOpened(_message.Message):
    __slots__ = ("incident_id", "domain", "severity", "summary", "key", "fix")
    INCIDENT_ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    incident_id: str
    domain: str
    severity: str
    summary: str
    key: str
    fix: str
    def __init__(self, incident_id: _Optional[str] = ..., domain: _Optional[str] = ..., severity: _Optional[str] = ..., summary: _Optional[str] = ..., key: _Optional[str] = ..., fix: _Optional[str] = ...) -> None: ...

class IncidentTried(_message.Message):
    __slots__ = ("incident_id", "remedy", "result", "detail", "severity")
    INCIDENT_ID_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    incident_id: str
    remedy: str
    result: str
    detail: str
    severity: str
    def __init__(self, incident_id: _Optional[str] = ..., remedy: _Optional[str] = ..., result: _Optional[str] = ..., detail: _Optional[str] = ..., severity: _Optional[str] = ...) -> None: ...

class IncidentClosed(_message.Message):
    __slots__ = ("incident_id", "outcome")
    INCIDENT_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    incident_id: str
    outcome: str
    def __init__(self, incident_id: _Optional[str] = ..., outcome: _Optional[str] = ...) -> None: ...

class OwnerNotified(_message.Message):
    __slots__ = ("notice_id", "about", "key", "text", "link", "to")
    NOTICE_ID_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    notice_id: str
    about: str
    key: str
    text: str
    link: str
    to: str
    def __init__(self, notice_id: _Optional[str] = ..., about: _Optional[str] = ..., key: _Optional[str] = ..., text: _Optional[str] = ..., link: _Optional[str] = ..., to: _Optional[str] = ...) -> None: ...

class TaskFinished(_message.Message):
    __slots__ = ("task_id", "task_kind", "outcome", "message")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KIND_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    task_kind: str
    outcome: str
    message: str
    def __init__(self, task_id: _Optional[str] = ..., task_kind: _Optional[str] = ..., outcome: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class AdminChanged(_message.Message):
    __slots__ = ("what", "action", "subject", "details_json")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    DETAILS_JSON_FIELD_NUMBER: _ClassVar[int]
    what: str
    action: str
    subject: str
    details_json: str
    def __init__(self, what: _Optional[str] = ..., action: _Optional[str] = ..., subject: _Optional[str] = ..., details_json: _Optional[str] = ...) -> None: ...

class AccessRefused(_message.Message):
    __slots__ = ("address", "attempts")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    address: str
    attempts: int
    def __init__(self, address: _Optional[str] = ..., attempts: _Optional[int] = ...) -> None: ...

class AccessWidened(_message.Message):
    __slots__ = ("token_id", "address")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    address: str
    def __init__(self, token_id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class WorkerJoined(_message.Message):
    __slots__ = ("worker", "version", "platform", "tier", "tools")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    worker: str
    version: str
    platform: str
    tier: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, worker: _Optional[str] = ..., version: _Optional[str] = ..., platform: _Optional[str] = ..., tier: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkerLeft(_message.Message):
    __slots__ = ("worker", "why", "calls")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    worker: str
    why: str
    calls: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, worker: _Optional[str] = ..., why: _Optional[str] = ..., calls: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkerRefused(_message.Message):
    __slots__ = ("why", "worker", "address", "call_id", "detail", "times")
    WHY_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    why: str
    worker: str
    address: str
    call_id: str
    detail: str
    times: int
    def __init__(self, why: _Optional[str] = ..., worker: _Optional[str] = ..., address: _Optional[str] = ..., call_id: _Optional[str] = ..., detail: _Optional[str] = ..., times: _Optional[int] = ...) -> None: ...

class JournalArchived(_message.Message):
    __slots__ = ("segment", "entries", "bytes", "tapes")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TAPES_FIELD_NUMBER: _ClassVar[int]
    segment: str
    entries: int
    bytes: int
    tapes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, segment: _Optional[str] = ..., entries: _Optional[int] = ..., bytes: _Optional[int] = ..., tapes: _Optional[_Iterable[str]] = ...) -> None: ...

class JournalRestored(_message.Message):
    __slots__ = ("segment", "tape")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    TAPE_FIELD_NUMBER: _ClassVar[int]
    segment: str
    tape: str
    def __init__(self, segment: _Optional[str] = ..., tape: _Optional[str] = ...) -> None: ...

class JournalCheckpointed(_message.Message):
    __slots__ = ("size", "root", "note")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    size: int
    root: str
    note: str
    def __init__(self, size: _Optional[int] = ..., root: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("run_accepted", "run_started", "run_resumed", "run_completed", "run_failed", "run_cancelled", "input_received", "input_assembled", "route_planned", "model_replied", "model_failed", "model_used", "tool_proposed", "tool_decided", "tool_started", "tool_finished", "tool_handed_over", "tool_undone", "approval_requested", "approval_resolved", "agent_spawned", "agent_asked", "agent_answered", "session_created", "session_reset", "session_branched", "session_compacted", "session_uncompacted", "session_pinned", "session_restored", "session_ruled", "session_changed", "candidate_proposed", "candidate_settled", "memory_written", "memory_removed", "message_received", "message_refused", "reply_sent", "reply_abandoned", "incident_opened", "incident_tried", "incident_closed", "owner_notified", "task_finished", "admin_changed", "access_refused", "access_widened", "worker_joined", "worker_left", "worker_refused", "journal_archived", "journal_restored", "journal_checkpointed", "answer_refused", "run_clock_changed")
    RUN_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    RUN_STARTED_FIELD_NUMBER: _ClassVar[int]
    RUN_RESUMED_FIELD_NUMBER: _ClassVar[int]
    RUN_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    RUN_FAILED_FIELD_NUMBER: _ClassVar[int]
    RUN_CANCELLED_FIELD_NUMBER: _ClassVar[int]
    INPUT_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    INPUT_ASSEMBLED_FIELD_NUMBER: _ClassVar[int]
    ROUTE_PLANNED_FIELD_NUMBER: _ClassVar[int]
    MODEL_REPLIED_FIELD_NUMBER: _ClassVar[int]
    MODEL_FAILED_FIELD_NUMBER: _ClassVar[int]
    MODEL_USED_FIELD_NUMBER: _ClassVar[int]
    TOOL_PROPOSED_FIELD_NUMBER: _ClassVar[int]
    TOOL_DECIDED_FIELD_NUMBER: _ClassVar[int]
    TOOL_STARTED_FIELD_NUMBER: _ClassVar[int]
    TOOL_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TOOL_HANDED_OVER_FIELD_NUMBER: _ClassVar[int]
    TOOL_UNDONE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    AGENT_SPAWNED_FIELD_NUMBER: _ClassVar[int]
    AGENT_ASKED_FIELD_NUMBER: _ClassVar[int]
    AGENT_ANSWERED_FIELD_NUMBER: _ClassVar[int]
    SESSION_CREATED_FIELD_NUMBER: _ClassVar[int]
    SESSION_RESET_FIELD_NUMBER: _ClassVar[int]
    SESSION_BRANCHED_FIELD_NUMBER: _ClassVar[int]
    SESSION_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    SESSION_UNCOMPACTED_FIELD_NUMBER: _ClassVar[int]
    SESSION_PINNED_FIELD_NUMBER: _ClassVar[int]
    SESSION_RESTORED_FIELD_NUMBER: _ClassVar[int]
    SESSION_RULED_FIELD_NUMBER: _ClassVar[int]
    SESSION_CHANGED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_PROPOSED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_SETTLED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    MEMORY_REMOVED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_REFUSED_FIELD_NUMBER: _ClassVar[int]
    REPLY_SENT_FIELD_NUMBER: _ClassVar[int]
    REPLY_ABANDONED_FIELD_NUMBER: _ClassVar[int]
    INCIDENT_OPENED_FIELD_NUMBER: _ClassVar[int]
    INCIDENT_TRIED_FIELD_NUMBER: _ClassVar[int]
    INCIDENT_CLOSED_FIELD_NUMBER: _ClassVar[int]
    OWNER_NOTIFIED_FIELD_NUMBER: _ClassVar[int]
    TASK_FINISHED_FIELD_NUMBER: _ClassVar[int]
    ADMIN_CHANGED_FIELD_NUMBER: _ClassVar[int]
    ACCESS_REFUSED_FIELD_NUMBER: _ClassVar[int]
    ACCESS_WIDENED_FIELD_NUMBER: _ClassVar[int]
    WORKER_JOINED_FIELD_NUMBER: _ClassVar[int]
    WORKER_LEFT_FIELD_NUMBER: _ClassVar[int]
    WORKER_REFUSED_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_RESTORED_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_CHECKPOINTED_FIELD_NUMBER: _ClassVar[int]
    ANSWER_REFUSED_FIELD_NUMBER: _ClassVar[int]
    RUN_CLOCK_CHANGED_FIELD_NUMBER: _ClassVar[int]
    run_accepted: RunAccepted
    run_started: RunStarted
    run_resumed: RunResumed
    run_completed: RunCompleted
    run_failed: RunFailed
    run_cancelled: RunCancelled
    input_received: InputReceived
    input_assembled: InputAssembled
    route_planned: RoutePlanned
    model_replied: ModelReplied
    model_failed: ModelFailed
    model_used: ModelUsed
    tool_proposed: ToolProposed
    tool_decided: ToolDecided
    tool_started: ToolStarted
    tool_finished: ToolFinished
    tool_handed_over: ToolHandedOver
    tool_undone: ToolUndone
    approval_requested: ApprovalRequested
    approval_resolved: ApprovalResolved
    agent_spawned: AgentSpawned
    agent_asked: AgentAsked
    agent_answered: AgentAnswered
    session_created: SessionCreated
    session_reset: SessionReset
    session_branched: SessionBranched
    session_compacted: SessionCompacted
    session_uncompacted: SessionUncompacted
    session_pinned: SessionPinned
    session_restored: SessionRestored
    session_ruled: SessionRuled
    session_changed: SessionChanged
    candidate_proposed: CandidateProposed
    candidate_settled: CandidateSettled
    memory_written: MemoryWritten
    memory_removed: MemoryRemoved
    message_received: MessageReceived
    message_refused: MessageRefused
    reply_sent: ReplySent
    reply_abandoned: ReplyAbandoned
    incident_opened: IncidentOpened
    incident_tried: IncidentTried
    incident_closed: IncidentClosed
    owner_notified: OwnerNotified
    task_finished: TaskFinished
    admin_changed: AdminChanged
    access_refused: AccessRefused
    access_widened: AccessWidened
    worker_joined: WorkerJoined
    worker_left: WorkerLeft
    worker_refused: WorkerRefused
    journal_archived: JournalArchived
    journal_restored: JournalRestored
    journal_checkpointed: JournalCheckpointed
    answer_refused: AnswerRefused
    run_clock_changed: RunClockChanged
    def __init__(self, run_accepted: _Optional[_Union[RunAccepted, _Mapping]] = ..., run_started: _Optional[_Union[RunStarted, _Mapping]] = ..., run_resumed: _Optional[_Union[RunResumed, _Mapping]] = ..., run_completed: _Optional[_Union[RunCompleted, _Mapping]] = ..., run_failed: _Optional[_Union[RunFailed, _Mapping]] = ..., run_cancelled: _Optional[_Union[RunCancelled, _Mapping]] = ..., input_received: _Optional[_Union[InputReceived, _Mapping]] = ..., input_assembled: _Optional[_Union[InputAssembled, _Mapping]] = ..., route_planned: _Optional[_Union[RoutePlanned, _Mapping]] = ..., model_replied: _Optional[_Union[ModelReplied, _Mapping]] = ..., model_failed: _Optional[_Union[ModelFailed, _Mapping]] = ..., model_used: _Optional[_Union[ModelUsed, _Mapping]] = ..., tool_proposed: _Optional[_Union[ToolProposed, _Mapping]] = ..., tool_decided: _Optional[_Union[ToolDecided, _Mapping]] = ..., tool_started: _Optional[_Union[ToolStarted, _Mapping]] = ..., tool_finished: _Optional[_Union[ToolFinished, _Mapping]] = ..., tool_handed_over: _Optional[_Union[ToolHandedOver, _Mapping]] = ..., tool_undone: _Optional[_Union[ToolUndone, _Mapping]] = ..., approval_requested: _Optional[_Union[ApprovalRequested, _Mapping]] = ..., approval_resolved: _Optional[_Union[ApprovalResolved, _Mapping]] = ..., agent_spawned: _Optional[_Union[AgentSpawned, _Mapping]] = ..., agent_asked: _Optional[_Union[AgentAsked, _Mapping]] = ..., agent_answered: _Optional[_Union[AgentAnswered, _Mapping]] = ..., session_created: _Optional[_Union[SessionCreated, _Mapping]] = ..., session_reset: _Optional[_Union[SessionReset, _Mapping]] = ..., session_branched: _Optional[_Union[SessionBranched, _Mapping]] = ..., session_compacted: _Optional[_Union[SessionCompacted, _Mapping]] = ..., session_uncompacted: _Optional[_Union[SessionUncompacted, _Mapping]] = ..., session_pinned: _Optional[_Union[SessionPinned, _Mapping]] = ..., session_restored: _Optional[_Union[SessionRestored, _Mapping]] = ..., session_ruled: _Optional[_Union[SessionRuled, _Mapping]] = ..., session_changed: _Optional[_Union[SessionChanged, _Mapping]] = ..., candidate_proposed: _Optional[_Union[CandidateProposed, _Mapping]] = ..., candidate_settled: _Optional[_Union[CandidateSettled, _Mapping]] = ..., memory_written: _Optional[_Union[MemoryWritten, _Mapping]] = ..., memory_removed: _Optional[_Union[MemoryRemoved, _Mapping]] = ..., message_received: _Optional[_Union[MessageReceived, _Mapping]] = ..., message_refused: _Optional[_Union[MessageRefused, _Mapping]] = ..., reply_sent: _Optional[_Union[ReplySent, _Mapping]] = ..., reply_abandoned: _Optional[_Union[ReplyAbandoned, _Mapping]] = ..., incident_opened: _Optional[_Union[IncidentOpened, _Mapping]] = ..., incident_tried: _Optional[_Union[IncidentTried, _Mapping]] = ..., incident_closed: _Optional[_Union[IncidentClosed, _Mapping]] = ..., owner_notified: _Optional[_Union[OwnerNotified, _Mapping]] = ..., task_finished: _Optional[_Union[TaskFinished, _Mapping]] = ..., admin_changed: _Optional[_Union[AdminChanged, _Mapping]] = ..., access_refused: _Optional[_Union[AccessRefused, _Mapping]] = ..., access_widened: _Optional[_Union[AccessWidened, _Mapping]] = ..., worker_joined: _Optional[_Union[WorkerJoined, _Mapping]] = ..., worker_left: _Optional[_Union[WorkerLeft, _Mapping]] = ..., worker_refused: _Optional[_Union[WorkerRefused, _Mapping]] = ..., journal_archived: _Optional[_Union[JournalArchived, _Mapping]] = ..., journal_restored: _Optional[_Union[JournalRestored, _Mapping]] = ..., journal_checkpointed: _Optional[_Union[JournalCheckpointed, _Mapping]] = ..., answer_refused: _Optional[_Union[AnswerRefused, _Mapping]] = ..., run_clock_changed: _Optional[_Union[RunClockChanged, _Mapping]] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("tape", "seq", "position", "time_ms", "run_id", "principal", "kind", "hash", "event")
    TAPE_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    tape: str
    seq: int
    position: int
    time_ms: int
    run_id: str
    principal: str
    kind: str
    hash: str
    event: Event
    def __init__(self, tape: _Optional[str] = ..., seq: _Optional[int] = ..., position: _Optional[int] = ..., time_ms: _Optional[int] = ..., run_id: _Optional[str] = ..., principal: _Optional[str] = ..., kind: _Optional[str] = ..., hash: _Optional[str] = ..., event: _Optional[_Union[Event, _Mapping]] = ...) -> None: ...

class ModelDelta(_message.Message):
    __slots__ = ("run_id", "turn", "text", "reasoning", "call", "whole")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    turn: int
    text: str
    reasoning: str
    call: str
    whole: bool
    def __init__(self, run_id: _Optional[str] = ..., turn: _Optional[int] = ..., text: _Optional[str] = ..., reasoning: _Optional[str] = ..., call: _Optional[str] = ..., whole: _Optional[bool] = ...) -> None: ...

class ToolProgress(_message.Message):
    __slots__ = ("run_id", "call_id", "text")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    call_id: str
    text: str
    def __init__(self, run_id: _Optional[str] = ..., call_id: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class StateChanged(_message.Message):
    __slots__ = ("what",)
    WHAT_FIELD_NUMBER: _ClassVar[int]
    what: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, what: _Optional[_Iterable[str]] = ...) -> None: ...

class Submitted(_message.Message):
    __slots__ = ("run_id", "session_id", "submission_id", "state", "outcome", "seq")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    session_id: str
    submission_id: str
    state: str
    outcome: str
    seq: int
    def __init__(self, run_id: _Optional[str] = ..., session_id: _Optional[str] = ..., submission_id: _Optional[str] = ..., state: _Optional[str] = ..., outcome: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class Approval(_message.Message):
    __slots__ = ("approval_id", "session_id", "run_id", "owner", "origin", "requested_ms", "expires_ms", "decision", "resolved_ms", "request", "resolution", "resolved_by", "seq")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_BY_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    session_id: str
    run_id: str
    owner: str
    origin: str
    requested_ms: int
    expires_ms: int
    decision: str
    resolved_ms: int
    request: ApprovalRequested
    resolution: ApprovalResolved
    resolved_by: str
    seq: int
    def __init__(self, approval_id: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., owner: _Optional[str] = ..., origin: _Optional[str] = ..., requested_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., decision: _Optional[str] = ..., resolved_ms: _Optional[int] = ..., request: _Optional[_Union[ApprovalRequested, _Mapping]] = ..., resolution: _Optional[_Union[ApprovalResolved, _Mapping]] = ..., resolved_by: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class RunRow(_message.Message):
    __slots__ = ("run_id", "session_id", "principal", "origin", "state", "reason", "created_ms", "started_ms", "ended_ms", "heartbeat_ms", "recorded")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    session_id: str
    principal: str
    origin: str
    state: str
    reason: str
    created_ms: int
    started_ms: int
    ended_ms: int
    heartbeat_ms: int
    recorded: bool
    def __init__(self, run_id: _Optional[str] = ..., session_id: _Optional[str] = ..., principal: _Optional[str] = ..., origin: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., created_ms: _Optional[int] = ..., started_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ..., heartbeat_ms: _Optional[int] = ..., recorded: _Optional[bool] = ...) -> None: ...

class Accepted(_message.Message):
    __slots__ = ("id", "submitted", "approval", "run")
    ID_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    id: str
    submitted: Submitted
    approval: Approval
    run: RunRow
    def __init__(self, id: _Optional[str] = ..., submitted: _Optional[_Union[Submitted, _Mapping]] = ..., approval: _Optional[_Union[Approval, _Mapping]] = ..., run: _Optional[_Union[RunRow, _Mapping]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("code", "message", "retryable", "details_json")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_JSON_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retryable: bool
    details_json: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ..., details_json: _Optional[str] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("id", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    error: Problem
    def __init__(self, id: _Optional[str] = ..., error: _Optional[_Union[Problem, _Mapping]] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Happened(_message.Message):
    __slots__ = ("entry", "model_delta", "tool_progress", "accepted", "refused", "pong", "state_changed")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    MODEL_DELTA_FIELD_NUMBER: _ClassVar[int]
    TOOL_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    STATE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    entry: Entry
    model_delta: ModelDelta
    tool_progress: ToolProgress
    accepted: Accepted
    refused: Refused
    pong: Pong
    state_changed: StateChanged
    def __init__(self, entry: _Optional[_Union[Entry, _Mapping]] = ..., model_delta: _Optional[_Union[ModelDelta, _Mapping]] = ..., tool_progress: _Optional[_Union[ToolProgress, _Mapping]] = ..., accepted: _Optional[_Union[Accepted, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ..., state_changed: _Optional[_Union[StateChanged, _Mapping]] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("happened",)
    HAPPENED_FIELD_NUMBER: _ClassVar[int]
    happened: _containers.RepeatedCompositeFieldContainer[Happened]
    def __init__(self, happened: _Optional[_Iterable[_Union[Happened, _Mapping]]] = ...) -> None: ...
