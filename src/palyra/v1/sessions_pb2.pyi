from palyra.v1 import events_pb2 as _events_pb2
from palyra.v1 import options_pb2 as _options_pb2
from palyra.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionsFindOrCreateRequest(_message.Message):
    __slots__ = ("session_id", "key", "label", "title", "workspace", "device", "channel", "must_exist")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    MUST_EXIST_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    key: str
    label: str
    title: str
    workspace: str
    device: str
    channel: str
    must_exist: bool
    def __init__(self, session_id: _Optional[str] = ..., key: _Optional[str] = ..., label: _Optional[str] = ..., title: _Optional[str] = ..., workspace: _Optional[str] = ..., device: _Optional[str] = ..., channel: _Optional[str] = ..., must_exist: _Optional[bool] = ...) -> None: ...

class SessionsListRequest(_message.Message):
    __slots__ = ("archived", "before", "limit")
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    archived: bool
    before: str
    limit: int
    def __init__(self, archived: _Optional[bool] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class SessionsGetRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionsChangeRequest(_message.Message):
    __slots__ = ("session_id", "title", "archived", "kept")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    title: str
    archived: bool
    kept: bool
    def __init__(self, session_id: _Optional[str] = ..., title: _Optional[str] = ..., archived: _Optional[bool] = ..., kept: _Optional[bool] = ...) -> None: ...

class SessionsResetRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionsBranchRequest(_message.Message):
    __slots__ = ("session_id", "at", "title")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    at: int
    title: str
    def __init__(self, session_id: _Optional[str] = ..., at: _Optional[int] = ..., title: _Optional[str] = ...) -> None: ...

class SessionsListEntriesRequest(_message.Message):
    __slots__ = ("session_id", "after", "limit")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    after: int
    limit: int
    def __init__(self, session_id: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class SessionsWatchRequest(_message.Message):
    __slots__ = ("session_id", "after", "until")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    after: int
    until: str
    def __init__(self, session_id: _Optional[str] = ..., after: _Optional[int] = ..., until: _Optional[str] = ...) -> None: ...

class SessionsSubmitRequest(_message.Message):
    __slots__ = ("session_id", "text", "run_id", "mode", "model", "attachments", "attended")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    ATTENDED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    text: str
    run_id: str
    mode: str
    model: str
    attachments: _containers.RepeatedCompositeFieldContainer[_types_pb2.Attaching]
    attended: bool
    def __init__(self, session_id: _Optional[str] = ..., text: _Optional[str] = ..., run_id: _Optional[str] = ..., mode: _Optional[str] = ..., model: _Optional[str] = ..., attachments: _Optional[_Iterable[_Union[_types_pb2.Attaching, _Mapping]]] = ..., attended: _Optional[bool] = ...) -> None: ...

class SessionsListRunsRequest(_message.Message):
    __slots__ = ("session_id", "before", "limit")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    before: str
    limit: int
    def __init__(self, session_id: _Optional[str] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class SessionsGetArtifactRequest(_message.Message):
    __slots__ = ("session_id", "artifact_id", "name")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    artifact_id: str
    name: str
    def __init__(self, session_id: _Optional[str] = ..., artifact_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class SessionsWatchAllRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class SessionsListRulesRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionsAddRuleRequest(_message.Message):
    __slots__ = ("session_id", "words")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    words: str
    def __init__(self, session_id: _Optional[str] = ..., words: _Optional[str] = ...) -> None: ...

class SessionsRemoveRuleRequest(_message.Message):
    __slots__ = ("session_id", "rule_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    rule_id: str
    def __init__(self, session_id: _Optional[str] = ..., rule_id: _Optional[str] = ...) -> None: ...

class SessionsStoreFileRequest(_message.Message):
    __slots__ = ("session_id", "name", "data")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    name: str
    data: bytes
    def __init__(self, session_id: _Optional[str] = ..., name: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class SessionsPreviewReferencesRequest(_message.Message):
    __slots__ = ("session_id", "text")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    text: str
    def __init__(self, session_id: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class SessionsListPathsRequest(_message.Message):
    __slots__ = ("session_id", "prefix", "limit")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    prefix: str
    limit: int
    def __init__(self, session_id: _Optional[str] = ..., prefix: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class SessionsSearchRequest(_message.Message):
    __slots__ = ("q", "semantic", "limit")
    Q_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    q: str
    semantic: bool
    limit: int
    def __init__(self, q: _Optional[str] = ..., semantic: _Optional[bool] = ..., limit: _Optional[int] = ...) -> None: ...

class SessionsAtRequest(_message.Message):
    __slots__ = ("session_id", "seq", "turns")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    seq: int
    turns: int
    def __init__(self, session_id: _Optional[str] = ..., seq: _Optional[int] = ..., turns: _Optional[int] = ...) -> None: ...

class SessionsRewindRequest(_message.Message):
    __slots__ = ("session_id", "to", "files", "conversation", "preview", "stop", "conflicts")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    to: int
    files: bool
    conversation: bool
    preview: bool
    stop: bool
    conflicts: str
    def __init__(self, session_id: _Optional[str] = ..., to: _Optional[int] = ..., files: _Optional[bool] = ..., conversation: _Optional[bool] = ..., preview: _Optional[bool] = ..., stop: _Optional[bool] = ..., conflicts: _Optional[str] = ...) -> None: ...

class SessionsUndoRequest(_message.Message):
    __slots__ = ("session_id", "call_id", "run_id", "dry_run", "force")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    call_id: str
    run_id: str
    dry_run: bool
    force: bool
    def __init__(self, session_id: _Optional[str] = ..., call_id: _Optional[str] = ..., run_id: _Optional[str] = ..., dry_run: _Optional[bool] = ..., force: _Optional[bool] = ...) -> None: ...

class SessionsListAgentsRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionsRestoreRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionsCompactRequest(_message.Message):
    __slots__ = ("session_id", "preview")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    preview: bool
    def __init__(self, session_id: _Optional[str] = ..., preview: _Optional[bool] = ...) -> None: ...

class SessionsListCompactionsRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SessionsUndoCompactionRequest(_message.Message):
    __slots__ = ("session_id", "seq")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    seq: int
    def __init__(self, session_id: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class SessionsPinRequest(_message.Message):
    __slots__ = ("session_id", "seq", "removed")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    seq: int
    removed: bool
    def __init__(self, session_id: _Optional[str] = ..., seq: _Optional[int] = ..., removed: _Optional[bool] = ...) -> None: ...
