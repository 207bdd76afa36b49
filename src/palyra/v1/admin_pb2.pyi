from palyra.v1 import events_pb2 as _events_pb2
from palyra.v1 import options_pb2 as _options_pb2
from palyra.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdminStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminListToolsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminGetPolicyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminExplainPolicyRequest(_message.Message):
    __slots__ = ("tool", "arguments_json", "session_id", "origin")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    tool: str
    arguments_json: str
    session_id: str
    origin: str
    def __init__(self, tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., session_id: _Optional[str] = ..., origin: _Optional[str] = ...) -> None: ...

class AdminReloadPolicyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminReloadConfigRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminListTokensRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminCreateTokenRequest(_message.Message):
    __slots__ = ("name", "scope", "expires_ms", "workspace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    scope: str
    expires_ms: int
    workspace: str
    def __init__(self, name: _Optional[str] = ..., scope: _Optional[str] = ..., expires_ms: _Optional[int] = ..., workspace: _Optional[str] = ...) -> None: ...

class AdminRevokeTokenRequest(_message.Message):
    __slots__ = ("token_id",)
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    def __init__(self, token_id: _Optional[str] = ...) -> None: ...

class AdminCreateLoginLinkRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminTestPolicyRequest(_message.Message):
    __slots__ = ("preset", "folder", "since_ms")
    PRESET_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    preset: str
    folder: str
    since_ms: int
    def __init__(self, preset: _Optional[str] = ..., folder: _Optional[str] = ..., since_ms: _Optional[int] = ...) -> None: ...

class AdminSuggestPolicyRequest(_message.Message):
    __slots__ = ("since_ms",)
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    since_ms: int
    def __init__(self, since_ms: _Optional[int] = ...) -> None: ...

class AdminShadowPolicyRequest(_message.Message):
    __slots__ = ("since_ms",)
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    since_ms: int
    def __init__(self, since_ms: _Optional[int] = ...) -> None: ...

class AdminExplainCallRequest(_message.Message):
    __slots__ = ("call_id",)
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    def __init__(self, call_id: _Optional[str] = ...) -> None: ...

class AdminListPolicyFilesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminSavePolicyFileRequest(_message.Message):
    __slots__ = ("name", "text", "was")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WAS_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    was: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., was: _Optional[str] = ...) -> None: ...

class AdminRemovePolicyFileRequest(_message.Message):
    __slots__ = ("name", "was")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WAS_FIELD_NUMBER: _ClassVar[int]
    name: str
    was: str
    def __init__(self, name: _Optional[str] = ..., was: _Optional[str] = ...) -> None: ...

class AdminValidatePolicyRequest(_message.Message):
    __slots__ = ("name", "text", "preset")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    preset: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., preset: _Optional[str] = ...) -> None: ...

class AdminTestPolicyDraftRequest(_message.Message):
    __slots__ = ("name", "text", "preset", "since_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    preset: str
    since_ms: int
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., preset: _Optional[str] = ..., since_ms: _Optional[int] = ...) -> None: ...

class AdminWhoCanRequest(_message.Message):
    __slots__ = ("principal", "origin")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    principal: str
    origin: str
    def __init__(self, principal: _Optional[str] = ..., origin: _Optional[str] = ...) -> None: ...

class AdminRestartRequest(_message.Message):
    __slots__ = ("started_ms",)
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    started_ms: int
    def __init__(self, started_ms: _Optional[int] = ...) -> None: ...

class AdminListSecretsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminPutSecretRequest(_message.Message):
    __slots__ = ("name", "value", "scope", "hosts", "tools")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    scope: str
    hosts: _events_pb2.ListOfString
    tools: _events_pb2.ListOfString
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., scope: _Optional[str] = ..., hosts: _Optional[_Union[_events_pb2.ListOfString, _Mapping]] = ..., tools: _Optional[_Union[_events_pb2.ListOfString, _Mapping]] = ...) -> None: ...

class AdminRemoveSecretRequest(_message.Message):
    __slots__ = ("name", "scope")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    scope: str
    def __init__(self, name: _Optional[str] = ..., scope: _Optional[str] = ...) -> None: ...

