from palyra.v1 import events_pb2 as _events_pb2
from palyra.v1 import options_pb2 as _options_pb2
from palyra.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SchedulesListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SchedulesAddRequest(_message.Message):
    __slots__ = ("text", "when", "name", "zone", "overlap", "missed", "quiet", "scopes", "ask", "model", "workspace", "fresh")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    QUIET_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    text: str
    when: str
    name: str
    zone: str
    overlap: str
    missed: str
    quiet: _types_pb2.Quiet
    scopes: _containers.RepeatedCompositeFieldContainer[_events_pb2.Subject]
    ask: str
    model: str
    workspace: str
    fresh: bool
    def __init__(self, text: _Optional[str] = ..., when: _Optional[str] = ..., name: _Optional[str] = ..., zone: _Optional[str] = ..., overlap: _Optional[str] = ..., missed: _Optional[str] = ..., quiet: _Optional[_Union[_types_pb2.Quiet, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_events_pb2.Subject, _Mapping]]] = ..., ask: _Optional[str] = ..., model: _Optional[str] = ..., workspace: _Optional[str] = ..., fresh: _Optional[bool] = ...) -> None: ...

class SchedulesPreviewRequest(_message.Message):
    __slots__ = ("text", "when", "name", "zone", "overlap", "missed", "quiet", "scopes", "ask", "model", "workspace", "fresh")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    QUIET_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    text: str
    when: str
    name: str
    zone: str
    overlap: str
    missed: str
    quiet: _types_pb2.Quiet
    scopes: _containers.RepeatedCompositeFieldContainer[_events_pb2.Subject]
    ask: str
    model: str
    workspace: str
    fresh: bool
    def __init__(self, text: _Optional[str] = ..., when: _Optional[str] = ..., name: _Optional[str] = ..., zone: _Optional[str] = ..., overlap: _Optional[str] = ..., missed: _Optional[str] = ..., quiet: _Optional[_Union[_types_pb2.Quiet, _Mapping]] = ..., scopes: _Optional[_Iterable[_Union[_events_pb2.Subject, _Mapping]]] = ..., ask: _Optional[str] = ..., model: _Optional[str] = ..., workspace: _Optional[str] = ..., fresh: _Optional[bool] = ...) -> None: ...

class SchedulesGetRequest(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    def __init__(self, schedule_id: _Optional[str] = ...) -> None: ...

class SchedulesRemoveRequest(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    def __init__(self, schedule_id: _Optional[str] = ...) -> None: ...

class SchedulesPauseRequest(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    def __init__(self, schedule_id: _Optional[str] = ...) -> None: ...

class SchedulesResumeRequest(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    def __init__(self, schedule_id: _Optional[str] = ...) -> None: ...

class SchedulesRunRequest(_message.Message):
    __slots__ = ("schedule_id",)
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    def __init__(self, schedule_id: _Optional[str] = ...) -> None: ...
