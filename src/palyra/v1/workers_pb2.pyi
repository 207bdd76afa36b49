from palyra.v1 import options_pb2 as _options_pb2
from palyra.v1 import types_pb2 as _types_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class WorkersListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkersEnrolRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class WorkersGetRequest(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: str
    def __init__(self, worker: _Optional[str] = ...) -> None: ...

class WorkersDrainRequest(_message.Message):
    __slots__ = ("worker", "on")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    worker: str
    on: bool
    def __init__(self, worker: _Optional[str] = ..., on: _Optional[bool] = ...) -> None: ...

class WorkersRevokeRequest(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: str
    def __init__(self, worker: _Optional[str] = ...) -> None: ...
