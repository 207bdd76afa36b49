"""Logs: JSON lines in a file that does not grow without end, human lines on stderr. No record is written unredacted."""

import logging
import os
import sys
import time
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

import msgspec

MOST_BYTES = 8 << 20
KEPT = 3


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
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")


def start(home: Path, level: str, redact: Callable[[str], str]) -> None:
    """Send everything that is logged in this process through the redactor, to the file and to stderr."""
    folder = home / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = PrivateFile(folder / "daemon.log", maxBytes=MOST_BYTES, backupCount=KEPT, encoding="utf-8")
    file.setFormatter(JsonLines(redact))
    screen = logging.StreamHandler(sys.stderr)
    screen.setFormatter(HumanLines(redact))
    screen.setLevel(max(logging.WARNING, logging.getLevelName(level.upper())) if level != "debug" else logging.DEBUG)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    root.addHandler(file)
    root.addHandler(screen)
    root.setLevel(level.upper())
    # What a client sends wrong is answered, not logged: otherwise anybody could fill the log.
    for name in ("uvicorn", "quic"):
        logging.getLogger(name).setLevel(logging.ERROR)
