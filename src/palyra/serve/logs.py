"""Logs: JSON lines in a file that does not grow without end, human lines on stderr. No record is
written unredacted.

They are written by a thread of their own: a disk that does not answer holds up that thread, and
nobody who has something to say.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

import msgspec

MOST_BYTES = 8 << 20
KEPT = 3
MOST_WAITING = 10_000
# A process that ends gives its last lines so long.
_LAST_LINES_S = 2.0


class Redacting(logging.Formatter):
    """Base of both formats: the message and the traceback, without the secrets in them."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def text_of(self, record: logging.LogRecord) -> str:
        return self._redact(record.getMessage())

    def trace_of(self, record: logging.LogRecord) -> str:
        return self._redact(self.formatException(record.exc_info)) if record.exc_info else ""


class JsonLines(Redacting):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time_ms": int(record.created * 1000),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.text_of(record),
        }
        if trace := self.trace_of(record):
            line["error"] = trace
        return msgspec.json.encode(line).decode()


class HumanLines(Redacting):
    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{at} {record.levelname.lower()} {record.name}: {self.text_of(record)}"
        trace = self.trace_of(record)
        return f"{line}\n{trace}" if trace else line


class PrivateFile(RotatingFileHandler):
    """A log that only its owner can read, made so from its first byte on."""

    def _open(self) -> TextIO:  # type: ignore[override]
        descriptor = os.open(
            self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        return os.fdopen(descriptor, "a", encoding="utf-8")


class Behind(logging.Handler):
    """Handler that gives records to others on a thread of its own. What does not fit into the queue
    is counted and left out.
    """

    def __init__(self, *handlers: logging.Handler) -> None:
        super().__init__()
        self._handlers = handlers
        self._waiting: SimpleQueue[logging.LogRecord | None] = SimpleQueue()
        self._left_out = 0
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting.qsize() >= MOST_WAITING:
            self._left_out += 1
            return
        # Its arguments may be something else by the time it is written.
        record.msg, record.args = record.getMessage(), None
        self._waiting.put(record)

    def _write(self) -> None:
        while (record := self._waiting.get()) is not None:
            left_out, self._left_out = self._left_out, 0
            if left_out:
                record.msg = (
                    f"{record.msg} ({left_out} lines before this were left out: the log could not"
                    " be written)"
                )
            for handler in self._handlers:
                if record.levelno >= handler.level:
                    handler.handle(record)

    def close(self) -> None:
        """Write what waits, if that can be done soon."""
        self._waiting.put(None)
        self._thread.join(_LAST_LINES_S)
        for handler in self._handlers:
            if not self._thread.is_alive():
                handler.close()
        super().close()


def start(home: Path, level: str, redact: Callable[[str], str]) -> None:
    """Send everything that is logged in this process through the redactor, to the file and to
    stderr.
    """
    folder = home / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = PrivateFile(
        folder / "daemon.log", maxBytes=MOST_BYTES, backupCount=KEPT, encoding="utf-8"
    )
    file.setFormatter(JsonLines(redact))
    screen = logging.StreamHandler(sys.stderr)
    screen.setFormatter(HumanLines(redact))
    screen.setLevel(
        max(logging.WARNING, logging.getLevelName(level.upper()))
        if level != "debug"
        else logging.DEBUG
    )
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    root.addHandler(Behind(file, screen))
    root.setLevel(level.upper())
    # What a client sends wrong is answered, not logged: otherwise anybody could fill the log.
    for name in ("uvicorn", "quic"):
        logging.getLogger(name).setLevel(logging.ERROR)
