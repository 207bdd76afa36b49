"""Answers to requests that change files. They look first, change as little as they can, and say
what happened.
"""

import re

from palyra.models.demo import intents, results
from palyra.models.demo.intents import Append, Create, RenameHeading, Replace
from palyra.models.demo.open_requests import OpenRequest
from palyra.models.demo.read_answers import failure, search_call
from palyra.models.demo.results import FilePage, ReadResult

_UNDO = "To undo: `/undo` in a chat, `palyra undo` in a shell."
_TAIL_LINES = 20
_MOST_FILES = 64


def create(asked: Create, desk: OpenRequest) -> str:
    if not asked.overwrite and "fs.list" in desk.tools:
        # To create must not mean to overwrite. A folder that is not there yet cannot hold the file.
        folder, _, name = asked.path.rpartition("/")
        beside = desk.call("fs.list", path=folder or ".")
        there = not beside.failed and any(
            item.name == name for item in results.listing(beside).items
        )
        if there:
            return (
                f"{intents.code(asked.path)} exists already, so I left it alone. Say `overwrite"
                f" {asked.path} with …` to replace what is in it, or `append a line to"
                f" {asked.path}: …` to add to it."
            )
    return _done(desk.call("fs.write", path=asked.path, content=asked.content), desk)


def append(asked: Append, desk: OpenRequest) -> str:
    result = desk.call("fs.read", path=asked.path)
    if result.missing:
        return (
            f"There is no {intents.code(asked.path)} yet. Say `create {asked.path} with the text"
            f" {asked.text.strip()}` to make it."
        )
    if result.failed:
        return failure(result, desk)
    page = results.page(result)
    if not page.body:
        return _done(desk.call("fs.write", path=asked.path, content=asked.text), desk)
    if not page.complete:
        result = desk.call(
            "fs.read",
            path=asked.path,
            offset=max(page.total - _TAIL_LINES + 1, 1),
            limit=_TAIL_LINES,
        )
        if result.failed:
            return failure(result, desk)
        page = results.page(result)
    end = "\r\n" if page.crlf else "\n"
    text = asked.text.replace("\n", end)
    last = _unique_end(page)
    joint = "" if last.endswith("\n") else end
    return _patched(desk, [{"path": asked.path, "search": last, "replace": f"{last}{joint}{text}"}])


def _unique_end(page: FilePage) -> str:
    """The shortest run of last lines that occurs nowhere else on the page."""
    lines = page.body.splitlines(keepends=True)
    for count in range(1, len(lines)):
        tail = "".join(lines[-count:])
        if tail.strip() and page.body.count(tail) == 1:
            return tail
    return page.body


def replace(asked: Replace, desk: OpenRequest) -> str:
    if asked.glob:
        return _replace_in_many(asked, desk)
    result = desk.call("fs.read", path=asked.path)
    if result.failed:
        return failure(result, desk)
    page = results.page(result)
    found = page.body.count(asked.old)
    if not found and page.complete:
        return _not_there(asked, page)
    said = _patched(
        desk, [{"path": asked.path, "search": asked.old, "replace": asked.new, "all": True}]
    )
    many = f" It occurred {intents.plural(found, 'time')}." if found > 1 and page.complete else ""
    return said + many


def _not_there(asked: Replace, page: FilePage) -> str:
    other = re.search(re.escape(asked.old), page.body, re.IGNORECASE)
    hint = (
        f" There is {intents.code(other[0])}, with other capitals: say exactly what to replace."
        if other
        else ""
    )
    return (
        f"{intents.code(asked.old)} does not occur in {intents.code(page.path)}, so I changed"
        f" nothing.{hint}"
    )


def _replace_in_many(asked: Replace, desk: OpenRequest) -> str:
    result = search_call(desk, asked.old, glob=asked.glob, case=True)
    if result.failed:
        return failure(result, desk)
    found = results.matches(result)
    files = list(dict.fromkeys(match.path for match in found.matches if asked.old in match.text))
    if not files:
        return (
            f"{intents.code(asked.old)} does not occur in {intents.code(asked.glob)}, so I"
            " changed nothing."
        )
    edits = [
        {"path": path, "search": asked.old, "replace": asked.new, "all": True}
        for path in files[:_MOST_FILES]
    ]
    return _patched(desk, edits)


