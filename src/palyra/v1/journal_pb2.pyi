from palyra.v1 import events_pb2 as _events_pb2
from palyra.v1 import options_pb2 as _options_pb2
from palyra.v1 import types_pb2 as _types_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class JournalGetEntryRequest(_message.Message):
    __slots__ = ("position",)
    POSITION_FIELD_NUMBER: _ClassVar[int]
    position: int
    def __init__(self, position: _Optional[int] = ...) -> None: ...

class JournalVerifyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class JournalExportRequest(_message.Message):
    __slots__ = ("session_id", "after")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    after: int
    def __init__(self, session_id: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class JournalBackupRequest(_message.Message):
    __slots__ = ("name", "folder")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    name: str
    folder: str
    def __init__(self, name: _Optional[str] = ..., folder: _Optional[str] = ...) -> None: ...

class JournalListBackupsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class JournalDownloadBackupRequest(_message.Message):
    __slots__ = ("backup",)
    BACKUP_FIELD_NUMBER: _ClassVar[int]
    backup: str
    def __init__(self, backup: _Optional[str] = ...) -> None: ...

class JournalArchiveRequest(_message.Message):
    __slots__ = ("days", "dry_run")
    DAYS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    days: int
    dry_run: bool
    def __init__(self, days: _Optional[int] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class JournalCleanRequest(_message.Message):
    __slots__ = ("dry_run",)
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    dry_run: bool
    def __init__(self, dry_run: _Optional[bool] = ...) -> None: ...

class JournalListSegmentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
