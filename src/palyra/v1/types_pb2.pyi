from palyra.v1 import events_pb2 as _events_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorBody(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: _events_pb2.Problem
    def __init__(self, error: _Optional[_Union[_events_pb2.Problem, _Mapping]] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ("session_id", "after")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    after: int
    def __init__(self, session_id: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class Attaching(_message.Message):
    __slots__ = ("artifact", "name")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    artifact: str
    name: str
    def __init__(self, artifact: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Submit(_message.Message):
    __slots__ = ("text", "run_id", "mode", "model", "attachments", "id", "attended")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ATTENDED_FIELD_NUMBER: _ClassVar[int]
    text: str
    run_id: str
    mode: str
    model: str
    attachments: _containers.RepeatedCompositeFieldContainer[Attaching]
    id: str
    attended: bool
    def __init__(self, text: _Optional[str] = ..., run_id: _Optional[str] = ..., mode: _Optional[str] = ..., model: _Optional[str] = ..., attachments: _Optional[_Iterable[_Union[Attaching, _Mapping]]] = ..., id: _Optional[str] = ..., attended: _Optional[bool] = ...) -> None: ...

class AnswerApproval(_message.Message):
    __slots__ = ("decision", "scope", "subject", "for_ms", "arguments_json", "reason", "approval_id", "id", "seen")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    decision: str
    scope: str
    subject: _events_pb2.Subject
    for_ms: int
    arguments_json: str
    reason: str
    approval_id: str
    id: str
    seen: str
    def __init__(self, decision: _Optional[str] = ..., scope: _Optional[str] = ..., subject: _Optional[_Union[_events_pb2.Subject, _Mapping]] = ..., for_ms: _Optional[int] = ..., arguments_json: _Optional[str] = ..., reason: _Optional[str] = ..., approval_id: _Optional[str] = ..., id: _Optional[str] = ..., seen: _Optional[str] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ("run_id", "reason", "id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    reason: str
    id: str
    def __init__(self, run_id: _Optional[str] = ..., reason: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Up(_message.Message):
    __slots__ = ("open", "submit", "answer", "cancel", "ping")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    open: Open
    submit: Submit
    answer: AnswerApproval
    cancel: Cancel
    ping: Ping
    def __init__(self, open: _Optional[_Union[Open, _Mapping]] = ..., submit: _Optional[_Union[Submit, _Mapping]] = ..., answer: _Optional[_Union[AnswerApproval, _Mapping]] = ..., cancel: _Optional[_Union[Cancel, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ModelInfo(_message.Message):
    __slots__ = ("name", "provider", "model", "context_tokens", "default", "healthy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    name: str
    provider: str
    model: str
    context_tokens: int
    default: bool
    healthy: bool
    def __init__(self, name: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., context_tokens: _Optional[int] = ..., default: _Optional[bool] = ..., healthy: _Optional[bool] = ...) -> None: ...

class PolicyState(_message.Message):
    __slots__ = ("version", "preset")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    version: str
    preset: str
    def __init__(self, version: _Optional[str] = ..., preset: _Optional[str] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("version", "url", "home", "workspace", "models", "policy", "tools", "runs_working", "watchers", "entries", "incidents", "unread", "notes", "started_ms", "uptime_ms")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    RUNS_WORKING_FIELD_NUMBER: _ClassVar[int]
    WATCHERS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    INCIDENTS_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    UPTIME_MS_FIELD_NUMBER: _ClassVar[int]
    version: str
    url: str
    home: str
    workspace: str
    models: _containers.RepeatedCompositeFieldContainer[ModelInfo]
    policy: PolicyState
    tools: _containers.RepeatedScalarFieldContainer[str]
    runs_working: int
    watchers: int
    entries: int
    incidents: int
    unread: int
    notes: _containers.RepeatedScalarFieldContainer[str]
    started_ms: int
    uptime_ms: int
    def __init__(self, version: _Optional[str] = ..., url: _Optional[str] = ..., home: _Optional[str] = ..., workspace: _Optional[str] = ..., models: _Optional[_Iterable[_Union[ModelInfo, _Mapping]]] = ..., policy: _Optional[_Union[PolicyState, _Mapping]] = ..., tools: _Optional[_Iterable[str]] = ..., runs_working: _Optional[int] = ..., watchers: _Optional[int] = ..., entries: _Optional[int] = ..., incidents: _Optional[int] = ..., unread: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., started_ms: _Optional[int] = ..., uptime_ms: _Optional[int] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("time_ms", "input_bytes", "output_bytes")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    INPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    input_bytes: int
    output_bytes: int
    def __init__(self, time_ms: _Optional[int] = ..., input_bytes: _Optional[int] = ..., output_bytes: _Optional[int] = ...) -> None: ...

class ToolSpec(_message.Message):
    __slots__ = ("name", "description", "parameters_json", "effect", "capabilities", "limits", "tier", "source", "yields")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    YIELDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters_json: str
    effect: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    limits: Limits
    tier: str
    source: str
    yields: _events_pb2.Label
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters_json: _Optional[str] = ..., effect: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., tier: _Optional[str] = ..., source: _Optional[str] = ..., yields: _Optional[_Union[_events_pb2.Label, _Mapping]] = ...) -> None: ...

class ToolList(_message.Message):
    __slots__ = ("tools",)
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[ToolSpec]
    def __init__(self, tools: _Optional[_Iterable[_Union[ToolSpec, _Mapping]]] = ...) -> None: ...

class Rule(_message.Message):
    __slots__ = ("id", "effect", "reason", "file", "line")
    ID_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    id: str
    effect: str
    reason: str
    file: str
    line: int
    def __init__(self, id: _Optional[str] = ..., effect: _Optional[str] = ..., reason: _Optional[str] = ..., file: _Optional[str] = ..., line: _Optional[int] = ...) -> None: ...

class SourcesProblem(_message.Message):
    __slots__ = ("file", "line", "message")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    message: str
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class PolicyInForce(_message.Message):
    __slots__ = ("version", "preset", "folder", "policies", "problems")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    version: str
    preset: str
    folder: str
    policies: _containers.RepeatedCompositeFieldContainer[Rule]
    problems: _containers.RepeatedCompositeFieldContainer[SourcesProblem]
    def __init__(self, version: _Optional[str] = ..., preset: _Optional[str] = ..., folder: _Optional[str] = ..., policies: _Optional[_Iterable[_Union[Rule, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[SourcesProblem, _Mapping]]] = ...) -> None: ...

class Allow(_message.Message):
    __slots__ = ("reason", "policies")
    REASON_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    reason: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, reason: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("reason", "risk", "policies", "sends_private")
    REASON_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    SENDS_PRIVATE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    risk: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    sends_private: bool
    def __init__(self, reason: _Optional[str] = ..., risk: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ..., sends_private: _Optional[bool] = ...) -> None: ...

class Deny(_message.Message):
    __slots__ = ("reason", "policies")
    REASON_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    reason: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, reason: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ...) -> None: ...

class VerdictChoice(_message.Message):
    __slots__ = ("allow", "ask", "deny")
    ALLOW_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    DENY_FIELD_NUMBER: _ClassVar[int]
    allow: Allow
    ask: Ask
    deny: Deny
    def __init__(self, allow: _Optional[_Union[Allow, _Mapping]] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., deny: _Optional[_Union[Deny, _Mapping]] = ...) -> None: ...

class Deciding(_message.Message):
    __slots__ = ("id", "action", "effect", "reason", "file", "line")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    id: str
    action: str
    effect: str
    reason: str
    file: str
    line: int
    def __init__(self, id: _Optional[str] = ..., action: _Optional[str] = ..., effect: _Optional[str] = ..., reason: _Optional[str] = ..., file: _Optional[str] = ..., line: _Optional[int] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("verdict", "version", "tool", "principal", "rules", "errors", "facts_json", "asked")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    FACTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    verdict: VerdictChoice
    version: str
    tool: str
    principal: str
    rules: _containers.RepeatedCompositeFieldContainer[Deciding]
    errors: _containers.RepeatedScalarFieldContainer[str]
    facts_json: str
    asked: _events_pb2.ListOfString
    def __init__(self, verdict: _Optional[_Union[VerdictChoice, _Mapping]] = ..., version: _Optional[str] = ..., tool: _Optional[str] = ..., principal: _Optional[str] = ..., rules: _Optional[_Iterable[_Union[Deciding, _Mapping]]] = ..., errors: _Optional[_Iterable[str]] = ..., facts_json: _Optional[str] = ..., asked: _Optional[_Union[_events_pb2.ListOfString, _Mapping]] = ...) -> None: ...

class Reloaded(_message.Message):
    __slots__ = ("version", "added", "removed", "changed", "problems")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    version: str
    added: _containers.RepeatedScalarFieldContainer[str]
    removed: _containers.RepeatedScalarFieldContainer[str]
    changed: _containers.RepeatedScalarFieldContainer[str]
    problems: _containers.RepeatedCompositeFieldContainer[SourcesProblem]
    def __init__(self, version: _Optional[str] = ..., added: _Optional[_Iterable[str]] = ..., removed: _Optional[_Iterable[str]] = ..., changed: _Optional[_Iterable[str]] = ..., problems: _Optional[_Iterable[_Union[SourcesProblem, _Mapping]]] = ...) -> None: ...

class ConfigReloaded(_message.Message):
    __slots__ = ("live", "after_restart")
    LIVE_FIELD_NUMBER: _ClassVar[int]
    AFTER_RESTART_FIELD_NUMBER: _ClassVar[int]
    live: _containers.RepeatedScalarFieldContainer[str]
    after_restart: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, live: _Optional[_Iterable[str]] = ..., after_restart: _Optional[_Iterable[str]] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("token_id", "name", "principal", "scope", "created_ms", "expires_ms", "used_ms", "revoked_ms", "workspace")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    USED_MS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_MS_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    name: str
    principal: str
    scope: str
    created_ms: int
    expires_ms: int
    used_ms: int
    revoked_ms: int
    workspace: str
    def __init__(self, token_id: _Optional[str] = ..., name: _Optional[str] = ..., principal: _Optional[str] = ..., scope: _Optional[str] = ..., created_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., used_ms: _Optional[int] = ..., revoked_ms: _Optional[int] = ..., workspace: _Optional[str] = ...) -> None: ...

class TokenList(_message.Message):
    __slots__ = ("tokens",)
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ...) -> None: ...

class MadeToken(_message.Message):
    __slots__ = ("token", "info")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    token: str
    info: Token
    def __init__(self, token: _Optional[str] = ..., info: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class LoginLink(_message.Message):
    __slots__ = ("url",)
    URL_FIELD_NUMBER: _ClassVar[int]
    url: str
    def __init__(self, url: _Optional[str] = ...) -> None: ...

class Example(_message.Message):
    __slots__ = ("call_id", "session_id", "time_ms", "tool", "about", "before", "after", "reason", "policies", "times")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session_id: str
    time_ms: int
    tool: str
    about: str
    before: str
    after: str
    reason: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    times: int
    def __init__(self, call_id: _Optional[str] = ..., session_id: _Optional[str] = ..., time_ms: _Optional[int] = ..., tool: _Optional[str] = ..., about: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ..., reason: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ..., times: _Optional[int] = ...) -> None: ...

class Changed(_message.Message):
    __slots__ = ("calls", "examples")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    calls: int
    examples: _containers.RepeatedCompositeFieldContainer[Example]
    def __init__(self, calls: _Optional[int] = ..., examples: _Optional[_Iterable[_Union[Example, _Mapping]]] = ...) -> None: ...

class Hit(_message.Message):
    __slots__ = ("id", "calls")
    ID_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    id: str
    calls: int
    def __init__(self, id: _Optional[str] = ..., calls: _Optional[int] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("version", "calls", "same", "newly_denied", "newly_allowed", "newly_asked", "hits", "never_hit", "not_asked", "unknown", "inexact")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    SAME_FIELD_NUMBER: _ClassVar[int]
    NEWLY_DENIED_FIELD_NUMBER: _ClassVar[int]
    NEWLY_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    NEWLY_ASKED_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    NEVER_HIT_FIELD_NUMBER: _ClassVar[int]
    NOT_ASKED_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    INEXACT_FIELD_NUMBER: _ClassVar[int]
    version: str
    calls: int
    same: int
    newly_denied: Changed
    newly_allowed: Changed
    newly_asked: Changed
    hits: _containers.RepeatedCompositeFieldContainer[Hit]
    never_hit: _containers.RepeatedScalarFieldContainer[str]
    not_asked: int
    unknown: int
    inexact: int
    def __init__(self, version: _Optional[str] = ..., calls: _Optional[int] = ..., same: _Optional[int] = ..., newly_denied: _Optional[_Union[Changed, _Mapping]] = ..., newly_allowed: _Optional[_Union[Changed, _Mapping]] = ..., newly_asked: _Optional[_Union[Changed, _Mapping]] = ..., hits: _Optional[_Iterable[_Union[Hit, _Mapping]]] = ..., never_hit: _Optional[_Iterable[str]] = ..., not_asked: _Optional[int] = ..., unknown: _Optional[int] = ..., inexact: _Optional[int] = ...) -> None: ...

class Permit(_message.Message):
    __slots__ = ("id", "tool", "principal", "what", "cedar", "covers", "examples", "kept_narrow_by")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    CEDAR_FIELD_NUMBER: _ClassVar[int]
    COVERS_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    KEPT_NARROW_BY_FIELD_NUMBER: _ClassVar[int]
    id: str
    tool: str
    principal: str
    what: str
    cedar: str
    covers: int
    examples: _containers.RepeatedScalarFieldContainer[str]
    kept_narrow_by: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., tool: _Optional[str] = ..., principal: _Optional[str] = ..., what: _Optional[str] = ..., cedar: _Optional[str] = ..., covers: _Optional[int] = ..., examples: _Optional[_Iterable[str]] = ..., kept_narrow_by: _Optional[_Iterable[str]] = ...) -> None: ...

class Left(_message.Message):
    __slots__ = ("call_id", "tool", "about", "why")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    about: str
    why: str
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., about: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Suggestion(_message.Message):
    __slots__ = ("cedar", "permits", "left", "approved", "denied", "already", "passing")
    CEDAR_FIELD_NUMBER: _ClassVar[int]
    PERMITS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    ALREADY_FIELD_NUMBER: _ClassVar[int]
    PASSING_FIELD_NUMBER: _ClassVar[int]
    cedar: str
    permits: _containers.RepeatedCompositeFieldContainer[Permit]
    left: _containers.RepeatedCompositeFieldContainer[Left]
    approved: int
    denied: int
    already: int
    passing: int
    def __init__(self, cedar: _Optional[str] = ..., permits: _Optional[_Iterable[_Union[Permit, _Mapping]]] = ..., left: _Optional[_Iterable[_Union[Left, _Mapping]]] = ..., approved: _Optional[int] = ..., denied: _Optional[int] = ..., already: _Optional[int] = ..., passing: _Optional[int] = ...) -> None: ...

class Shadowed(_message.Message):
    __slots__ = ("named", "version", "versions", "calls", "same", "denied", "allowed", "asked")
    NAMED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    SAME_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    named: str
    version: str
    versions: _containers.RepeatedScalarFieldContainer[str]
    calls: int
    same: int
    denied: Changed
    allowed: Changed
    asked: Changed
    def __init__(self, named: _Optional[str] = ..., version: _Optional[str] = ..., versions: _Optional[_Iterable[str]] = ..., calls: _Optional[int] = ..., same: _Optional[int] = ..., denied: _Optional[_Union[Changed, _Mapping]] = ..., allowed: _Optional[_Union[Changed, _Mapping]] = ..., asked: _Optional[_Union[Changed, _Mapping]] = ...) -> None: ...

class ExplainedCall(_message.Message):
    __slots__ = ("call_id", "session_id", "time_ms", "tool", "about", "decided", "now")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    session_id: str
    time_ms: int
    tool: str
    about: str
    decided: _events_pb2.ToolDecided
    now: Explanation
    def __init__(self, call_id: _Optional[str] = ..., session_id: _Optional[str] = ..., time_ms: _Optional[int] = ..., tool: _Optional[str] = ..., about: _Optional[str] = ..., decided: _Optional[_Union[_events_pb2.ToolDecided, _Mapping]] = ..., now: _Optional[_Union[Explanation, _Mapping]] = ...) -> None: ...

class PolicyFile(_message.Message):
    __slots__ = ("name", "text", "digest", "shipped")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SHIPPED_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    digest: str
    shipped: bool
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., digest: _Optional[str] = ..., shipped: _Optional[bool] = ...) -> None: ...

class PolicyFiles(_message.Message):
    __slots__ = ("folder", "preset", "presets", "files")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    PRESETS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    folder: str
    preset: str
    presets: _containers.RepeatedScalarFieldContainer[str]
    files: _containers.RepeatedCompositeFieldContainer[PolicyFile]
    def __init__(self, folder: _Optional[str] = ..., preset: _Optional[str] = ..., presets: _Optional[_Iterable[str]] = ..., files: _Optional[_Iterable[_Union[PolicyFile, _Mapping]]] = ...) -> None: ...

class Saved(_message.Message):
    __slots__ = ("file", "reloaded")
    FILE_FIELD_NUMBER: _ClassVar[int]
    RELOADED_FIELD_NUMBER: _ClassVar[int]
    file: PolicyFile
    reloaded: Reloaded
    def __init__(self, file: _Optional[_Union[PolicyFile, _Mapping]] = ..., reloaded: _Optional[_Union[Reloaded, _Mapping]] = ...) -> None: ...

class Validated(_message.Message):
    __slots__ = ("ok", "problems", "policies")
    OK_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    problems: _containers.RepeatedCompositeFieldContainer[SourcesProblem]
    policies: _containers.RepeatedCompositeFieldContainer[Rule]
    def __init__(self, ok: _Optional[bool] = ..., problems: _Optional[_Iterable[_Union[SourcesProblem, _Mapping]]] = ..., policies: _Optional[_Iterable[_Union[Rule, _Mapping]]] = ...) -> None: ...

class Situation(_message.Message):
    __slots__ = ("id", "words")
    ID_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    words: str
    def __init__(self, id: _Optional[str] = ..., words: _Optional[str] = ...) -> None: ...

class Cell(_message.Message):
    __slots__ = ("word", "reason", "policies")
    WORD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    word: str
    reason: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, word: _Optional[str] = ..., reason: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ...) -> None: ...

class ToolRow(_message.Message):
    __slots__ = ("tool", "effect", "capabilities", "source", "cells")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    tool: str
    effect: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    source: str
    cells: _containers.RepeatedCompositeFieldContainer[Cell]
    def __init__(self, tool: _Optional[str] = ..., effect: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., source: _Optional[str] = ..., cells: _Optional[_Iterable[_Union[Cell, _Mapping]]] = ...) -> None: ...

class WhoCan(_message.Message):
    __slots__ = ("principal", "known", "situations", "tools")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    SITUATIONS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    principal: str
    known: _containers.RepeatedScalarFieldContainer[str]
    situations: _containers.RepeatedCompositeFieldContainer[Situation]
    tools: _containers.RepeatedCompositeFieldContainer[ToolRow]
    def __init__(self, principal: _Optional[str] = ..., known: _Optional[_Iterable[str]] = ..., situations: _Optional[_Iterable[_Union[Situation, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[ToolRow, _Mapping]]] = ...) -> None: ...

class Nothing(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Secret(_message.Message):
    __slots__ = ("scope", "name", "size", "hosts", "tools", "created_ms", "updated_ms", "used_ms", "readable")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_MS_FIELD_NUMBER: _ClassVar[int]
    USED_MS_FIELD_NUMBER: _ClassVar[int]
    READABLE_FIELD_NUMBER: _ClassVar[int]
    scope: str
    name: str
    size: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedScalarFieldContainer[str]
    created_ms: int
    updated_ms: int
    used_ms: int
    readable: bool
    def __init__(self, scope: _Optional[str] = ..., name: _Optional[str] = ..., size: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[str]] = ..., created_ms: _Optional[int] = ..., updated_ms: _Optional[int] = ..., used_ms: _Optional[int] = ..., readable: _Optional[bool] = ...) -> None: ...

class VaultState(_message.Message):
    __slots__ = ("state", "why", "secrets")
    STATE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    state: str
    why: str
    secrets: _containers.RepeatedCompositeFieldContainer[Secret]
    def __init__(self, state: _Optional[str] = ..., why: _Optional[str] = ..., secrets: _Optional[_Iterable[_Union[Secret, _Mapping]]] = ...) -> None: ...

class KeyRotated(_message.Message):
    __slots__ = ("secrets",)
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    secrets: int
    def __init__(self, secrets: _Optional[int] = ...) -> None: ...

class Exposure(_message.Message):
    __slots__ = ("host", "tls", "own_files", "quic", "grpc", "names", "allowed_hosts", "allowed_origins", "workers")
    HOST_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    OWN_FILES_FIELD_NUMBER: _ClassVar[int]
    QUIC_FIELD_NUMBER: _ClassVar[int]
    GRPC_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_HOSTS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_ORIGINS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    host: str
    tls: bool
    own_files: bool
    quic: bool
    grpc: bool
    names: _containers.RepeatedScalarFieldContainer[str]
    allowed_hosts: _containers.RepeatedScalarFieldContainer[str]
    allowed_origins: _containers.RepeatedScalarFieldContainer[str]
    workers: str
    def __init__(self, host: _Optional[str] = ..., tls: _Optional[bool] = ..., own_files: _Optional[bool] = ..., quic: _Optional[bool] = ..., grpc: _Optional[bool] = ..., names: _Optional[_Iterable[str]] = ..., allowed_hosts: _Optional[_Iterable[str]] = ..., allowed_origins: _Optional[_Iterable[str]] = ..., workers: _Optional[str] = ...) -> None: ...

class Listener(_message.Message):
    __slots__ = ("name", "address", "tls")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    tls: bool
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., tls: _Optional[bool] = ...) -> None: ...

class Shown(_message.Message):
    __slots__ = ("fingerprint", "subject", "issuer", "names", "begins_ms", "expires_ms", "own")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    BEGINS_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    fingerprint: str
    subject: str
    issuer: str
    names: _containers.RepeatedScalarFieldContainer[str]
    begins_ms: int
    expires_ms: int
    own: bool
    def __init__(self, fingerprint: _Optional[str] = ..., subject: _Optional[str] = ..., issuer: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ..., begins_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., own: _Optional[bool] = ...) -> None: ...

class Certificate(_message.Message):
    __slots__ = ("fingerprint", "purpose", "name", "issued_ms", "expires_ms", "revoked_ms")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ISSUED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_MS_FIELD_NUMBER: _ClassVar[int]
    fingerprint: str
    purpose: str
    name: str
    issued_ms: int
    expires_ms: int
    revoked_ms: int
    def __init__(self, fingerprint: _Optional[str] = ..., purpose: _Optional[str] = ..., name: _Optional[str] = ..., issued_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., revoked_ms: _Optional[int] = ...) -> None: ...

class Listening(_message.Message):
    __slots__ = ("exposure", "listeners", "served", "authority", "workers")
    EXPOSURE_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    exposure: Exposure
    listeners: _containers.RepeatedCompositeFieldContainer[Listener]
    served: Shown
    authority: Shown
    workers: _containers.RepeatedCompositeFieldContainer[Certificate]
    def __init__(self, exposure: _Optional[_Union[Exposure, _Mapping]] = ..., listeners: _Optional[_Iterable[_Union[Listener, _Mapping]]] = ..., served: _Optional[_Union[Shown, _Mapping]] = ..., authority: _Optional[_Union[Shown, _Mapping]] = ..., workers: _Optional[_Iterable[_Union[Certificate, _Mapping]]] = ...) -> None: ...

class UsageRow(_message.Message):
    __slots__ = ("group", "calls", "input_tokens", "output_tokens", "cached_tokens", "cost_microusd", "duration_ms", "first_delta_ms", "unpriced", "slowest_ms", "from_ms", "until_ms", "estimated")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_DELTA_MS_FIELD_NUMBER: _ClassVar[int]
    UNPRICED_FIELD_NUMBER: _ClassVar[int]
    SLOWEST_MS_FIELD_NUMBER: _ClassVar[int]
    FROM_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    group: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_microusd: int
    duration_ms: int
    first_delta_ms: int
    unpriced: int
    slowest_ms: int
    from_ms: int
    until_ms: int
    estimated: int
    def __init__(self, group: _Optional[str] = ..., calls: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., cost_microusd: _Optional[int] = ..., duration_ms: _Optional[int] = ..., first_delta_ms: _Optional[int] = ..., unpriced: _Optional[int] = ..., slowest_ms: _Optional[int] = ..., from_ms: _Optional[int] = ..., until_ms: _Optional[int] = ..., estimated: _Optional[int] = ...) -> None: ...

class UsageList(_message.Message):
    __slots__ = ("usage", "total")
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    usage: _containers.RepeatedCompositeFieldContainer[UsageRow]
    total: UsageRow
    def __init__(self, usage: _Optional[_Iterable[_Union[UsageRow, _Mapping]]] = ..., total: _Optional[_Union[UsageRow, _Mapping]] = ...) -> None: ...

class Forecast(_message.Message):
    __slots__ = ("from_ms", "until_ms", "spent_tokens", "spent_microusd", "expected_tokens", "expected_microusd", "a_day_tokens", "a_day_microusd", "unpriced", "basis")
    FROM_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    SPENT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SPENT_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    A_DAY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    A_DAY_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    UNPRICED_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    from_ms: int
    until_ms: int
    spent_tokens: int
    spent_microusd: int
    expected_tokens: int
    expected_microusd: int
    a_day_tokens: int
    a_day_microusd: int
    unpriced: int
    basis: str
    def __init__(self, from_ms: _Optional[int] = ..., until_ms: _Optional[int] = ..., spent_tokens: _Optional[int] = ..., spent_microusd: _Optional[int] = ..., expected_tokens: _Optional[int] = ..., expected_microusd: _Optional[int] = ..., a_day_tokens: _Optional[int] = ..., a_day_microusd: _Optional[int] = ..., unpriced: _Optional[int] = ..., basis: _Optional[str] = ...) -> None: ...

class RunForecast(_message.Message):
    __slots__ = ("runs", "times", "tokens", "microusd", "most_microusd", "expected_tokens", "expected_microusd", "unpriced", "basis")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MICROUSD_FIELD_NUMBER: _ClassVar[int]
    MOST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    UNPRICED_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    runs: int
    times: int
    tokens: int
    microusd: int
    most_microusd: int
    expected_tokens: int
    expected_microusd: int
    unpriced: int
    basis: str
    def __init__(self, runs: _Optional[int] = ..., times: _Optional[int] = ..., tokens: _Optional[int] = ..., microusd: _Optional[int] = ..., most_microusd: _Optional[int] = ..., expected_tokens: _Optional[int] = ..., expected_microusd: _Optional[int] = ..., unpriced: _Optional[int] = ..., basis: _Optional[str] = ...) -> None: ...

class Terms(_message.Message):
    __slots__ = ("per", "every", "tokens", "microusd", "warn_bps", "then", "who")
    PER_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MICROUSD_FIELD_NUMBER: _ClassVar[int]
    WARN_BPS_FIELD_NUMBER: _ClassVar[int]
    THEN_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    per: str
    every: str
    tokens: int
    microusd: int
    warn_bps: int
    then: str
    who: str
    def __init__(self, per: _Optional[str] = ..., every: _Optional[str] = ..., tokens: _Optional[int] = ..., microusd: _Optional[int] = ..., warn_bps: _Optional[int] = ..., then: _Optional[str] = ..., who: _Optional[str] = ...) -> None: ...

class BudgetState(_message.Message):
    __slots__ = ("name", "source", "terms", "says", "who", "period", "until_ms", "unit", "limit", "spent", "reserved", "left")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    SAYS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    name: str
    source: str
    terms: Terms
    says: str
    who: str
    period: str
    until_ms: int
    unit: str
    limit: int
    spent: int
    reserved: int
    left: int
    def __init__(self, name: _Optional[str] = ..., source: _Optional[str] = ..., terms: _Optional[_Union[Terms, _Mapping]] = ..., says: _Optional[str] = ..., who: _Optional[str] = ..., period: _Optional[str] = ..., until_ms: _Optional[int] = ..., unit: _Optional[str] = ..., limit: _Optional[int] = ..., spent: _Optional[int] = ..., reserved: _Optional[int] = ..., left: _Optional[int] = ...) -> None: ...

class BudgetList(_message.Message):
    __slots__ = ("budgets",)
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    budgets: _containers.RepeatedCompositeFieldContainer[BudgetState]
    def __init__(self, budgets: _Optional[_Iterable[_Union[BudgetState, _Mapping]]] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ("name", "terms", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    terms: Terms
    source: str
    def __init__(self, name: _Optional[str] = ..., terms: _Optional[_Union[Terms, _Mapping]] = ..., source: _Optional[str] = ...) -> None: ...

class OpenAIModel(_message.Message):
    __slots__ = ("id", "created", "owned_by", "object")
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    OWNED_BY_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    id: str
    created: int
    owned_by: str
    object: str
    def __init__(self, id: _Optional[str] = ..., created: _Optional[int] = ..., owned_by: _Optional[str] = ..., object: _Optional[str] = ...) -> None: ...

class ModelList(_message.Message):
    __slots__ = ("models", "data", "object")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ModelInfo]
    data: _containers.RepeatedCompositeFieldContainer[OpenAIModel]
    object: str
    def __init__(self, models: _Optional[_Iterable[_Union[ModelInfo, _Mapping]]] = ..., data: _Optional[_Iterable[_Union[OpenAIModel, _Mapping]]] = ..., object: _Optional[str] = ...) -> None: ...

class Permission(_message.Message):
    __slots__ = ("tool", "kind", "value")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    tool: str
    kind: str
    value: str
    def __init__(self, tool: _Optional[str] = ..., kind: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("name", "description", "version", "digest", "folder", "files", "granted", "state", "vouched", "signer", "signature", "generated", "installed_ms")
    class FilesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VOUCHED_FIELD_NUMBER: _ClassVar[int]
    SIGNER_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    GENERATED_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    version: str
    digest: str
    folder: str
    files: _containers.ScalarMap[str, str]
    granted: _containers.RepeatedCompositeFieldContainer[Permission]
    state: str
    vouched: str
    signer: str
    signature: str
    generated: bool
    installed_ms: int
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., version: _Optional[str] = ..., digest: _Optional[str] = ..., folder: _Optional[str] = ..., files: _Optional[_Mapping[str, str]] = ..., granted: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ..., state: _Optional[str] = ..., vouched: _Optional[str] = ..., signer: _Optional[str] = ..., signature: _Optional[str] = ..., generated: _Optional[bool] = ..., installed_ms: _Optional[int] = ...) -> None: ...

class Listed(_message.Message):
    __slots__ = ("record", "state", "publisher", "problem")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PUBLISHER_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    record: Record
    state: str
    publisher: str
    problem: str
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ..., state: _Optional[str] = ..., publisher: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class SkillList(_message.Message):
    __slots__ = ("skills",)
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Listed]
    def __init__(self, skills: _Optional[_Iterable[_Union[Listed, _Mapping]]] = ...) -> None: ...

class Proposal(_message.Message):
    __slots__ = ("name", "description", "version", "digest", "permissions", "added", "dropped", "changes", "updates", "signer", "publisher", "state", "older_than")
    class ChangesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    SIGNER_FIELD_NUMBER: _ClassVar[int]
    PUBLISHER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OLDER_THAN_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    version: str
    digest: str
    permissions: _containers.RepeatedCompositeFieldContainer[Permission]
    added: _containers.RepeatedCompositeFieldContainer[Permission]
    dropped: _containers.RepeatedCompositeFieldContainer[Permission]
    changes: _containers.ScalarMap[str, str]
    updates: bool
    signer: str
    publisher: str
    state: str
    older_than: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., version: _Optional[str] = ..., digest: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ..., added: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ..., dropped: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ..., changes: _Optional[_Mapping[str, str]] = ..., updates: _Optional[bool] = ..., signer: _Optional[str] = ..., publisher: _Optional[str] = ..., state: _Optional[str] = ..., older_than: _Optional[str] = ...) -> None: ...

class Wants(_message.Message):
    __slots__ = ("hosts", "read", "write", "secrets")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    read: _containers.RepeatedScalarFieldContainer[str]
    write: _containers.RepeatedScalarFieldContainer[str]
    secrets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[str]] = ..., read: _Optional[_Iterable[str]] = ..., write: _Optional[_Iterable[str]] = ..., secrets: _Optional[_Iterable[str]] = ...) -> None: ...

class Bounds(_message.Message):
    __slots__ = ("fuel", "memory_bytes", "time_ms", "output_bytes")
    FUEL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    fuel: int
    memory_bytes: int
    time_ms: int
    output_bytes: int
    def __init__(self, fuel: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., time_ms: _Optional[int] = ..., output_bytes: _Optional[int] = ...) -> None: ...

class ToolEntry(_message.Message):
    __slots__ = ("name", "description", "module", "effect", "arguments_json", "wants", "limits")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    WANTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    module: str
    effect: str
    arguments_json: str
    wants: Wants
    limits: Bounds
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., module: _Optional[str] = ..., effect: _Optional[str] = ..., arguments_json: _Optional[str] = ..., wants: _Optional[_Union[Wants, _Mapping]] = ..., limits: _Optional[_Union[Bounds, _Mapping]] = ...) -> None: ...

class ShownSkill(_message.Message):
    __slots__ = ("skill", "permissions", "tools", "instructions")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    skill: Listed
    permissions: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedCompositeFieldContainer[ToolEntry]
    instructions: str
    def __init__(self, skill: _Optional[_Union[Listed, _Mapping]] = ..., permissions: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[_Union[ToolEntry, _Mapping]]] = ..., instructions: _Optional[str] = ...) -> None: ...

class AdminInstallSkillAnswer(_message.Message):
    __slots__ = ("proposal", "shown_skill")
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    SHOWN_SKILL_FIELD_NUMBER: _ClassVar[int]
    proposal: Proposal
    shown_skill: ShownSkill
    def __init__(self, proposal: _Optional[_Union[Proposal, _Mapping]] = ..., shown_skill: _Optional[_Union[ShownSkill, _Mapping]] = ...) -> None: ...

class Publisher(_message.Message):
    __slots__ = ("name", "key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class PublisherList(_message.Message):
    __slots__ = ("publishers",)
    PUBLISHERS_FIELD_NUMBER: _ClassVar[int]
    publishers: _containers.RepeatedCompositeFieldContainer[Publisher]
    def __init__(self, publishers: _Optional[_Iterable[_Union[Publisher, _Mapping]]] = ...) -> None: ...

class Note(_message.Message):
    __slots__ = ("workspace", "file", "state", "sha256", "size", "text", "diff", "problem", "accepted_sha256", "accepted_by", "accepted_ms")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_SHA256_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_BY_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_MS_FIELD_NUMBER: _ClassVar[int]
    workspace: str
    file: str
    state: str
    sha256: str
    size: int
    text: str
    diff: str
    problem: str
    accepted_sha256: str
    accepted_by: str
    accepted_ms: int
    def __init__(self, workspace: _Optional[str] = ..., file: _Optional[str] = ..., state: _Optional[str] = ..., sha256: _Optional[str] = ..., size: _Optional[int] = ..., text: _Optional[str] = ..., diff: _Optional[str] = ..., problem: _Optional[str] = ..., accepted_sha256: _Optional[str] = ..., accepted_by: _Optional[str] = ..., accepted_ms: _Optional[int] = ...) -> None: ...

class NoteList(_message.Message):
    __slots__ = ("notes",)
    NOTES_FIELD_NUMBER: _ClassVar[int]
    notes: _containers.RepeatedCompositeFieldContainer[Note]
    def __init__(self, notes: _Optional[_Iterable[_Union[Note, _Mapping]]] = ...) -> None: ...

class Pending(_message.Message):
    __slots__ = ("server", "tool", "fingerprint", "new", "change", "words")
    SERVER_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    NEW_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    server: str
    tool: str
    fingerprint: str
    new: bool
    change: str
    words: str
    def __init__(self, server: _Optional[str] = ..., tool: _Optional[str] = ..., fingerprint: _Optional[str] = ..., new: _Optional[bool] = ..., change: _Optional[str] = ..., words: _Optional[str] = ...) -> None: ...

class ServerStatus(_message.Message):
    __slots__ = ("name", "state", "detail", "transport", "server", "protocol", "tools", "pending", "problems", "starts", "log", "where", "tier", "fingerprint", "late")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: str
    detail: str
    transport: str
    server: str
    protocol: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    pending: _containers.RepeatedCompositeFieldContainer[Pending]
    problems: _containers.RepeatedScalarFieldContainer[str]
    starts: int
    log: str
    where: str
    tier: str
    fingerprint: str
    late: int
    def __init__(self, name: _Optional[str] = ..., state: _Optional[str] = ..., detail: _Optional[str] = ..., transport: _Optional[str] = ..., server: _Optional[str] = ..., protocol: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., pending: _Optional[_Iterable[_Union[Pending, _Mapping]]] = ..., problems: _Optional[_Iterable[str]] = ..., starts: _Optional[int] = ..., log: _Optional[str] = ..., where: _Optional[str] = ..., tier: _Optional[str] = ..., fingerprint: _Optional[str] = ..., late: _Optional[int] = ...) -> None: ...

class ServerList(_message.Message):
    __slots__ = ("servers",)
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    servers: _containers.RepeatedCompositeFieldContainer[ServerStatus]
    def __init__(self, servers: _Optional[_Iterable[_Union[ServerStatus, _Mapping]]] = ...) -> None: ...

class ProviderInfo(_message.Message):
    __slots__ = ("name", "kind", "base_url", "models", "key", "found", "default", "running", "healthy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    base_url: str
    models: _containers.RepeatedScalarFieldContainer[str]
    key: str
    found: bool
    default: bool
    running: bool
    healthy: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., base_url: _Optional[str] = ..., models: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., found: _Optional[bool] = ..., default: _Optional[bool] = ..., running: _Optional[bool] = ..., healthy: _Optional[bool] = ...) -> None: ...

class ProviderList(_message.Message):
    __slots__ = ("providers", "restart")
    PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    providers: _containers.RepeatedCompositeFieldContainer[ProviderInfo]
    restart: bool
    def __init__(self, providers: _Optional[_Iterable[_Union[ProviderInfo, _Mapping]]] = ..., restart: _Optional[bool] = ...) -> None: ...

class Trial(_message.Message):
    __slots__ = ("ok", "model", "took_ms", "message", "fix")
    OK_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    model: str
    took_ms: int
    message: str
    fix: str
    def __init__(self, ok: _Optional[bool] = ..., model: _Optional[str] = ..., took_ms: _Optional[int] = ..., message: _Optional[str] = ..., fix: _Optional[str] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("task_id", "kind", "state", "payload_json", "key", "priority", "ready_ms", "expires_ms", "attempts", "max_attempts", "again", "lease_owner", "lease_until_ms", "heartbeat_ms", "created_ms", "started_ms", "ended_ms", "error", "principal", "session_id", "schedule_id")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    READY_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    LEASE_OWNER_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    kind: str
    state: str
    payload_json: str
    key: str
    priority: int
    ready_ms: int
    expires_ms: int
    attempts: int
    max_attempts: int
    again: bool
    lease_owner: str
    lease_until_ms: int
    heartbeat_ms: int
    created_ms: int
    started_ms: int
    ended_ms: int
    error: str
    principal: str
    session_id: str
    schedule_id: str
    def __init__(self, task_id: _Optional[str] = ..., kind: _Optional[str] = ..., state: _Optional[str] = ..., payload_json: _Optional[str] = ..., key: _Optional[str] = ..., priority: _Optional[int] = ..., ready_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., attempts: _Optional[int] = ..., max_attempts: _Optional[int] = ..., again: _Optional[bool] = ..., lease_owner: _Optional[str] = ..., lease_until_ms: _Optional[int] = ..., heartbeat_ms: _Optional[int] = ..., created_ms: _Optional[int] = ..., started_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ..., error: _Optional[str] = ..., principal: _Optional[str] = ..., session_id: _Optional[str] = ..., schedule_id: _Optional[str] = ...) -> None: ...

class TaskPage(_message.Message):
    __slots__ = ("tasks", "next")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    next: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class KindCount(_message.Message):
    __slots__ = ("kind", "states", "paused", "oldest_ready_ms")
    class StatesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    OLDEST_READY_MS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    states: _containers.ScalarMap[str, int]
    paused: bool
    oldest_ready_ms: int
    def __init__(self, kind: _Optional[str] = ..., states: _Optional[_Mapping[str, int]] = ..., paused: _Optional[bool] = ..., oldest_ready_ms: _Optional[int] = ...) -> None: ...

class KindList(_message.Message):
    __slots__ = ("kinds",)
    KINDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[KindCount]
    def __init__(self, kinds: _Optional[_Iterable[_Union[KindCount, _Mapping]]] = ...) -> None: ...

class ConnectionStatus(_message.Message):
    __slots__ = ("state", "detail", "account", "place", "connects", "since_ms", "heard_ms")
    STATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    CONNECTS_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    HEARD_MS_FIELD_NUMBER: _ClassVar[int]
    state: str
    detail: str
    account: str
    place: str
    connects: int
    since_ms: int
    heard_ms: int
    def __init__(self, state: _Optional[str] = ..., detail: _Optional[str] = ..., account: _Optional[str] = ..., place: _Optional[str] = ..., connects: _Optional[int] = ..., since_ms: _Optional[int] = ..., heard_ms: _Optional[int] = ...) -> None: ...

class Rules(_message.Message):
    __slots__ = ("allow", "deny", "direct", "groups", "mention", "names", "broadcast", "isolate_session_by_sender", "per_minute", "waiting", "concurrency")
    ALLOW_FIELD_NUMBER: _ClassVar[int]
    DENY_FIELD_NUMBER: _ClassVar[int]
    DIRECT_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    MENTION_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    BROADCAST_FIELD_NUMBER: _ClassVar[int]
    ISOLATE_SESSION_BY_SENDER_FIELD_NUMBER: _ClassVar[int]
    PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    allow: _containers.RepeatedScalarFieldContainer[str]
    deny: _containers.RepeatedScalarFieldContainer[str]
    direct: str
    groups: str
    mention: bool
    names: _events_pb2.ListOfString
    broadcast: str
    isolate_session_by_sender: bool
    per_minute: int
    waiting: int
    concurrency: int
    def __init__(self, allow: _Optional[_Iterable[str]] = ..., deny: _Optional[_Iterable[str]] = ..., direct: _Optional[str] = ..., groups: _Optional[str] = ..., mention: _Optional[bool] = ..., names: _Optional[_Union[_events_pb2.ListOfString, _Mapping]] = ..., broadcast: _Optional[str] = ..., isolate_session_by_sender: _Optional[bool] = ..., per_minute: _Optional[int] = ..., waiting: _Optional[int] = ..., concurrency: _Optional[int] = ...) -> None: ...

class ChannelStatus(_message.Message):
    __slots__ = ("name", "kind", "enabled", "paused", "connection", "rules", "changed_json", "messages", "outbox")
    class MessagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class OutboxEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    CHANGED_JSON_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    OUTBOX_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    enabled: bool
    paused: bool
    connection: ConnectionStatus
    rules: Rules
    changed_json: str
    messages: _containers.ScalarMap[str, int]
    outbox: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., enabled: _Optional[bool] = ..., paused: _Optional[bool] = ..., connection: _Optional[_Union[ConnectionStatus, _Mapping]] = ..., rules: _Optional[_Union[Rules, _Mapping]] = ..., changed_json: _Optional[str] = ..., messages: _Optional[_Mapping[str, int]] = ..., outbox: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ChannelList(_message.Message):
    __slots__ = ("channels",)
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedCompositeFieldContainer[ChannelStatus]
    def __init__(self, channels: _Optional[_Iterable[_Union[ChannelStatus, _Mapping]]] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ("name", "words", "secret", "required", "default", "server")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    name: str
    words: str
    secret: bool
    required: bool
    default: str
    server: bool
    def __init__(self, name: _Optional[str] = ..., words: _Optional[str] = ..., secret: _Optional[bool] = ..., required: _Optional[bool] = ..., default: _Optional[str] = ..., server: _Optional[bool] = ...) -> None: ...

class KindInfo(_message.Message):
    __slots__ = ("name", "title", "settings", "permissions", "steps", "docs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    DOCS_FIELD_NUMBER: _ClassVar[int]
    name: str
    title: str
    settings: _containers.RepeatedCompositeFieldContainer[Setting]
    permissions: _containers.RepeatedScalarFieldContainer[str]
    steps: _containers.RepeatedScalarFieldContainer[str]
    docs: str
    def __init__(self, name: _Optional[str] = ..., title: _Optional[str] = ..., settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., permissions: _Optional[_Iterable[str]] = ..., steps: _Optional[_Iterable[str]] = ..., docs: _Optional[str] = ...) -> None: ...

class ChannelsKindList(_message.Message):
    __slots__ = ("kinds",)
    KINDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[KindInfo]
    def __init__(self, kinds: _Optional[_Iterable[_Union[KindInfo, _Mapping]]] = ...) -> None: ...

class Sender(_message.Message):
    __slots__ = ("handle", "display", "verified")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    handle: str
    display: str
    verified: bool
    def __init__(self, handle: _Optional[str] = ..., display: _Optional[str] = ..., verified: _Optional[bool] = ...) -> None: ...

class InboundFile(_message.Message):
    __slots__ = ("name", "data", "media_type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    data: bytes
    media_type: str
    def __init__(self, name: _Optional[str] = ..., data: _Optional[bytes] = ..., media_type: _Optional[str] = ...) -> None: ...

class Inbound(_message.Message):
    __slots__ = ("native_id", "conversation", "sender", "text", "thread", "files", "is_direct", "mentions_agent", "mentions_everyone", "reply_to", "pressed", "sent_ms", "forwarded", "title")
    NATIVE_ID_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    IS_DIRECT_FIELD_NUMBER: _ClassVar[int]
    MENTIONS_AGENT_FIELD_NUMBER: _ClassVar[int]
    MENTIONS_EVERYONE_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    PRESSED_FIELD_NUMBER: _ClassVar[int]
    SENT_MS_FIELD_NUMBER: _ClassVar[int]
    FORWARDED_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    native_id: str
    conversation: str
    sender: Sender
    text: str
    thread: str
    files: _containers.RepeatedCompositeFieldContainer[InboundFile]
    is_direct: bool
    mentions_agent: bool
    mentions_everyone: bool
    reply_to: str
    pressed: bool
    sent_ms: int
    forwarded: bool
    title: str
    def __init__(self, native_id: _Optional[str] = ..., conversation: _Optional[str] = ..., sender: _Optional[_Union[Sender, _Mapping]] = ..., text: _Optional[str] = ..., thread: _Optional[str] = ..., files: _Optional[_Iterable[_Union[InboundFile, _Mapping]]] = ..., is_direct: _Optional[bool] = ..., mentions_agent: _Optional[bool] = ..., mentions_everyone: _Optional[bool] = ..., reply_to: _Optional[str] = ..., pressed: _Optional[bool] = ..., sent_ms: _Optional[int] = ..., forwarded: _Optional[bool] = ..., title: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("number", "message_id", "connector", "conversation", "thread", "sender", "state", "reason", "principal", "session_id", "run_id", "files", "received_ms", "ended_ms", "inbound")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    INBOUND_FIELD_NUMBER: _ClassVar[int]
    number: int
    message_id: str
    connector: str
    conversation: str
    thread: str
    sender: str
    state: str
    reason: str
    principal: str
    session_id: str
    run_id: str
    files: int
    received_ms: int
    ended_ms: int
    inbound: Inbound
    def __init__(self, number: _Optional[int] = ..., message_id: _Optional[str] = ..., connector: _Optional[str] = ..., conversation: _Optional[str] = ..., thread: _Optional[str] = ..., sender: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., principal: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., files: _Optional[int] = ..., received_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ..., inbound: _Optional[_Union[Inbound, _Mapping]] = ...) -> None: ...

class MessagePage(_message.Message):
    __slots__ = ("messages", "next")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    next: int
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., next: _Optional[int] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("time_ms", "step", "detail")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    step: str
    detail: str
    def __init__(self, time_ms: _Optional[int] = ..., step: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class Button(_message.Message):
    __slots__ = ("label", "value", "style")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    STYLE_FIELD_NUMBER: _ClassVar[int]
    label: str
    value: str
    style: str
    def __init__(self, label: _Optional[str] = ..., value: _Optional[str] = ..., style: _Optional[str] = ...) -> None: ...

class SentFile(_message.Message):
    __slots__ = ("session_id", "artifact", "name", "media_type")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    artifact: str
    name: str
    media_type: str
    def __init__(self, session_id: _Optional[str] = ..., artifact: _Optional[str] = ..., name: _Optional[str] = ..., media_type: _Optional[str] = ...) -> None: ...

class Body(_message.Message):
    __slots__ = ("text", "reply_to", "buttons", "files", "ping_everyone", "edits")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    BUTTONS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    PING_EVERYONE_FIELD_NUMBER: _ClassVar[int]
    EDITS_FIELD_NUMBER: _ClassVar[int]
    text: str
    reply_to: str
    buttons: _containers.RepeatedCompositeFieldContainer[Button]
    files: _containers.RepeatedCompositeFieldContainer[SentFile]
    ping_everyone: bool
    edits: str
    def __init__(self, text: _Optional[str] = ..., reply_to: _Optional[str] = ..., buttons: _Optional[_Iterable[_Union[Button, _Mapping]]] = ..., files: _Optional[_Iterable[_Union[SentFile, _Mapping]]] = ..., ping_everyone: _Optional[bool] = ..., edits: _Optional[str] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("number", "reply_id", "part", "parts", "message_id", "connector", "conversation", "thread", "kind", "state", "attempts", "ready_ms", "error", "native_id", "doubtful", "created_ms", "ended_ms", "body")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REPLY_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    READY_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NATIVE_ID_FIELD_NUMBER: _ClassVar[int]
    DOUBTFUL_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    number: int
    reply_id: str
    part: int
    parts: int
    message_id: str
    connector: str
    conversation: str
    thread: str
    kind: str
    state: str
    attempts: int
    ready_ms: int
    error: str
    native_id: str
    doubtful: bool
    created_ms: int
    ended_ms: int
    body: Body
    def __init__(self, number: _Optional[int] = ..., reply_id: _Optional[str] = ..., part: _Optional[int] = ..., parts: _Optional[int] = ..., message_id: _Optional[str] = ..., connector: _Optional[str] = ..., conversation: _Optional[str] = ..., thread: _Optional[str] = ..., kind: _Optional[str] = ..., state: _Optional[str] = ..., attempts: _Optional[int] = ..., ready_ms: _Optional[int] = ..., error: _Optional[str] = ..., native_id: _Optional[str] = ..., doubtful: _Optional[bool] = ..., created_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ..., body: _Optional[_Union[Body, _Mapping]] = ...) -> None: ...

class Trace(_message.Message):
    __slots__ = ("message", "steps", "replies")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    message: Message
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    def __init__(self, message: _Optional[_Union[Message, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ...) -> None: ...

class DeadLetters(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    def __init__(self, replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ...) -> None: ...

class Pairing(_message.Message):
    __slots__ = ("pairing_id", "connector", "kind", "sender", "display", "conversation", "thread", "state", "grant_ms", "created_ms", "expires_ms", "settled_ms", "settled_by")
    PAIRING_ID_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    GRANT_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_MS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_BY_FIELD_NUMBER: _ClassVar[int]
    pairing_id: str
    connector: str
    kind: str
    sender: str
    display: str
    conversation: str
    thread: str
    state: str
    grant_ms: int
    created_ms: int
    expires_ms: int
    settled_ms: int
    settled_by: str
    def __init__(self, pairing_id: _Optional[str] = ..., connector: _Optional[str] = ..., kind: _Optional[str] = ..., sender: _Optional[str] = ..., display: _Optional[str] = ..., conversation: _Optional[str] = ..., thread: _Optional[str] = ..., state: _Optional[str] = ..., grant_ms: _Optional[int] = ..., created_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., settled_ms: _Optional[int] = ..., settled_by: _Optional[str] = ...) -> None: ...

class PairingList(_message.Message):
    __slots__ = ("pairings",)
    PAIRINGS_FIELD_NUMBER: _ClassVar[int]
    pairings: _containers.RepeatedCompositeFieldContainer[Pairing]
    def __init__(self, pairings: _Optional[_Iterable[_Union[Pairing, _Mapping]]] = ...) -> None: ...

class Person(_message.Message):
    __slots__ = ("connector", "sender", "display", "principal", "paired_ms", "paired_until_ms", "revoked_ms", "granted_by", "conversation", "seen_ms")
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    PAIRED_MS_FIELD_NUMBER: _ClassVar[int]
    PAIRED_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_MS_FIELD_NUMBER: _ClassVar[int]
    GRANTED_BY_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    connector: str
    sender: str
    display: str
    principal: str
    paired_ms: int
    paired_until_ms: int
    revoked_ms: int
    granted_by: str
    conversation: str
    seen_ms: int
    def __init__(self, connector: _Optional[str] = ..., sender: _Optional[str] = ..., display: _Optional[str] = ..., principal: _Optional[str] = ..., paired_ms: _Optional[int] = ..., paired_until_ms: _Optional[int] = ..., revoked_ms: _Optional[int] = ..., granted_by: _Optional[str] = ..., conversation: _Optional[str] = ..., seen_ms: _Optional[int] = ...) -> None: ...

class Settled(_message.Message):
    __slots__ = ("person", "pairing")
    PERSON_FIELD_NUMBER: _ClassVar[int]
    PAIRING_FIELD_NUMBER: _ClassVar[int]
    person: Person
    pairing: Pairing
    def __init__(self, person: _Optional[_Union[Person, _Mapping]] = ..., pairing: _Optional[_Union[Pairing, _Mapping]] = ...) -> None: ...

class Invitation(_message.Message):
    __slots__ = ("pairing_id", "channel", "code", "expires_ms")
    PAIRING_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    pairing_id: str
    channel: str
    code: str
    expires_ms: int
    def __init__(self, pairing_id: _Optional[str] = ..., channel: _Optional[str] = ..., code: _Optional[str] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class People(_message.Message):
    __slots__ = ("people",)
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    people: _containers.RepeatedCompositeFieldContainer[Person]
    def __init__(self, people: _Optional[_Iterable[_Union[Person, _Mapping]]] = ...) -> None: ...

class ChannelsCheck(_message.Message):
    __slots__ = ("reason", "passed", "found")
    REASON_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    reason: str
    passed: bool
    found: str
    def __init__(self, reason: _Optional[str] = ..., passed: _Optional[bool] = ..., found: _Optional[str] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("accepted", "reason", "sentence", "checks")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    reason: str
    sentence: str
    checks: _containers.RepeatedCompositeFieldContainer[ChannelsCheck]
    def __init__(self, accepted: _Optional[bool] = ..., reason: _Optional[str] = ..., sentence: _Optional[str] = ..., checks: _Optional[_Iterable[_Union[ChannelsCheck, _Mapping]]] = ...) -> None: ...

class ShapesPreview(_message.Message):
    __slots__ = ("decision", "principal", "acts_as", "standing", "session_key")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ACTS_AS_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    decision: Decision
    principal: str
    acts_as: str
    standing: str
    session_key: str
    def __init__(self, decision: _Optional[_Union[Decision, _Mapping]] = ..., principal: _Optional[str] = ..., acts_as: _Optional[str] = ..., standing: _Optional[str] = ..., session_key: _Optional[str] = ...) -> None: ...

class Me(_message.Message):
    __slots__ = ("account", "names", "place")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    account: str
    names: _containers.RepeatedScalarFieldContainer[str]
    place: str
    def __init__(self, account: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ..., place: _Optional[str] = ...) -> None: ...

class Tested(_message.Message):
    __slots__ = ("me", "reply_id")
    ME_FIELD_NUMBER: _ClassVar[int]
    REPLY_ID_FIELD_NUMBER: _ClassVar[int]
    me: Me
    reply_id: str
    def __init__(self, me: _Optional[_Union[Me, _Mapping]] = ..., reply_id: _Optional[str] = ...) -> None: ...

class Check(_message.Message):
    __slots__ = ("id", "title", "state", "detail", "fix", "repairable")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    REPAIRABLE_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    state: str
    detail: str
    fix: str
    repairable: bool
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., state: _Optional[str] = ..., detail: _Optional[str] = ..., fix: _Optional[str] = ..., repairable: _Optional[bool] = ...) -> None: ...

class Diagnosis(_message.Message):
    __slots__ = ("ok", "checks")
    OK_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    checks: _containers.RepeatedCompositeFieldContainer[Check]
    def __init__(self, ok: _Optional[bool] = ..., checks: _Optional[_Iterable[_Union[Check, _Mapping]]] = ...) -> None: ...

class Repair(_message.Message):
    __slots__ = ("id", "title", "worked", "detail")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WORKED_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    worked: bool
    detail: str
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., worked: _Optional[bool] = ..., detail: _Optional[str] = ...) -> None: ...

class Repaired(_message.Message):
    __slots__ = ("ok", "repairs", "checks")
    OK_FIELD_NUMBER: _ClassVar[int]
    REPAIRS_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    repairs: _containers.RepeatedCompositeFieldContainer[Repair]
    checks: _containers.RepeatedCompositeFieldContainer[Check]
    def __init__(self, ok: _Optional[bool] = ..., repairs: _Optional[_Iterable[_Union[Repair, _Mapping]]] = ..., checks: _Optional[_Iterable[_Union[Check, _Mapping]]] = ...) -> None: ...

class Healing(_message.Message):
    __slots__ = ("mode", "every_ms", "run_ms", "call_ms", "task_ms", "helper_ms", "approval_ms", "forgotten", "free_bytes", "log_bytes")
    MODE_FIELD_NUMBER: _ClassVar[int]
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    CALL_MS_FIELD_NUMBER: _ClassVar[int]
    TASK_MS_FIELD_NUMBER: _ClassVar[int]
    HELPER_MS_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_MS_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    mode: str
    every_ms: int
    run_ms: int
    call_ms: int
    task_ms: int
    helper_ms: int
    approval_ms: int
    forgotten: str
    free_bytes: int
    log_bytes: int
    def __init__(self, mode: _Optional[str] = ..., every_ms: _Optional[int] = ..., run_ms: _Optional[int] = ..., call_ms: _Optional[int] = ..., task_ms: _Optional[int] = ..., helper_ms: _Optional[int] = ..., approval_ms: _Optional[int] = ..., forgotten: _Optional[str] = ..., free_bytes: _Optional[int] = ..., log_bytes: _Optional[int] = ...) -> None: ...

class Watching(_message.Message):
    __slots__ = ("settings", "looked_ms")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    LOOKED_MS_FIELD_NUMBER: _ClassVar[int]
    settings: Healing
    looked_ms: int
    def __init__(self, settings: _Optional[_Union[Healing, _Mapping]] = ..., looked_ms: _Optional[int] = ...) -> None: ...

class Tried(_message.Message):
    __slots__ = ("remedy", "result", "time_ms", "detail")
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    remedy: str
    result: str
    time_ms: int
    detail: str
    def __init__(self, remedy: _Optional[str] = ..., result: _Optional[str] = ..., time_ms: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

class Incident(_message.Message):
    __slots__ = ("incident_id", "key", "domain", "severity", "summary", "fix", "opened_ms", "closed_ms", "outcome", "tried")
    INCIDENT_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    OPENED_MS_FIELD_NUMBER: _ClassVar[int]
    CLOSED_MS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TRIED_FIELD_NUMBER: _ClassVar[int]
    incident_id: str
    key: str
    domain: str
    severity: str
    summary: str
    fix: str
    opened_ms: int
    closed_ms: int
    outcome: str
    tried: _containers.RepeatedCompositeFieldContainer[Tried]
    def __init__(self, incident_id: _Optional[str] = ..., key: _Optional[str] = ..., domain: _Optional[str] = ..., severity: _Optional[str] = ..., summary: _Optional[str] = ..., fix: _Optional[str] = ..., opened_ms: _Optional[int] = ..., closed_ms: _Optional[int] = ..., outcome: _Optional[str] = ..., tried: _Optional[_Iterable[_Union[Tried, _Mapping]]] = ...) -> None: ...

class IncidentList(_message.Message):
    __slots__ = ("incidents",)
    INCIDENTS_FIELD_NUMBER: _ClassVar[int]
    incidents: _containers.RepeatedCompositeFieldContainer[Incident]
    def __init__(self, incidents: _Optional[_Iterable[_Union[Incident, _Mapping]]] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("notice_id", "about", "key", "text", "link", "created_ms", "read_ms")
    NOTICE_ID_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    READ_MS_FIELD_NUMBER: _ClassVar[int]
    notice_id: str
    about: str
    key: str
    text: str
    link: str
    created_ms: int
    read_ms: int
    def __init__(self, notice_id: _Optional[str] = ..., about: _Optional[str] = ..., key: _Optional[str] = ..., text: _Optional[str] = ..., link: _Optional[str] = ..., created_ms: _Optional[int] = ..., read_ms: _Optional[int] = ...) -> None: ...

class NoticeList(_message.Message):
    __slots__ = ("notices", "unread")
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    notices: _containers.RepeatedCompositeFieldContainer[Notice]
    unread: int
    def __init__(self, notices: _Optional[_Iterable[_Union[Notice, _Mapping]]] = ..., unread: _Optional[int] = ...) -> None: ...

class MarkedRead(_message.Message):
    __slots__ = ("marked",)
    MARKED_FIELD_NUMBER: _ClassVar[int]
    marked: int
    def __init__(self, marked: _Optional[int] = ...) -> None: ...

class ApprovalPage(_message.Message):
    __slots__ = ("approvals", "next")
    APPROVALS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    approvals: _containers.RepeatedCompositeFieldContainer[_events_pb2.Approval]
    next: str
    def __init__(self, approvals: _Optional[_Iterable[_Union[_events_pb2.Approval, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ApprovalPreview(_message.Message):
    __slots__ = ("preview", "verdict", "why", "subjects")
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    preview: _events_pb2.Preview
    verdict: str
    why: str
    subjects: _containers.RepeatedCompositeFieldContainer[_events_pb2.Subject]
    def __init__(self, preview: _Optional[_Union[_events_pb2.Preview, _Mapping]] = ..., verdict: _Optional[str] = ..., why: _Optional[str] = ..., subjects: _Optional[_Iterable[_Union[_events_pb2.Subject, _Mapping]]] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("approval_id", "subject", "principal", "session_id", "until_ms", "seen")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    subject: _events_pb2.Subject
    principal: str
    session_id: str
    until_ms: int
    seen: _events_pb2.Label
    def __init__(self, approval_id: _Optional[str] = ..., subject: _Optional[_Union[_events_pb2.Subject, _Mapping]] = ..., principal: _Optional[str] = ..., session_id: _Optional[str] = ..., until_ms: _Optional[int] = ..., seen: _Optional[_Union[_events_pb2.Label, _Mapping]] = ...) -> None: ...

class GrantList(_message.Message):
    __slots__ = ("grants",)
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    def __init__(self, grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ...) -> None: ...

class Bad(_message.Message):
    __slots__ = ("tape", "seq", "position", "problem")
    TAPE_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    tape: str
    seq: int
    position: int
    problem: str
    def __init__(self, tape: _Optional[str] = ..., seq: _Optional[int] = ..., position: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class Verified(_message.Message):
    __slots__ = ("ok", "entries", "tapes", "bad", "pages", "guards")
    OK_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TAPES_FIELD_NUMBER: _ClassVar[int]
    BAD_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    entries: int
    tapes: int
    bad: Bad
    pages: _containers.RepeatedScalarFieldContainer[str]
    guards: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ok: _Optional[bool] = ..., entries: _Optional[int] = ..., tapes: _Optional[int] = ..., bad: _Optional[_Union[Bad, _Mapping]] = ..., pages: _Optional[_Iterable[str]] = ..., guards: _Optional[_Iterable[str]] = ...) -> None: ...

class BackedUp(_message.Message):
    __slots__ = ("path", "entries")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    path: str
    entries: int
    def __init__(self, path: _Optional[str] = ..., entries: _Optional[int] = ...) -> None: ...

class KeptBackup(_message.Message):
    __slots__ = ("name", "bytes", "made_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MADE_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    bytes: int
    made_ms: int
    def __init__(self, name: _Optional[str] = ..., bytes: _Optional[int] = ..., made_ms: _Optional[int] = ...) -> None: ...

class BackupList(_message.Message):
    __slots__ = ("folder", "backups")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    BACKUPS_FIELD_NUMBER: _ClassVar[int]
    folder: str
    backups: _containers.RepeatedCompositeFieldContainer[KeptBackup]
    def __init__(self, folder: _Optional[str] = ..., backups: _Optional[_Iterable[_Union[KeptBackup, _Mapping]]] = ...) -> None: ...

class Old(_message.Message):
    __slots__ = ("session_id", "owner", "title", "updated_ms", "entries")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    UPDATED_MS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    owner: str
    title: str
    updated_ms: int
    entries: int
    def __init__(self, session_id: _Optional[str] = ..., owner: _Optional[str] = ..., title: _Optional[str] = ..., updated_ms: _Optional[int] = ..., entries: _Optional[int] = ...) -> None: ...

class Archived(_message.Message):
    __slots__ = ("dry_run", "days", "sessions", "entries", "bytes", "segments", "sealed_bytes")
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SEALED_BYTES_FIELD_NUMBER: _ClassVar[int]
    dry_run: bool
    days: int
    sessions: _containers.RepeatedCompositeFieldContainer[Old]
    entries: int
    bytes: int
    segments: _containers.RepeatedScalarFieldContainer[str]
    sealed_bytes: int
    def __init__(self, dry_run: _Optional[bool] = ..., days: _Optional[int] = ..., sessions: _Optional[_Iterable[_Union[Old, _Mapping]]] = ..., entries: _Optional[int] = ..., bytes: _Optional[int] = ..., segments: _Optional[_Iterable[str]] = ..., sealed_bytes: _Optional[int] = ...) -> None: ...

class Cleaned(_message.Message):
    __slots__ = ("dry_run", "artifacts", "bytes")
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    dry_run: bool
    artifacts: int
    bytes: int
    def __init__(self, dry_run: _Optional[bool] = ..., artifacts: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Maintained(_message.Message):
    __slots__ = ("log_bytes", "free_bytes", "released_bytes")
    LOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    RELEASED_BYTES_FIELD_NUMBER: _ClassVar[int]
    log_bytes: int
    free_bytes: int
    released_bytes: int
    def __init__(self, log_bytes: _Optional[int] = ..., free_bytes: _Optional[int] = ..., released_bytes: _Optional[int] = ...) -> None: ...

class CleanedUp(_message.Message):
    __slots__ = ("artifacts", "file")
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    artifacts: Cleaned
    file: Maintained
    def __init__(self, artifacts: _Optional[_Union[Cleaned, _Mapping]] = ..., file: _Optional[_Union[Maintained, _Mapping]] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("segment_id", "bytes", "entries", "first_position", "last_position", "created_ms", "tapes")
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    FIRST_POSITION_FIELD_NUMBER: _ClassVar[int]
    LAST_POSITION_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    TAPES_FIELD_NUMBER: _ClassVar[int]
    segment_id: str
    bytes: int
    entries: int
    first_position: int
    last_position: int
    created_ms: int
    tapes: int
    def __init__(self, segment_id: _Optional[str] = ..., bytes: _Optional[int] = ..., entries: _Optional[int] = ..., first_position: _Optional[int] = ..., last_position: _Optional[int] = ..., created_ms: _Optional[int] = ..., tapes: _Optional[int] = ...) -> None: ...

class SegmentList(_message.Message):
    __slots__ = ("segments",)
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    def __init__(self, segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("memory_id", "owner", "text", "kind", "scope", "scope_value", "label", "provenance", "source", "place", "confidence_bps", "valid_from_ms", "valid_until_ms", "expires_ms", "pinned", "state", "why", "origin", "supersedes", "superseded_by", "created_ms", "updated_ms", "embedded")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_VALUE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_BPS_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_MS_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_MS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    owner: str
    text: str
    kind: str
    scope: str
    scope_value: str
    label: _events_pb2.Label
    provenance: _containers.RepeatedScalarFieldContainer[int]
    source: str
    place: int
    confidence_bps: int
    valid_from_ms: int
    valid_until_ms: int
    expires_ms: int
    pinned: bool
    state: str
    why: str
    origin: str
    supersedes: str
    superseded_by: str
    created_ms: int
    updated_ms: int
    embedded: bool
    def __init__(self, memory_id: _Optional[str] = ..., owner: _Optional[str] = ..., text: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., scope_value: _Optional[str] = ..., label: _Optional[_Union[_events_pb2.Label, _Mapping]] = ..., provenance: _Optional[_Iterable[int]] = ..., source: _Optional[str] = ..., place: _Optional[int] = ..., confidence_bps: _Optional[int] = ..., valid_from_ms: _Optional[int] = ..., valid_until_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., pinned: _Optional[bool] = ..., state: _Optional[str] = ..., why: _Optional[str] = ..., origin: _Optional[str] = ..., supersedes: _Optional[str] = ..., superseded_by: _Optional[str] = ..., created_ms: _Optional[int] = ..., updated_ms: _Optional[int] = ..., embedded: _Optional[bool] = ...) -> None: ...

class ItemPage(_message.Message):
    __slots__ = ("items", "next")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Item]
    next: str
    def __init__(self, items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ScoreParts(_message.Message):
    __slots__ = ("words", "meaning", "own", "neighbour", "recency", "confidence")
    WORDS_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOUR_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    words: float
    meaning: float
    own: float
    neighbour: float
    recency: float
    confidence: float
    def __init__(self, words: _Optional[float] = ..., meaning: _Optional[float] = ..., own: _Optional[float] = ..., neighbour: _Optional[float] = ..., recency: _Optional[float] = ..., confidence: _Optional[float] = ...) -> None: ...

class Found(_message.Message):
    __slots__ = ("item", "score", "parts")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    item: Item
    score: float
    parts: ScoreParts
    def __init__(self, item: _Optional[_Union[Item, _Mapping]] = ..., score: _Optional[float] = ..., parts: _Optional[_Union[ScoreParts, _Mapping]] = ...) -> None: ...

class Searched(_message.Message):
    __slots__ = ("found", "threshold", "words_only")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    found: _containers.RepeatedCompositeFieldContainer[Found]
    threshold: float
    words_only: str
    def __init__(self, found: _Optional[_Iterable[_Union[Found, _Mapping]]] = ..., threshold: _Optional[float] = ..., words_only: _Optional[str] = ...) -> None: ...

class MemoryStatus(_message.Message):
    __slots__ = ("counts", "not_embedded", "words_only")
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    NOT_EMBEDDED_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.ScalarMap[str, int]
    not_embedded: int
    words_only: str
    def __init__(self, counts: _Optional[_Mapping[str, int]] = ..., not_embedded: _Optional[int] = ..., words_only: _Optional[str] = ...) -> None: ...

class NewMemory(_message.Message):
    __slots__ = ("text", "kind", "scope", "source", "place", "confidence_bps", "valid_from_ms", "valid_until_ms", "ttl_ms", "pinned")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_BPS_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_MS_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    text: str
    kind: str
    scope: str
    source: str
    place: int
    confidence_bps: int
    valid_from_ms: int
    valid_until_ms: int
    ttl_ms: int
    pinned: bool
    def __init__(self, text: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., source: _Optional[str] = ..., place: _Optional[int] = ..., confidence_bps: _Optional[int] = ..., valid_from_ms: _Optional[int] = ..., valid_until_ms: _Optional[int] = ..., ttl_ms: _Optional[int] = ..., pinned: _Optional[bool] = ...) -> None: ...

class Imported(_message.Message):
    __slots__ = ("taken", "merged", "review")
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    taken: int
    merged: int
    review: int
    def __init__(self, taken: _Optional[int] = ..., merged: _Optional[int] = ..., review: _Optional[int] = ...) -> None: ...

class Purged(_message.Message):
    __slots__ = ("removed",)
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    removed: int
    def __init__(self, removed: _Optional[int] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("session_id", "seq", "quote", "position")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    seq: int
    quote: str
    position: int
    def __init__(self, session_id: _Optional[str] = ..., seq: _Optional[int] = ..., quote: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class LearningStep(_message.Message):
    __slots__ = ("tool", "arguments_json")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    tool: str
    arguments_json: str
    def __init__(self, tool: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class Effect(_message.Message):
    __slots__ = ("memory_id", "replaced", "skill", "file")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    SKILL_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    replaced: str
    skill: str
    file: str
    def __init__(self, memory_id: _Optional[str] = ..., replaced: _Optional[str] = ..., skill: _Optional[str] = ..., file: _Optional[str] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("candidate_id", "owner", "session_id", "run_id", "kind", "content", "confidence_bps", "risk", "label", "evidence", "state", "reason", "memory_kind", "about", "steps", "runs", "cedar", "found_by", "conflicts_with", "automatic", "effect", "doing", "position", "created_ms", "updated_ms")
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_BPS_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    CEDAR_FIELD_NUMBER: _ClassVar[int]
    FOUND_BY_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_WITH_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    DOING_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_MS_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    owner: str
    session_id: str
    run_id: str
    kind: str
    content: str
    confidence_bps: int
    risk: str
    label: _events_pb2.Label
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    state: str
    reason: str
    memory_kind: str
    about: str
    steps: _containers.RepeatedCompositeFieldContainer[LearningStep]
    runs: _containers.RepeatedScalarFieldContainer[str]
    cedar: str
    found_by: str
    conflicts_with: str
    automatic: bool
    effect: Effect
    doing: str
    position: int
    created_ms: int
    updated_ms: int
    def __init__(self, candidate_id: _Optional[str] = ..., owner: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., kind: _Optional[str] = ..., content: _Optional[str] = ..., confidence_bps: _Optional[int] = ..., risk: _Optional[str] = ..., label: _Optional[_Union[_events_pb2.Label, _Mapping]] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., memory_kind: _Optional[str] = ..., about: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[LearningStep, _Mapping]]] = ..., runs: _Optional[_Iterable[str]] = ..., cedar: _Optional[str] = ..., found_by: _Optional[str] = ..., conflicts_with: _Optional[str] = ..., automatic: _Optional[bool] = ..., effect: _Optional[_Union[Effect, _Mapping]] = ..., doing: _Optional[str] = ..., position: _Optional[int] = ..., created_ms: _Optional[int] = ..., updated_ms: _Optional[int] = ...) -> None: ...

class CandidateList(_message.Message):
    __slots__ = ("candidates", "counts", "next")
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    counts: _containers.ScalarMap[str, int]
    next: str
    def __init__(self, candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., counts: _Optional[_Mapping[str, int]] = ..., next: _Optional[str] = ...) -> None: ...

class Threshold(_message.Message):
    __slots__ = ("review_bps", "auto_bps")
    REVIEW_BPS_FIELD_NUMBER: _ClassVar[int]
    AUTO_BPS_FIELD_NUMBER: _ClassVar[int]
    review_bps: int
    auto_bps: int
    def __init__(self, review_bps: _Optional[int] = ..., auto_bps: _Optional[int] = ...) -> None: ...

class Thresholds(_message.Message):
    __slots__ = ("automatic", "fact", "preference", "procedure", "policy")
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    PREFERENCE_FIELD_NUMBER: _ClassVar[int]
    PROCEDURE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    automatic: bool
    fact: Threshold
    preference: Threshold
    procedure: Threshold
    policy: Threshold
    def __init__(self, automatic: _Optional[bool] = ..., fact: _Optional[_Union[Threshold, _Mapping]] = ..., preference: _Optional[_Union[Threshold, _Mapping]] = ..., procedure: _Optional[_Union[Threshold, _Mapping]] = ..., policy: _Optional[_Union[Threshold, _Mapping]] = ...) -> None: ...

class LearningSettings(_message.Message):
    __slots__ = ("enabled", "thresholds", "cooldown_ms", "budget_tokens", "most_candidates", "model")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    COOLDOWN_MS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MOST_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    thresholds: Thresholds
    cooldown_ms: int
    budget_tokens: int
    most_candidates: int
    model: str
    def __init__(self, enabled: _Optional[bool] = ..., thresholds: _Optional[_Union[Thresholds, _Mapping]] = ..., cooldown_ms: _Optional[int] = ..., budget_tokens: _Optional[int] = ..., most_candidates: _Optional[int] = ..., model: _Optional[str] = ...) -> None: ...

class ShownCandidate(_message.Message):
    __slots__ = ("candidate", "would", "diff", "problem", "moves")
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    WOULD_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    candidate: Candidate
    would: str
    diff: str
    problem: str
    moves: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, candidate: _Optional[_Union[Candidate, _Mapping]] = ..., would: _Optional[str] = ..., diff: _Optional[str] = ..., problem: _Optional[str] = ..., moves: _Optional[_Iterable[str]] = ...) -> None: ...

class BilledTurn(_message.Message):
    __slots__ = ("turn", "seq", "model", "tokens", "budget", "parts", "input_tokens", "cached_tokens", "output_tokens")
    TURN_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    turn: int
    seq: int
    model: str
    tokens: int
    budget: int
    parts: _containers.RepeatedCompositeFieldContainer[_events_pb2.AssembledPart]
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    def __init__(self, turn: _Optional[int] = ..., seq: _Optional[int] = ..., model: _Optional[str] = ..., tokens: _Optional[int] = ..., budget: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[_events_pb2.AssembledPart, _Mapping]]] = ..., input_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ...) -> None: ...

class TokenBill(_message.Message):
    __slots__ = ("turns",)
    TURNS_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[BilledTurn]
    def __init__(self, turns: _Optional[_Iterable[_Union[BilledTurn, _Mapping]]] = ...) -> None: ...

class Stopped(_message.Message):
    __slots__ = ("cancelled", "recorded")
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    cancelled: _containers.RepeatedScalarFieldContainer[str]
    recorded: bool
    def __init__(self, cancelled: _Optional[_Iterable[str]] = ..., recorded: _Optional[bool] = ...) -> None: ...

class AskedModel(_message.Message):
    __slots__ = ("seq", "time_ms", "model", "failure", "message", "input_tokens", "cached_tokens", "output_tokens", "cost_microusd", "priced", "duration_ms")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_FIELD_NUMBER: _ClassVar[int]
    PRICED_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    time_ms: int
    model: str
    failure: str
    message: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_microusd: int
    priced: str
    duration_ms: int
    def __init__(self, seq: _Optional[int] = ..., time_ms: _Optional[int] = ..., model: _Optional[str] = ..., failure: _Optional[str] = ..., message: _Optional[str] = ..., input_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_microusd: _Optional[int] = ..., priced: _Optional[str] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class PlannedRoute(_message.Message):
    __slots__ = ("seq", "time_ms", "plan", "calls")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    time_ms: int
    plan: _events_pb2.RoutePlanned
    calls: _containers.RepeatedCompositeFieldContainer[AskedModel]
    def __init__(self, seq: _Optional[int] = ..., time_ms: _Optional[int] = ..., plan: _Optional[_Union[_events_pb2.RoutePlanned, _Mapping]] = ..., calls: _Optional[_Iterable[_Union[AskedModel, _Mapping]]] = ...) -> None: ...

class RunPlans(_message.Message):
    __slots__ = ("run", "plans")
    RUN_FIELD_NUMBER: _ClassVar[int]
    PLANS_FIELD_NUMBER: _ClassVar[int]
    run: _events_pb2.RunRow
    plans: _containers.RepeatedCompositeFieldContainer[PlannedRoute]
    def __init__(self, run: _Optional[_Union[_events_pb2.RunRow, _Mapping]] = ..., plans: _Optional[_Iterable[_Union[PlannedRoute, _Mapping]]] = ...) -> None: ...

class Side(_message.Message):
    __slots__ = ("kind", "at_json", "body_json")
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_JSON_FIELD_NUMBER: _ClassVar[int]
    BODY_JSON_FIELD_NUMBER: _ClassVar[int]
    kind: str
    at_json: str
    body_json: str
    def __init__(self, kind: _Optional[str] = ..., at_json: _Optional[str] = ..., body_json: _Optional[str] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("seq", "where", "recorded", "replayed", "hint")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    seq: int
    where: str
    recorded: Side
    replayed: Side
    hint: str
    def __init__(self, seq: _Optional[int] = ..., where: _Optional[str] = ..., recorded: _Optional[_Union[Side, _Mapping]] = ..., replayed: _Optional[_Union[Side, _Mapping]] = ..., hint: _Optional[str] = ...) -> None: ...

class Replayed(_message.Message):
    __slots__ = ("session_id", "run_id", "title", "identical", "entries", "difference")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    IDENTICAL_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    run_id: str
    title: str
    identical: bool
    entries: int
    difference: Difference
    def __init__(self, session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., title: _Optional[str] = ..., identical: _Optional[bool] = ..., entries: _Optional[int] = ..., difference: _Optional[_Union[Difference, _Mapping]] = ...) -> None: ...

class RunReplay(_message.Message):
    __slots__ = ("run_id", "state", "replayed", "problem")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    state: str
    replayed: Replayed
    problem: str
    def __init__(self, run_id: _Optional[str] = ..., state: _Optional[str] = ..., replayed: _Optional[_Union[Replayed, _Mapping]] = ..., problem: _Optional[str] = ...) -> None: ...

class Forked(_message.Message):
    __slots__ = ("run_id", "session_id", "seq", "forked_run_id", "forked_session_id", "at")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    FORKED_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FORKED_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    session_id: str
    seq: int
    forked_run_id: str
    forked_session_id: str
    at: int
    def __init__(self, run_id: _Optional[str] = ..., session_id: _Optional[str] = ..., seq: _Optional[int] = ..., forked_run_id: _Optional[str] = ..., forked_session_id: _Optional[str] = ..., at: _Optional[int] = ...) -> None: ...

class Reflected(_message.Message):
    __slots__ = ("session_id", "candidates", "found_by", "note")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    FOUND_BY_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    found_by: str
    note: str
    def __init__(self, session_id: _Optional[str] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., found_by: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class CronTrigger(_message.Message):
    __slots__ = ("expression",)
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    expression: str
    def __init__(self, expression: _Optional[str] = ...) -> None: ...

class EveryTrigger(_message.Message):
    __slots__ = ("every_ms", "from_ms")
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    FROM_MS_FIELD_NUMBER: _ClassVar[int]
    every_ms: int
    from_ms: int
    def __init__(self, every_ms: _Optional[int] = ..., from_ms: _Optional[int] = ...) -> None: ...

class AtTrigger(_message.Message):
    __slots__ = ("at_ms",)
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    def __init__(self, at_ms: _Optional[int] = ...) -> None: ...

class FileTrigger(_message.Message):
    __slots__ = ("path",)
    PATH_FIELD_NUMBER: _ClassVar[int]
    path: str
    def __init__(self, path: _Optional[str] = ...) -> None: ...

class HookTrigger(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TriggerChoice(_message.Message):
    __slots__ = ("cron", "every", "at", "file", "webhook")
    CRON_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_FIELD_NUMBER: _ClassVar[int]
    cron: CronTrigger
    every: EveryTrigger
    at: AtTrigger
    file: FileTrigger
    webhook: HookTrigger
    def __init__(self, cron: _Optional[_Union[CronTrigger, _Mapping]] = ..., every: _Optional[_Union[EveryTrigger, _Mapping]] = ..., at: _Optional[_Union[AtTrigger, _Mapping]] = ..., file: _Optional[_Union[FileTrigger, _Mapping]] = ..., webhook: _Optional[_Union[HookTrigger, _Mapping]] = ...) -> None: ...

class Quiet(_message.Message):
    __slots__ = ("to", "then")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    THEN_FIELD_NUMBER: _ClassVar[int]
    to: str
    then: str
    def __init__(self, to: _Optional[str] = ..., then: _Optional[str] = ..., **kwargs) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("schedule_id", "owner", "name", "text", "trigger", "zone", "overlap", "missed", "quiet", "scopes", "ask", "model", "workspace", "fresh", "label", "state", "next_ms", "created_ms", "updated_ms")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    QUIET_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NEXT_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_MS_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    owner: str
    name: str
    text: str
    trigger: TriggerChoice
    zone: str
    overlap: str
    missed: str
    quiet: Quiet
    scopes: _containers.RepeatedCompositeFieldContainer[_events_pb2.Subject]
    ask: str
    model: str
    workspace: str
    fresh: bool
    label: _events_pb2.Label
    state: str
    next_ms: int
    created_ms: int
    updated_ms: int
    def __init__(self, schedule_id: _Optional[str] = ..., owner: _Optional[str] = ..., name: _Optional[str] = ..., text: _Optional[str] = ..., trigger: _Optional[_Union[TriggerChoice, _Mapping]] = ..., zone: _Optional[str] = ..., overlap: _Optional[str] = ..., missed: _Optional[str] = ..., quiet: _Optional[_Union[Quiet, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_events_pb2.Subject, _Mapping]]] = ..., ask: _Optional[str] = ..., model: _Optional[str] = ..., workspace: _Optional[str] = ..., fresh: _Optional[bool] = ..., label: _Optional[_Union[_events_pb2.Label, _Mapping]] = ..., state: _Optional[str] = ..., next_ms: _Optional[int] = ..., created_ms: _Optional[int] = ..., updated_ms: _Optional[int] = ...) -> None: ...

class ScheduleVerbsForecast(_message.Message):
    __slots__ = ("firings_a_month", "runs", "tokens_a_run", "cost_microusd_a_run", "cost_microusd_a_month", "like")
    FIRINGS_A_MONTH_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_A_RUN_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_A_RUN_FIELD_NUMBER: _ClassVar[int]
    COST_MICROUSD_A_MONTH_FIELD_NUMBER: _ClassVar[int]
    LIKE_FIELD_NUMBER: _ClassVar[int]
    firings_a_month: int
    runs: int
    tokens_a_run: int
    cost_microusd_a_run: int
    cost_microusd_a_month: int
    like: int
    def __init__(self, firings_a_month: _Optional[int] = ..., runs: _Optional[int] = ..., tokens_a_run: _Optional[int] = ..., cost_microusd_a_run: _Optional[int] = ..., cost_microusd_a_month: _Optional[int] = ..., like: _Optional[int] = ...) -> None: ...

class Firing(_message.Message):
    __slots__ = ("schedule_id", "due_ms", "state", "run_id", "session_id", "note", "artifact", "updated_ms")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    DUE_MS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_MS_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    due_ms: int
    state: str
    run_id: str
    session_id: str
    note: str
    artifact: str
    updated_ms: int
    def __init__(self, schedule_id: _Optional[str] = ..., due_ms: _Optional[int] = ..., state: _Optional[str] = ..., run_id: _Optional[str] = ..., session_id: _Optional[str] = ..., note: _Optional[str] = ..., artifact: _Optional[str] = ..., updated_ms: _Optional[int] = ...) -> None: ...

class ShownSchedule(_message.Message):
    __slots__ = ("schedule", "when", "upcoming", "upcoming_shown", "forecast", "firings", "secret")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    UPCOMING_FIELD_NUMBER: _ClassVar[int]
    UPCOMING_SHOWN_FIELD_NUMBER: _ClassVar[int]
    FORECAST_FIELD_NUMBER: _ClassVar[int]
    FIRINGS_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    when: str
    upcoming: _containers.RepeatedScalarFieldContainer[int]
    upcoming_shown: _containers.RepeatedScalarFieldContainer[str]
    forecast: ScheduleVerbsForecast
    firings: _containers.RepeatedCompositeFieldContainer[Firing]
    secret: str
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., when: _Optional[str] = ..., upcoming: _Optional[_Iterable[int]] = ..., upcoming_shown: _Optional[_Iterable[str]] = ..., forecast: _Optional[_Union[ScheduleVerbsForecast, _Mapping]] = ..., firings: _Optional[_Iterable[_Union[Firing, _Mapping]]] = ..., secret: _Optional[str] = ...) -> None: ...

class ScheduleList(_message.Message):
    __slots__ = ("schedules",)
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[ShownSchedule]
    def __init__(self, schedules: _Optional[_Iterable[_Union[ShownSchedule, _Mapping]]] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("session_id", "key", "label", "title", "owner", "device", "channel", "workspace", "created_ms", "updated_ms", "archived", "parent_id", "parent_seq", "fold_from", "parent_run_id", "segment_id", "kept", "head_seq", "active")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_MS_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_SEQ_FIELD_NUMBER: _ClassVar[int]
    FOLD_FROM_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    HEAD_SEQ_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    key: str
    label: str
    title: str
    owner: str
    device: str
    channel: str
    workspace: str
    created_ms: int
    updated_ms: int
    archived: bool
    parent_id: str
    parent_seq: int
    fold_from: int
    parent_run_id: str
    segment_id: str
    kept: bool
    head_seq: int
    active: str
    def __init__(self, session_id: _Optional[str] = ..., key: _Optional[str] = ..., label: _Optional[str] = ..., title: _Optional[str] = ..., owner: _Optional[str] = ..., device: _Optional[str] = ..., channel: _Optional[str] = ..., workspace: _Optional[str] = ..., created_ms: _Optional[int] = ..., updated_ms: _Optional[int] = ..., archived: _Optional[bool] = ..., parent_id: _Optional[str] = ..., parent_seq: _Optional[int] = ..., fold_from: _Optional[int] = ..., parent_run_id: _Optional[str] = ..., segment_id: _Optional[str] = ..., kept: _Optional[bool] = ..., head_seq: _Optional[int] = ..., active: _Optional[str] = ...) -> None: ...

class SessionPage(_message.Message):
    __slots__ = ("sessions", "next")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    next: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class EntryPage(_message.Message):
    __slots__ = ("entries", "next")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_events_pb2.Entry]
    next: int
    def __init__(self, entries: _Optional[_Iterable[_Union[_events_pb2.Entry, _Mapping]]] = ..., next: _Optional[int] = ...) -> None: ...

class RunPage(_message.Message):
    __slots__ = ("runs", "next")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[_events_pb2.RunRow]
    next: str
    def __init__(self, runs: _Optional[_Iterable[_Union[_events_pb2.RunRow, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ShownRule(_message.Message):
    __slots__ = ("rule_id", "words", "means", "cedar", "created_ms")
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    MEANS_FIELD_NUMBER: _ClassVar[int]
    CEDAR_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    words: str
    means: str
    cedar: str
    created_ms: int
    def __init__(self, rule_id: _Optional[str] = ..., words: _Optional[str] = ..., means: _Optional[str] = ..., cedar: _Optional[str] = ..., created_ms: _Optional[int] = ...) -> None: ...

class RuleList(_message.Message):
    __slots__ = ("rules",)
    RULES_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[ShownRule]
    def __init__(self, rules: _Optional[_Iterable[_Union[ShownRule, _Mapping]]] = ...) -> None: ...

class StoredFile(_message.Message):
    __slots__ = ("artifact", "name", "media_type", "size", "reads_as", "width", "height", "characters", "note")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    READS_AS_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    artifact: str
    name: str
    media_type: str
    size: int
    reads_as: str
    width: int
    height: int
    characters: int
    note: str
    def __init__(self, artifact: _Optional[str] = ..., name: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ..., reads_as: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., characters: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class PreviewedReference(_message.Message):
    __slots__ = ("reference", "kind", "target", "size", "unit", "characters", "tokens", "truncated", "label", "warnings", "error", "policies")
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    reference: str
    kind: str
    target: str
    size: int
    unit: str
    characters: int
    tokens: int
    truncated: bool
    label: _events_pb2.Label
    warnings: _containers.RepeatedScalarFieldContainer[str]
    error: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, reference: _Optional[str] = ..., kind: _Optional[str] = ..., target: _Optional[str] = ..., size: _Optional[int] = ..., unit: _Optional[str] = ..., characters: _Optional[int] = ..., tokens: _Optional[int] = ..., truncated: _Optional[bool] = ..., label: _Optional[_Union[_events_pb2.Label, _Mapping]] = ..., warnings: _Optional[_Iterable[str]] = ..., error: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ...) -> None: ...

class ReferencesPreview(_message.Message):
    __slots__ = ("references", "characters", "tokens", "errors")
    REFERENCES_FIELD_NUMBER: _ClassVar[int]
    CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    references: _containers.RepeatedCompositeFieldContainer[PreviewedReference]
    characters: int
    tokens: int
    errors: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, references: _Optional[_Iterable[_Union[PreviewedReference, _Mapping]]] = ..., characters: _Optional[int] = ..., tokens: _Optional[int] = ..., errors: _Optional[_Iterable[str]] = ...) -> None: ...

class PathList(_message.Message):
    __slots__ = ("paths",)
    PATHS_FIELD_NUMBER: _ClassVar[int]
    paths: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, paths: _Optional[_Iterable[str]] = ...) -> None: ...

class Said(_message.Message):
    __slots__ = ("session_id", "title", "seq", "time_ms", "speaker", "snippet", "score", "parts", "label", "run_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    SPEAKER_FIELD_NUMBER: _ClassVar[int]
    SNIPPET_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    title: str
    seq: int
    time_ms: int
    speaker: str
    snippet: str
    score: float
    parts: ScoreParts
    label: _events_pb2.Label
    run_id: str
    def __init__(self, session_id: _Optional[str] = ..., title: _Optional[str] = ..., seq: _Optional[int] = ..., time_ms: _Optional[int] = ..., speaker: _Optional[str] = ..., snippet: _Optional[str] = ..., score: _Optional[float] = ..., parts: _Optional[_Union[ScoreParts, _Mapping]] = ..., label: _Optional[_Union[_events_pb2.Label, _Mapping]] = ..., run_id: _Optional[str] = ...) -> None: ...

class SaidPage(_message.Message):
    __slots__ = ("found", "words_only", "not_searched")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    WORDS_ONLY_FIELD_NUMBER: _ClassVar[int]
    NOT_SEARCHED_FIELD_NUMBER: _ClassVar[int]
    found: _containers.RepeatedCompositeFieldContainer[Said]
    words_only: str
    not_searched: int
    def __init__(self, found: _Optional[_Iterable[_Union[Said, _Mapping]]] = ..., words_only: _Optional[str] = ..., not_searched: _Optional[int] = ...) -> None: ...

class ShownCall(_message.Message):
    __slots__ = ("call_id", "tool", "arguments_json", "outcome", "text", "undone")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    UNDONE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    arguments_json: str
    outcome: str
    text: str
    undone: bool
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., outcome: _Optional[str] = ..., text: _Optional[str] = ..., undone: _Optional[bool] = ...) -> None: ...

class ShownTurn(_message.Message):
    __slots__ = ("seq", "who", "text", "run_id", "notes", "calls")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    who: str
    text: str
    run_id: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    calls: _containers.RepeatedCompositeFieldContainer[ShownCall]
    def __init__(self, seq: _Optional[int] = ..., who: _Optional[str] = ..., text: _Optional[str] = ..., run_id: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ..., calls: _Optional[_Iterable[_Union[ShownCall, _Mapping]]] = ...) -> None: ...

class RunThen(_message.Message):
    __slots__ = ("run_id", "state")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    state: str
    def __init__(self, run_id: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class ChangedFile(_message.Message):
    __slots__ = ("seq", "path", "change", "by", "call_id", "run_id")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    seq: int
    path: str
    change: str
    by: str
    call_id: str
    run_id: str
    def __init__(self, seq: _Optional[int] = ..., path: _Optional[str] = ..., change: _Optional[str] = ..., by: _Optional[str] = ..., call_id: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class Lasting(_message.Message):
    __slots__ = ("seq", "call_id", "run_id", "tool", "effect", "what", "outcome")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    seq: int
    call_id: str
    run_id: str
    tool: str
    effect: str
    what: str
    outcome: str
    def __init__(self, seq: _Optional[int] = ..., call_id: _Optional[str] = ..., run_id: _Optional[str] = ..., tool: _Optional[str] = ..., effect: _Optional[str] = ..., what: _Optional[str] = ..., outcome: _Optional[str] = ...) -> None: ...

class Moment(_message.Message):
    __slots__ = ("session_id", "seq", "head_seq", "time_ms", "kind", "turns", "left_out", "unread", "label", "rules", "runs", "changed", "lasting")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    HEAD_SEQ_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    LASTING_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    seq: int
    head_seq: int
    time_ms: int
    kind: str
    turns: _containers.RepeatedCompositeFieldContainer[ShownTurn]
    left_out: int
    unread: _containers.RepeatedScalarFieldContainer[str]
    label: _events_pb2.Label
    rules: _containers.RepeatedCompositeFieldContainer[_events_pb2.SessionRule]
    runs: _containers.RepeatedCompositeFieldContainer[RunThen]
    changed: _containers.RepeatedCompositeFieldContainer[ChangedFile]
    lasting: _containers.RepeatedCompositeFieldContainer[Lasting]
    def __init__(self, session_id: _Optional[str] = ..., seq: _Optional[int] = ..., head_seq: _Optional[int] = ..., time_ms: _Optional[int] = ..., kind: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[ShownTurn, _Mapping]]] = ..., left_out: _Optional[int] = ..., unread: _Optional[_Iterable[str]] = ..., label: _Optional[_Union[_events_pb2.Label, _Mapping]] = ..., rules: _Optional[_Iterable[_Union[_events_pb2.SessionRule, _Mapping]]] = ..., runs: _Optional[_Iterable[_Union[RunThen, _Mapping]]] = ..., changed: _Optional[_Iterable[_Union[ChangedFile, _Mapping]]] = ..., lasting: _Optional[_Iterable[_Union[Lasting, _Mapping]]] = ...) -> None: ...

class Clash(_message.Message):
    __slots__ = ("path", "why")
    PATH_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    path: str
    why: str
    def __init__(self, path: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Rewound(_message.Message):
    __slots__ = ("session_id", "to", "seq", "preview", "files", "conversation", "changes", "conflicts", "lasting", "rules", "running", "turns_now", "turns_then", "diff")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    LASTING_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    TURNS_NOW_FIELD_NUMBER: _ClassVar[int]
    TURNS_THEN_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    to: int
    seq: int
    preview: bool
    files: bool
    conversation: bool
    changes: _containers.RepeatedCompositeFieldContainer[_events_pb2.FileChange]
    conflicts: _containers.RepeatedCompositeFieldContainer[Clash]
    lasting: _containers.RepeatedCompositeFieldContainer[Lasting]
    rules: _containers.RepeatedScalarFieldContainer[str]
    running: _containers.RepeatedScalarFieldContainer[str]
    turns_now: int
    turns_then: int
    diff: str
    def __init__(self, session_id: _Optional[str] = ..., to: _Optional[int] = ..., seq: _Optional[int] = ..., preview: _Optional[bool] = ..., files: _Optional[bool] = ..., conversation: _Optional[bool] = ..., changes: _Optional[_Iterable[_Union[_events_pb2.FileChange, _Mapping]]] = ..., conflicts: _Optional[_Iterable[_Union[Clash, _Mapping]]] = ..., lasting: _Optional[_Iterable[_Union[Lasting, _Mapping]]] = ..., rules: _Optional[_Iterable[str]] = ..., running: _Optional[_Iterable[str]] = ..., turns_now: _Optional[int] = ..., turns_then: _Optional[int] = ..., diff: _Optional[str] = ...) -> None: ...

class NotUndone(_message.Message):
    __slots__ = ("call_id", "tool", "why")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    tool: str
    why: str
    def __init__(self, call_id: _Optional[str] = ..., tool: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Undone(_message.Message):
    __slots__ = ("calls", "changes", "dry_run", "diff", "conflicts", "left")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedScalarFieldContainer[str]
    changes: _containers.RepeatedCompositeFieldContainer[_events_pb2.FileChange]
    dry_run: bool
    diff: str
    conflicts: _containers.RepeatedScalarFieldContainer[str]
    left: _containers.RepeatedCompositeFieldContainer[NotUndone]
    def __init__(self, calls: _Optional[_Iterable[str]] = ..., changes: _Optional[_Iterable[_Union[_events_pb2.FileChange, _Mapping]]] = ..., dry_run: _Optional[bool] = ..., diff: _Optional[str] = ..., conflicts: _Optional[_Iterable[str]] = ..., left: _Optional[_Iterable[_Union[NotUndone, _Mapping]]] = ...) -> None: ...

class Agent(_message.Message):
    __slots__ = ("session_id", "run_id", "parent_session_id", "parent_run_id", "call_id", "depth", "task", "state", "reason", "created_ms", "ended_ms")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    run_id: str
    parent_session_id: str
    parent_run_id: str
    call_id: str
    depth: int
    task: str
    state: str
    reason: str
    created_ms: int
    ended_ms: int
    def __init__(self, session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., parent_session_id: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., call_id: _Optional[str] = ..., depth: _Optional[int] = ..., task: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., created_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ...) -> None: ...

class Agents(_message.Message):
    __slots__ = ("agents",)
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[Agent]
    def __init__(self, agents: _Optional[_Iterable[_Union[Agent, _Mapping]]] = ...) -> None: ...

class Compaction(_message.Message):
    __slots__ = ("seq", "time_ms", "applied", "stands", "automatic", "why", "summary", "from_seq", "upto_seq", "turns", "records", "tokens_before", "tokens_after", "written_by", "fallback")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    STANDS_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    UPTO_SEQ_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AFTER_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_BY_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    seq: int
    time_ms: int
    applied: bool
    stands: bool
    automatic: bool
    why: str
    summary: str
    from_seq: int
    upto_seq: int
    turns: int
    records: int
    tokens_before: int
    tokens_after: int
    written_by: str
    fallback: str
    def __init__(self, seq: _Optional[int] = ..., time_ms: _Optional[int] = ..., applied: _Optional[bool] = ..., stands: _Optional[bool] = ..., automatic: _Optional[bool] = ..., why: _Optional[str] = ..., summary: _Optional[str] = ..., from_seq: _Optional[int] = ..., upto_seq: _Optional[int] = ..., turns: _Optional[int] = ..., records: _Optional[int] = ..., tokens_before: _Optional[int] = ..., tokens_after: _Optional[int] = ..., written_by: _Optional[str] = ..., fallback: _Optional[str] = ...) -> None: ...

class CompactionPage(_message.Message):
    __slots__ = ("compactions",)
    COMPACTIONS_FIELD_NUMBER: _ClassVar[int]
    compactions: _containers.RepeatedCompositeFieldContainer[Compaction]
    def __init__(self, compactions: _Optional[_Iterable[_Union[Compaction, _Mapping]]] = ...) -> None: ...

class Uncompacted(_message.Message):
    __slots__ = ("compactions",)
    COMPACTIONS_FIELD_NUMBER: _ClassVar[int]
    compactions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, compactions: _Optional[_Iterable[int]] = ...) -> None: ...

class Pinned(_message.Message):
    __slots__ = ("pins",)
    PINS_FIELD_NUMBER: _ClassVar[int]
    pins: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, pins: _Optional[_Iterable[int]] = ...) -> None: ...

class RunningCall(_message.Message):
    __slots__ = ("call_id", "attempt", "tool", "session_id", "run_id", "since_ms")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    attempt: int
    tool: str
    session_id: str
    run_id: str
    since_ms: int
    def __init__(self, call_id: _Optional[str] = ..., attempt: _Optional[int] = ..., tool: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., since_ms: _Optional[int] = ...) -> None: ...

class WorkerShown(_message.Message):
    __slots__ = ("name", "state", "connected", "address", "version", "platform", "tier", "tools", "slots", "running", "enrolled_ms", "seen_ms", "revoked_ms", "fingerprint", "certificate_expires_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    ENROLLED_MS_FIELD_NUMBER: _ClassVar[int]
    SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_MS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: str
    connected: bool
    address: str
    version: str
    platform: str
    tier: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    running: _containers.RepeatedCompositeFieldContainer[RunningCall]
    enrolled_ms: int
    seen_ms: int
    revoked_ms: int
    fingerprint: str
    certificate_expires_ms: int
    def __init__(self, name: _Optional[str] = ..., state: _Optional[str] = ..., connected: _Optional[bool] = ..., address: _Optional[str] = ..., version: _Optional[str] = ..., platform: _Optional[str] = ..., tier: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., running: _Optional[_Iterable[_Union[RunningCall, _Mapping]]] = ..., enrolled_ms: _Optional[int] = ..., seen_ms: _Optional[int] = ..., revoked_ms: _Optional[int] = ..., fingerprint: _Optional[str] = ..., certificate_expires_ms: _Optional[int] = ...) -> None: ...

class WorkerList(_message.Message):
    __slots__ = ("workers", "port", "hosts")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[WorkerShown]
    port: int
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, workers: _Optional[_Iterable[_Union[WorkerShown, _Mapping]]] = ..., port: _Optional[int] = ..., hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class Enrolment(_message.Message):
    __slots__ = ("name", "code", "expires_ms", "authority", "port")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    code: str
    expires_ms: int
    authority: str
    port: int
    def __init__(self, name: _Optional[str] = ..., code: _Optional[str] = ..., expires_ms: _Optional[int] = ..., authority: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("call_id", "worker", "attempt", "session_id", "run_id", "tool", "state", "since_ms", "ended_ms")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    worker: str
    attempt: int
    session_id: str
    run_id: str
    tool: str
    state: str
    since_ms: int
    ended_ms: int
    def __init__(self, call_id: _Optional[str] = ..., worker: _Optional[str] = ..., attempt: _Optional[int] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., tool: _Optional[str] = ..., state: _Optional[str] = ..., since_ms: _Optional[int] = ..., ended_ms: _Optional[int] = ...) -> None: ...

class WorkerDetail(_message.Message):
    __slots__ = ("worker", "recent")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    RECENT_FIELD_NUMBER: _ClassVar[int]
    worker: WorkerShown
    recent: _containers.RepeatedCompositeFieldContainer[Lease]
    def __init__(self, worker: _Optional[_Union[WorkerShown, _Mapping]] = ..., recent: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ...) -> None: ...