class AdminRotateSecretRequest(_message.Message):
    __slots__ = ("name", "value", "scope")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    scope: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., scope: _Optional[str] = ...) -> None: ...

class AdminRotateVaultKeyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminTlsLookRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminTlsRenewRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminTlsAuthorityRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminTlsRevokeRequest(_message.Message):
    __slots__ = ("fingerprint",)
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    fingerprint: str
    def __init__(self, fingerprint: _Optional[str] = ...) -> None: ...

class AdminUsageRequest(_message.Message):
    __slots__ = ("by", "since_ms", "until_ms", "session_id", "run_id", "schedule_id", "everybody", "limit")
    BY_FIELD_NUMBER: _ClassVar[int]
    SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    EVERYBODY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    by: str
    since_ms: int
    until_ms: int
    session_id: str
    run_id: str
    schedule_id: str
    everybody: bool
    limit: int
    def __init__(self, by: _Optional[str] = ..., since_ms: _Optional[int] = ..., until_ms: _Optional[int] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., everybody: _Optional[bool] = ..., limit: _Optional[int] = ...) -> None: ...

class AdminForecastUsageRequest(_message.Message):
    __slots__ = ("everybody",)
    EVERYBODY_FIELD_NUMBER: _ClassVar[int]
    everybody: bool
    def __init__(self, everybody: _Optional[bool] = ...) -> None: ...

class AdminForecastScheduleRequest(_message.Message):
    __slots__ = ("schedule_id", "times")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    times: int
    def __init__(self, schedule_id: _Optional[str] = ..., times: _Optional[int] = ...) -> None: ...

class AdminListBudgetsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminPutBudgetRequest(_message.Message):
    __slots__ = ("budget", "per", "every", "tokens", "microusd", "warn_bps", "then", "who")
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MICROUSD_FIELD_NUMBER: _ClassVar[int]
    WARN_BPS_FIELD_NUMBER: _ClassVar[int]
    THEN_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    budget: str
    per: str
    every: str
    tokens: int
    microusd: int
    warn_bps: int
    then: str
    who: str
    def __init__(self, budget: _Optional[str] = ..., per: _Optional[str] = ..., every: _Optional[str] = ..., tokens: _Optional[int] = ..., microusd: _Optional[int] = ..., warn_bps: _Optional[int] = ..., then: _Optional[str] = ..., who: _Optional[str] = ...) -> None: ...

class AdminRemoveBudgetRequest(_message.Message):
    __slots__ = ("budget",)
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    budget: str
    def __init__(self, budget: _Optional[str] = ...) -> None: ...

class AdminListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminModelsGetRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class AdminListSkillsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminInstallSkillRequest(_message.Message):
    __slots__ = ("path", "confirm")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    path: str
    confirm: str
    def __init__(self, path: _Optional[str] = ..., confirm: _Optional[str] = ...) -> None: ...

