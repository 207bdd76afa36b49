"""Answers to requests that only look: each asks the desk for results and puts them into words."""

import re
from fnmatch import fnmatchcase

from palyra.models.demo import intents, results
from palyra.models.demo.intents import (
    Count,
    CountFiles,
    FindFiles,
    ListFolder,
    Overview,
    Pasted,
    ReadIntent,
    SearchIntent,
    Summarise,
)
from palyra.models.demo.open_requests import OpenRequest
from palyra.models.demo.results import FilePage, Listing, ReadResult

_SHOWN_LINES = 40
_SHOWN_CHARACTERS = 4_000
_MOST_MATCHES = 30
_DEEPEST = 16
_MOST_ENTRIES = 1_000
_META = re.compile(r"([\\.+*?()|\[\]{}^$])")


def list_folder(asked: ListFolder, desk: OpenRequest) -> str:
    arguments = (
        {"path": asked.path, "depth": asked.depth} if asked.depth > 1 else {"path": asked.path}
    )
    result = desk.call("fs.list", **arguments)
    if result.failed:
        return failure(result, desk)
    return _folder(asked.path, results.listing(result))


def _folder(path: str, listing: Listing) -> str:
    name = "This folder" if path == "." else intents.code(path)
    if not listing.items:
        return f"{name} is empty." + _remarks(listing.notes)
    total = sum(item.size or 0 for item in listing.files)
    counts = [intents.plural(len(listing.folders), "folder")] if listing.folders else []
    if listing.files:
        counts.append(f"{intents.plural(len(listing.files), 'file')} ({intents.size(total)})")
    lines = [
        intents.code(item.name) + (f" {item.note}" if item.note else "") for item in listing.folders
    ]
    lines += [
        intents.code(item.name)
        + (f": {intents.size(item.size)}" if item.size is not None else "")
        + (f" {item.note}" if item.note else "")
        for item in listing.files
    ]
    return f"{name} has {intents.listed(counts)}:\n\n{intents.bullets(lines)}" + _remarks(
        listing.notes
    )


def _remarks(notes: list[str]) -> str:
    return f"\n\nNote: {'; '.join(notes)}." if notes else ""


def overview(asked: Overview, desk: OpenRequest) -> str:
    result = desk.call("fs.list", path=asked.path)
    if result.failed:
        return failure(result, desk)
    listing = results.listing(result)
    about = next(
        (
            item.name
            for item in listing.files
            if item.name.lower() in ("readme.md", "readme", "readme.txt", "readme.rst")
        ),
        "",
    )
    if not about:
        return (
            f"{_folder(asked.path, listing)}\n\nThere is no README, so this list is all I can say"
            " about it."
        )
    prefix = "" if asked.path == "." else f"{asked.path}/"
    readme = desk.call("fs.read", path=prefix + about)
    told = failure(readme, desk) if readme.failed else results.summary(results.page(readme))
    return f"{told}\n\n{_folder(asked.path, listing)}"


def read(asked: ReadIntent, desk: OpenRequest) -> str:
    if asked.first < 0:
        return "\n\n".join(_tail(path, -asked.first, desk) for path in asked.paths)
    window: dict[str, int] = {}
    if asked.first:
        window = {"offset": asked.first, "limit": max(asked.last - asked.first + 1, 1)}
    pages = desk.calls([("fs.read", {"path": path, **window}) for path in asked.paths])
    return "\n\n".join(
        failure(each, desk) if each.failed else _shown(results.page(each), whole=bool(window))
        for each in pages
    )


def _tail(path: str, count: int, desk: OpenRequest) -> str:
    start = desk.call("fs.read", path=path, limit=1)
    if start.failed:
        return failure(start, desk)
    total = results.page(start).total
    end = desk.call("fs.read", path=path, offset=max(total - count + 1, 1), limit=count)
    return failure(end, desk) if end.failed else _shown(results.page(end), whole=True)


def _shown(page: FilePage, *, whole: bool) -> str:
    """A page in a fence, cut where it gets long."""
    if not page.body:
        return f"{intents.code(page.path)} is empty."
    lines = page.lines if whole else page.lines[:_SHOWN_LINES]
    text = intents.clip("\n".join(lines), _SHOWN_CHARACTERS)
    shown = text.count("\n") + 1
    last = page.first + shown - 1
    head = f"{intents.code(page.path)} ({results.measure(page)})"
    if page.first > 1 or last < page.total:
        head += f", lines {page.first:,} to {last:,}"
    more = ""
    if last < page.total and not whole:
        more = (
            "\n\nThere is more: say `show me lines"
            f" {last + 1}-{min(last + _SHOWN_LINES, page.total)} of {page.path}`."
        )
    return f"{head}:\n\n{intents.fence(text, page.path)}{more}"


def summarise(asked: Summarise, desk: OpenRequest) -> str:
    pages = desk.calls([("fs.read", {"path": path}) for path in asked.paths])
    return "\n\n".join(
        failure(each, desk) if each.failed else results.summary(results.page(each))
        for each in pages
    )


def pasted(asked: Pasted, desk: OpenRequest) -> str:
    """A text that came with the request, treated as a file that has been read."""
    lines, size = asked.text.count("\n") + 1, len(asked.text.encode())
    page = FilePage(
        path="your text", body=asked.text, first=1, total=lines, size=size, complete=True
    )
    return _counted(page, Count(paths=(), what=asked.what)) if asked.what else results.summary(page)


def count(asked: Count, desk: OpenRequest) -> str:
    pages = desk.calls([("fs.read", {"path": path}) for path in asked.paths])
    return "\n".join(
        failure(each, desk) if each.failed else _counted(results.page(each), asked)
        for each in pages
    )