def rename_heading(asked: RenameHeading, desk: OpenRequest) -> str:
    result = desk.call("fs.read", path=asked.path)
    if result.failed:
        return failure(result, desk)
    page = results.page(result)
    lines = page.body.splitlines(keepends=True)
    found = results.headings([line.rstrip("\r\n") for line in lines])
    wanted = [each for each in found if not asked.old or each[2].lower() == asked.old.lower()]
    if not wanted:
        others = (
            f" It has {intents.listed([intents.code(each[2]) for each in found[:5]])}."
            if found and asked.old
            else ""
        )
        missing = (
            f"no heading {intents.code(asked.old)}" if asked.old else "no heading that I can see"
        )
        return f"{intents.code(asked.path)} has {missing}, so I changed nothing.{others}"
    at, _, title = wanted[0]
    new = asked.new or _better(title, page, found)
    if new == title:
        return f"The heading of {intents.code(asked.path)} is {intents.code(title)} already."
    old_line = lines[at]
    index = old_line.rindex(title)
    renamed = old_line[:index] + new + old_line[index + len(title) :]
    first, last = _unique_around(lines, at, page.body)
    search = "".join(lines[first:last])
    result = desk.call(
        "fs.patch",
        edits=[
            {"path": asked.path, "search": search, "replace": search.replace(old_line, renamed, 1)}
        ],
    )
    said = _done(result, desk)
    if result.failed:
        return said
    if asked.new:
        return f"{said} The heading was {intents.code(title)} and is {intents.code(new)} now."
    return (
        f"{said}\n\nYou gave no new name, so I chose {intents.code(new)} instead of"
        f" {intents.code(title)}. To choose your own: `rename the heading in {asked.path} to …`."
    )


def _better(title: str, page: FilePage, found: list[tuple[int, int, str]]) -> str:
    """A heading that says a little more than the old one."""
    capital = " ".join(
        word if word.isupper() or not word.islower() else word.capitalize()
        for word in title.split()
    )
    if capital != title:
        return capital
    below = next((text for _, _, text in found[1:] if text != title), "")
    if below:
        return f"{title}: {below}"
    plain = [
        line.strip(" -*>\t")
        for line in page.lines
        if line.strip() and not line.lstrip().startswith(("#", "=", "```"))
    ]
    first = next((line for line in plain if line and line != title), "")
    return f"{title}: {' '.join(first.split()[:4]).rstrip('.,;:')}" if first else f"My {title}"


def _unique_around(lines: list[str], at: int, body: str) -> tuple[int, int]:
    """The smallest run of lines with this one in it, and at its start if possible, that occurs
    once.
    """
    for first in range(at, -1, -1):
        for last in range(at + 1, min(at + 8, len(lines)) + 1):
            if body.count("".join(lines[first:last])) == 1:
                return first, last
    return 0, len(lines)


def _patched(desk: OpenRequest, edits: list[dict[str, object]]) -> str:
    return _done(desk.call("fs.patch", edits=edits), desk)


def _done(result: ReadResult, desk: OpenRequest) -> str:
    if result.denied:
        about = f" {intents.code(result.subject)}" if result.subject else ""
        return (
            f"I wanted to change{about} with `{result.tool}`, and that was **denied**:"
            f" {result.reason}. Nothing was changed."
        )
    if result.failed:
        return f"{failure(result, desk)} Nothing was changed."
    first, *others = [line for line in result.text.splitlines() if line.strip()] or [
        f"changed {result.subject}"
    ]
    if not others:
        return f"Done: {intents.clip(first, 200)}. {_UNDO}"
    return f"Done:\n\n{intents.bullets([intents.clip(line, 200) for line in [first, *others]])}\n\n{_UNDO}"  # noqa: E501
