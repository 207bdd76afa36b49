from palyra.v1 import options_pb2 as _options_pb2
from palyra.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemoryListRequest(_message.Message):
    __slots__ = ("state", "before", "limit")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    state: str
    before: str
    limit: int
    def __init__(self, state: _Optional[str] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class MemoryAddRequest(_message.Message):
    __slots__ = ("text", "kind", "scope", "source", "place", "confidence_bps", "valid_from_ms", "valid_until_ms", "ttl_ms", "pinned", "session_id")
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
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
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
    session_id: str
    def __init__(self, text: _Optional[str] = ..., kind: _Optional[str] = ..., scope: _Optional[str] = ..., source: _Optional[str] = ..., place: _Optional[int] = ..., confidence_bps: _Optional[int] = ..., valid_from_ms: _Optional[int] = ..., valid_until_ms: _Optional[int] = ..., ttl_ms: _Optional[int] = ..., pinned: _Optional[bool] = ..., session_id: _Optional[str] = ...) -> None: ...

class MemorySearchRequest(_message.Message):
    __slots__ = ("text", "session_id", "limit")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    text: str
    session_id: str
    limit: int
    def __init__(self, text: _Optional[str] = ..., session_id: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class MemoryStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemoryExportRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemoryImportRequest(_message.Message):
    __slots__ = ("new", "items", "session_id")
    NEW_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    new: _containers.RepeatedCompositeFieldContainer[_types_pb2.NewMemory]
    items: _containers.RepeatedCompositeFieldContainer[_types_pb2.Item]
    session_id: str
    def __init__(self, new: _Optional[_Iterable[_Union[_types_pb2.NewMemory, _Mapping]]] = ..., items: _Optional[_Iterable[_Union[_types_pb2.Item, _Mapping]]] = ..., session_id: _Optional[str] = ...) -> None: ...

class MemoryPurgeRequest(_message.Message):
    __slots__ = ("memory_ids", "everything")
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    EVERYTHING_FIELD_NUMBER: _ClassVar[int]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    everything: bool
    def __init__(self, memory_ids: _Optional[_Iterable[str]] = ..., everything: _Optional[bool] = ...) -> None: ...

class MemoryGetRequest(_message.Message):
    __slots__ = ("memory_id",)
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    def __init__(self, memory_id: _Optional[str] = ...) -> None: ...

class MemoryChangeRequest(_message.Message):
    __slots__ = ("memory_id", "text", "kind", "confidence_bps", "valid_until_ms", "pinned")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_BPS_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    text: str
    kind: str
    confidence_bps: int
    valid_until_ms: int
    pinned: bool
    def __init__(self, memory_id: _Optional[str] = ..., text: _Optional[str] = ..., kind: _Optional[str] = ..., confidence_bps: _Optional[int] = ..., valid_until_ms: _Optional[int] = ..., pinned: _Optional[bool] = ...) -> None: ...

class MemoryForgetRequest(_message.Message):
    __slots__ = ("memory_id",)
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    def __init__(self, memory_id: _Optional[str] = ...) -> None: ...

class MemoryHistoryRequest(_message.Message):
    __slots__ = ("memory_id",)
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    def __init__(self, memory_id: _Optional[str] = ...) -> None: ...

class MemoryReviewRequest(_message.Message):
    __slots__ = ("memory_id", "decision")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    decision: str
    def __init__(self, memory_id: _Optional[str] = ..., decision: _Optional[str] = ...) -> None: ...

class MemoryListCandidatesRequest(_message.Message):
    __slots__ = ("state", "kind", "before", "limit")
    STATE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    state: str
    kind: str
    before: str
    limit: int
    def __init__(self, state: _Optional[str] = ..., kind: _Optional[str] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class MemoryLearningSettingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemoryGetCandidateRequest(_message.Message):
    __slots__ = ("candidate_id",)
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    def __init__(self, candidate_id: _Optional[str] = ...) -> None: ...

class MemoryAcceptCandidateRequest(_message.Message):
    __slots__ = ("candidate_id", "text")
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    text: str
    def __init__(self, candidate_id: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class MemoryRejectCandidateRequest(_message.Message):
    __slots__ = ("candidate_id", "reason")
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    reason: str
    def __init__(self, candidate_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class MemoryRollBackCandidateRequest(_message.Message):
    __slots__ = ("candidate_id",)
    CANDIDATE_ID_FIELD_NUMBER: _ClassVar[int]
    candidate_id: str
    def __init__(self, candidate_id: _Optional[str] = ...) -> None: ...
