from palyra.v1 import events_pb2 as _events_pb2
from palyra.v1 import options_pb2 as _options_pb2
from palyra.v1 import types_pb2 as _types_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ApprovalsListRequest(_message.Message):
    __slots__ = ("pending", "before", "limit")
    PENDING_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    pending: str
    before: str
    limit: int
    def __init__(self, pending: _Optional[str] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ApprovalsGetRequest(_message.Message):
    __slots__ = ("approval_id",)
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    def __init__(self, approval_id: _Optional[str] = ...) -> None: ...

class ApprovalsPreviewRequest(_message.Message):
    __slots__ = ("approval_id", "arguments_json")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    arguments_json: str
    def __init__(self, approval_id: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class ApprovalsAnswerRequest(_message.Message):
    __slots__ = ("approval_id", "decision", "scope", "subject", "for_ms", "arguments_json", "reason", "seen")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    decision: str
    scope: str
    subject: _events_pb2.Subject
    for_ms: int
    arguments_json: str
    reason: str
    seen: str
    def __init__(self, approval_id: _Optional[str] = ..., decision: _Optional[str] = ..., scope: _Optional[str] = ..., subject: _Optional[_Union[_events_pb2.Subject, _Mapping]] = ..., for_ms: _Optional[int] = ..., arguments_json: _Optional[str] = ..., reason: _Optional[str] = ..., seen: _Optional[str] = ...) -> None: ...

class ApprovalsListGrantsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ApprovalsRemoveGrantRequest(_message.Message):
    __slots__ = ("approval_id",)
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    def __init__(self, approval_id: _Optional[str] = ...) -> None: ...