def _counted(page: FilePage, asked: Count) -> str:
    name = intents.code(page.path)
    if asked.what == "bytes":
        return f"{name} has **{intents.plural(page.size, 'byte')}**."
    if asked.what in ("words", "characters") and page.complete:
        number = len(page.body.split()) if asked.what == "words" else len(page.body)
        return f"{name} has **{intents.plural(number, asked.what.removesuffix('s'))}**."
    if asked.what == "all" or (asked.what != "lines" and not page.complete):
        only = "" if asked.what == "all" else f" It is too long for me to count its {asked.what}."
        return f"{name} has {results.measure(page)}.{only}"
    least = "" if page.exact else "more than "
    return f"{name} has **{least}{intents.plural(page.total, 'line')}**."


def count_files(asked: CountFiles, desk: OpenRequest) -> str:
    result = desk.call("fs.list", path=asked.path, depth=_DEEPEST, limit=_MOST_ENTRIES)
    if result.failed:
        return failure(result, desk)
    listing = results.listing(result)
    name = "This folder" if asked.path == "." else intents.code(asked.path)
    files, folders = (
        intents.plural(len(listing.files), "file"),
        intents.plural(len(listing.folders), "folder"),
    )
    return f"{name} has **{files}** and {folders}, counted through all levels." + _remarks(
        listing.notes
    )


def find_files(asked: FindFiles, desk: OpenRequest) -> str:
    result = desk.call("fs.list", path=asked.path, depth=_DEEPEST, limit=_MOST_ENTRIES)
    if result.failed:
        return failure(result, desk)
    listing = results.listing(result)
    wanted = asked.name.lower() if "*" in asked.name else f"*{asked.name.lower()}*"
    found = [
        item
        for item in listing.files
        if fnmatchcase(item.name.lower(), wanted) or fnmatchcase(item.name.lower(), f"*/{wanted}")
    ]
    if not found:
        return f"No file here matches {intents.code(asked.name)}." + _remarks(listing.notes)
    lines = [
        intents.code(item.name) + (f": {intents.size(item.size)}" if item.size is not None else "")
        for item in found
    ]
    return (
        f"{intents.plural(len(found), 'file matches', 'files match')}"
        f" {intents.code(asked.name)}:\n\n{intents.bullets(lines)}" + _remarks(listing.notes)
    )


def search(asked: SearchIntent, desk: OpenRequest) -> str:
    result = search_call(desk, asked.words, path=asked.path, glob=asked.glob, regex=asked.regex)
    if result.failed:
        return failure(result, desk)
    found = results.matches(result)
    where = (
        f" in {intents.code(asked.glob or asked.path)}" if asked.glob or asked.path != "." else ""
    )
    if not found.total:
        return f"I found no {intents.code(asked.words)}{where}." + _remarks(found.notes)
    files = dict.fromkeys(match.path for match in found.matches)
    head = (
        f"I found {intents.code(asked.words)} on **{intents.plural(found.total, 'line')}** in"
        f" {intents.plural(len(files), 'file')}{where}"
    )
    if asked.only_count:
        return f"{head}." + _remarks(found.notes)
    parts = [f"{head}:"]
    for path in files:
        lines = [
            f"line {match.line}: {intents.code(match.text)}"
            for match in found.matches[:_MOST_MATCHES]
            if match.path == path
        ]
        if lines:
            parts.append(f"{intents.code(path)}\n{intents.bullets(lines)}")
    if found.total > _MOST_MATCHES:
        parts.append(
            f"… and {intents.plural(found.total - _MOST_MATCHES, 'more line', 'more lines')}."
        )
    return "\n\n".join(parts) + _remarks(found.notes)


def search_call(
    desk: OpenRequest,
    text: str,
    *,
    path: str = ".",
    glob: str = "",
    regex: bool = False,
    case: bool = False,
) -> ReadResult:
    """Search for a text as it stands, or for a pattern. Small letters match capitals too, unless
    `case` matters.
    """
    pattern = text if regex else _META.sub(r"\\\1", text)
    if not regex and re.fullmatch(r"[A-Z]{3,}", text):
        # TODO is a word of its own, not the middle of another.
        pattern = rf"\b{pattern}\b"
    arguments: dict[str, object] = {"pattern": pattern}
    if path not in ("", "."):
        arguments["path"] = path
    if glob and glob != "*":
        arguments["glob"] = glob
    if not case and text == text.lower():
        arguments["ignore_case"] = True
    return desk.call("fs.search", **arguments)


def failure(result: ReadResult, desk: OpenRequest) -> str:
    """Explain what went wrong with a call, and what would help."""
    about = f" for {intents.code(result.subject)}" if result.subject not in ("", ".") else ""
    if result.denied:
        return (
            f"My call of `{result.tool}`{about} was **denied**: {result.reason}. I did not try to"
            " get around it."
        )
    if result.missing and result.subject:
        return f"There is no {intents.code(result.subject)} here.{_similar(result.subject, desk)}"
    return f"`{result.tool}` did not work{about}: {result.reason}."


def _similar(path: str, desk: OpenRequest) -> str:
    """Names in the same folder that look like the one that is missing."""
    from difflib import get_close_matches

    folder, _, name = path.rpartition("/")
    if "fs.list" not in desk.tools:
        return ""
    result = desk.call("fs.list", path=folder or ".")
    if result.failed:
        return ""
    names = {item.name.rstrip("/").lower(): item.name for item in results.listing(result).items}
    close = [names[each] for each in get_close_matches(name.lower(), list(names), n=2, cutoff=0.65)]
    if close:
        return (
            " Did you mean"
            f" {' or '.join(intents.code(f'{folder}/{each}' if folder else each) for each in close)}?"  # noqa: E501
        )
    return " Say `what is in this folder?` to see what there is."
