"""What the demo model can be asked for. Each kind of request is one type; `rule` is how the
reasoning names it.
"""

from typing import ClassVar, Literal

from msgspec import Struct

SmallTalk = Literal["greeting", "thanks", "who", "help"]
Measure = Literal["lines", "words", "characters", "bytes", "all"]


class Intent(Struct, frozen=True, kw_only=True):
    """Base of all requests. `changes` says that the files may be different afterwards, so what
    follows has to wait.
    """

    rule: ClassVar[str]
    changes: ClassVar[bool] = False


class Talk(Intent, frozen=True, kw_only=True):
    rule = "small talk"
    about: SmallTalk


class ListFolder(Intent, frozen=True, kw_only=True):
    rule = "list a folder"
    path: str = "."
    depth: int = 1


class Overview(Intent, frozen=True, kw_only=True):
    rule = "describe a folder"
    path: str = "."


class ReadIntent(Intent, frozen=True, kw_only=True):
    """`first` and `last` are lines; a negative `first` counts from the end."""

    rule = "show files"
    paths: tuple[str, ...]
    first: int = 0
    last: int = 0


class Summarise(Intent, frozen=True, kw_only=True):
    rule = "summarise files"
    paths: tuple[str, ...]


class Count(Intent, frozen=True, kw_only=True):
    rule = "measure files"
    paths: tuple[str, ...]
    what: Measure = "all"


class Pasted(Intent, frozen=True, kw_only=True):
    """About a text that came along with the request. `what` is empty for a summary."""

    rule = "look at a text that was given"
    text: str
    what: Measure | Literal[""] = ""


class CountFiles(Intent, frozen=True, kw_only=True):
    rule = "count the files of a folder"
    path: str = "."


class SearchIntent(Intent, frozen=True, kw_only=True):
    rule = "search in files"
    words: str
    path: str = "."
    glob: str = ""
    regex: bool = False
    only_count: bool = False


class FindFiles(Intent, frozen=True, kw_only=True):
    rule = "find files by name"
    name: str
    path: str = "."


class Create(Intent, frozen=True, kw_only=True):
    rule = "write a file"
    changes = True
    path: str
    content: str = ""
    overwrite: bool = False


class Append(Intent, frozen=True, kw_only=True):
    rule = "append to a file"
    changes = True
    path: str
    text: str = ""


class Replace(Intent, frozen=True, kw_only=True):
    """`path` is a file, or with `glob` a folder whose files are meant."""

    rule = "replace text"
    changes = True
    old: str
    new: str
    path: str = ""
    glob: str = ""


class RenameHeading(Intent, frozen=True, kw_only=True):
    rule = "rename a heading"
    changes = True
    path: str
    new: str = ""
    old: str = ""


class UseTool(Intent, frozen=True, kw_only=True):
    rule = "call a tool by its name"
    changes = True
    tool: str
    arguments: str = "{}"


class Delegate(Intent, frozen=True, kw_only=True):
    rule = "give a task to a helper"
    changes = True
    task: str


class WhatChanged(Intent, frozen=True, kw_only=True):
    rule = "look back on what was changed"


class UndoIntent(Intent, frozen=True, kw_only=True):
    rule = "explain how to undo"


class Arithmetic(Intent, frozen=True, kw_only=True):
    rule = "work out a sum"
    expression: str


class NoTool(Intent, frozen=True, kw_only=True):
    """Understood, but nothing here can do it. `instead` is what can be done."""

    rule = "say what is not possible"
    wish: str
    instead: str = ""


class QuestionIntent(Intent, frozen=True, kw_only=True):
    """Understood, but something is missing: `question` asks for it."""

    rule = "ask for what is missing"
    question: str


class Unknown(Intent, frozen=True, kw_only=True):
    rule = "admit that no rule fits"
    text: str