class AdminInstallSkillArchiveRequest(_message.Message):
    __slots__ = ("confirm", "data")
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    confirm: str
    data: bytes
    def __init__(self, confirm: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class AdminGetSkillRequest(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: str
    def __init__(self, skill: _Optional[str] = ...) -> None: ...

class AdminRemoveSkillRequest(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: str
    def __init__(self, skill: _Optional[str] = ...) -> None: ...

class AdminSetSkillStateRequest(_message.Message):
    __slots__ = ("skill", "state")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    skill: str
    state: str
    def __init__(self, skill: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class AdminExportSkillRequest(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: str
    def __init__(self, skill: _Optional[str] = ...) -> None: ...

class AdminListPublishersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminAddPublisherRequest(_message.Message):
    __slots__ = ("name", "key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class AdminRemovePublisherRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class AdminNotesListRequest(_message.Message):
    __slots__ = ("session_id", "workspace")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    workspace: str
    def __init__(self, session_id: _Optional[str] = ..., workspace: _Optional[str] = ...) -> None: ...

class AdminNotesAcceptRequest(_message.Message):
    __slots__ = ("workspace", "file", "sha256")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    workspace: str
    file: str
    sha256: str
    def __init__(self, workspace: _Optional[str] = ..., file: _Optional[str] = ..., sha256: _Optional[str] = ...) -> None: ...

class AdminNotesRejectRequest(_message.Message):
    __slots__ = ("workspace", "file")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    workspace: str
    file: str
    def __init__(self, workspace: _Optional[str] = ..., file: _Optional[str] = ...) -> None: ...

class AdminListMcpServersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminAcceptMcpServerRequest(_message.Message):
    __slots__ = ("server", "fingerprint")
    SERVER_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    server: str
    fingerprint: str
    def __init__(self, server: _Optional[str] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class AdminRestartMcpServerRequest(_message.Message):
    __slots__ = ("server",)
    SERVER_FIELD_NUMBER: _ClassVar[int]
    server: str
    def __init__(self, server: _Optional[str] = ...) -> None: ...

class AdminListProvidersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminSaveProviderRequest(_message.Message):
    __slots__ = ("name", "kind", "base_url", "models", "key", "first")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    base_url: str
    models: _containers.RepeatedScalarFieldContainer[str]
    key: str
    first: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., base_url: _Optional[str] = ..., models: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., first: _Optional[bool] = ...) -> None: ...

class AdminRemoveProviderRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class AdminTestProviderRequest(_message.Message):
    __slots__ = ("name", "kind", "base_url", "models", "key", "first")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    base_url: str
    models: _containers.RepeatedScalarFieldContainer[str]
    key: str
    first: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., base_url: _Optional[str] = ..., models: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ..., first: _Optional[bool] = ...) -> None: ...

class AdminChangeConfigRequest(_message.Message):
    __slots__ = ("changes_json",)
    CHANGES_JSON_FIELD_NUMBER: _ClassVar[int]
    changes_json: str
    def __init__(self, changes_json: _Optional[str] = ...) -> None: ...

class AdminSetPresetRequest(_message.Message):
    __slots__ = ("preset",)
    PRESET_FIELD_NUMBER: _ClassVar[int]
    preset: str
    def __init__(self, preset: _Optional[str] = ...) -> None: ...

class AdminListTasksRequest(_message.Message):
    __slots__ = ("kind", "state", "before", "limit")
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    state: str
    before: str
    limit: int
    def __init__(self, kind: _Optional[str] = ..., state: _Optional[str] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class AdminListTaskKindsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminChangeTaskKindRequest(_message.Message):
    __slots__ = ("task_kind", "paused")
    TASK_KIND_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    task_kind: str
    paused: bool
    def __init__(self, task_kind: _Optional[str] = ..., paused: _Optional[bool] = ...) -> None: ...

class AdminGetTaskRequest(_message.Message):
    __slots__ = ("task_id",)
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    def __init__(self, task_id: _Optional[str] = ...) -> None: ...

class AdminChangeTaskRequest(_message.Message):
    __slots__ = ("task_id", "verb")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    verb: str
    def __init__(self, task_id: _Optional[str] = ..., verb: _Optional[str] = ...) -> None: ...

class AdminListChannelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminSaveChannelRequest(_message.Message):
    __slots__ = ("name", "kind", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    settings: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class AdminRemoveChannelRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class AdminListChannelKindsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminListMessagesRequest(_message.Message):
    __slots__ = ("channel", "state", "before", "limit")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    channel: str
    state: str
    before: int
    limit: int
    def __init__(self, channel: _Optional[str] = ..., state: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class AdminTraceMessageRequest(_message.Message):
    __slots__ = ("of",)
    OF_FIELD_NUMBER: _ClassVar[int]
    of: str
    def __init__(self, of: _Optional[str] = ...) -> None: ...

class AdminListDeadLettersRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class AdminReplayDeadLetterRequest(_message.Message):
    __slots__ = ("reply_id",)
    REPLY_ID_FIELD_NUMBER: _ClassVar[int]
    reply_id: str
    def __init__(self, reply_id: _Optional[str] = ...) -> None: ...

class AdminChannelsDropRequest(_message.Message):
    __slots__ = ("reply_id",)
    REPLY_ID_FIELD_NUMBER: _ClassVar[int]
    reply_id: str
    def __init__(self, reply_id: _Optional[str] = ...) -> None: ...

class AdminListPairingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminSettlePairingRequest(_message.Message):
    __slots__ = ("which", "verb", "for_ms")
    WHICH_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    which: str
    verb: str
    for_ms: int
    def __init__(self, which: _Optional[str] = ..., verb: _Optional[str] = ..., for_ms: _Optional[int] = ...) -> None: ...

class AdminInviteRequest(_message.Message):
    __slots__ = ("channel", "for_ms")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    channel: str
    for_ms: int
    def __init__(self, channel: _Optional[str] = ..., for_ms: _Optional[int] = ...) -> None: ...

class AdminListPeopleRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class AdminChangePersonRequest(_message.Message):
    __slots__ = ("channel", "sender", "verb", "principal")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    sender: str
    verb: str
    principal: str
    def __init__(self, channel: _Optional[str] = ..., sender: _Optional[str] = ..., verb: _Optional[str] = ..., principal: _Optional[str] = ...) -> None: ...

class AdminRouteApprovalRequest(_message.Message):
    __slots__ = ("approval_id", "principal", "channel", "conversation")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    principal: str
    channel: str
    conversation: str
    def __init__(self, approval_id: _Optional[str] = ..., principal: _Optional[str] = ..., channel: _Optional[str] = ..., conversation: _Optional[str] = ...) -> None: ...

class AdminSetRouterRequest(_message.Message):
    __slots__ = ("paused",)
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    paused: bool
    def __init__(self, paused: _Optional[bool] = ...) -> None: ...

class AdminGetChannelRequest(_message.Message):
    __slots__ = ("channel",)
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    channel: str
    def __init__(self, channel: _Optional[str] = ...) -> None: ...

class AdminChangeChannelRequest(_message.Message):
    __slots__ = ("channel", "verb")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    channel: str
    verb: str
    def __init__(self, channel: _Optional[str] = ..., verb: _Optional[str] = ...) -> None: ...

class AdminChangeChannelRulesRequest(_message.Message):
    __slots__ = ("channel", "changes_json")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CHANGES_JSON_FIELD_NUMBER: _ClassVar[int]
    channel: str
    changes_json: str
    def __init__(self, channel: _Optional[str] = ..., changes_json: _Optional[str] = ...) -> None: ...

class AdminPreviewMessageRequest(_message.Message):
    __slots__ = ("channel", "sender", "text", "conversation", "thread", "direct", "everyone", "files", "verified")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    DIRECT_FIELD_NUMBER: _ClassVar[int]
    EVERYONE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    channel: str
    sender: str
    text: str
    conversation: str
    thread: str
    direct: bool
    everyone: bool
    files: int
    verified: bool
    def __init__(self, channel: _Optional[str] = ..., sender: _Optional[str] = ..., text: _Optional[str] = ..., conversation: _Optional[str] = ..., thread: _Optional[str] = ..., direct: _Optional[bool] = ..., everyone: _Optional[bool] = ..., files: _Optional[int] = ..., verified: _Optional[bool] = ...) -> None: ...

class AdminTestChannelRequest(_message.Message):
    __slots__ = ("channel", "conversation", "text")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    channel: str
    conversation: str
    text: str
    def __init__(self, channel: _Optional[str] = ..., conversation: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class AdminDiagnoseRequest(_message.Message):
    __slots__ = ("deep",)
    DEEP_FIELD_NUMBER: _ClassVar[int]
    deep: bool
    def __init__(self, deep: _Optional[bool] = ...) -> None: ...

class AdminRepairRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class AdminHealingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdminListIncidentsRequest(_message.Message):
    __slots__ = ("open", "before", "limit")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    open: bool
    before: str
    limit: int
    def __init__(self, open: _Optional[bool] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class AdminGetIncidentRequest(_message.Message):
    __slots__ = ("incident_id",)
    INCIDENT_ID_FIELD_NUMBER: _ClassVar[int]
    incident_id: str
    def __init__(self, incident_id: _Optional[str] = ...) -> None: ...

class AdminListNoticesRequest(_message.Message):
    __slots__ = ("unread", "before", "limit")
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    unread: bool
    before: str
    limit: int
    def __init__(self, unread: _Optional[bool] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class AdminReadNoticesRequest(_message.Message):
    __slots__ = ("notice_id",)
    NOTICE_ID_FIELD_NUMBER: _ClassVar[int]
    notice_id: str
    def __init__(self, notice_id: _Optional[str] = ...) -> None: ...
