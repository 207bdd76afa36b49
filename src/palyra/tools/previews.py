"""Previews for approvals: whole, or the beginning and end with the length of the rest.

The rule: a preview shows everything that would happen, in characters that cannot deceive; where it
must be cut, it says so.
"""

from collections.abc import Callable, Sequence
from difflib import unified_diff

from palyra.core.sentences import visible
from palyra.core.tools import Preview
from palyra.tools.files.content import ContentChange

# What goes onto the tape and to every surface; the rest is asked for.
SHOWN = 64 << 10
# What is shown to whoever asks for all of it. No tool takes arguments that come near to it.
WHOLE = 8 << 20
# difflib is quadratic: what is longer than this after the common head and tail is shown as one
# whole replacement.
_MOST_COMPARED = 3_000
_CONTEXT = 3


def of_changes(changes: Sequence[ContentChange]) -> Preview:
    """One diff over all the changes, with the counts in its title."""
    bodies, added, removed = [], 0, 0
    for change in changes:
        body, plus, minus = _file(change)
        bodies.append(body)
        added += plus
        removed += minus
    text = "\n".join(body for body in bodies if body)
    what = _title(changes[0]) if len(changes) == 1 else f"change {len(changes)} files"
    return Preview("diff", f"{what} (+{added} -{removed})", text)


def finished(
    preview: Preview, redact: Callable[[str], str], digest: str, most: int = SHOWN
) -> Preview:
    """Return a preview as it is shown: without secrets, every character visible, at most so long.

    A recorded one that was cut already keeps its length. The text is cut again before it is
    redacted only far beyond what is kept, so that no secret is cut in two where anybody sees it.
    """
    length = preview.length or len(preview.body)
    body = visible(redact(_ends(preview.body, WHOLE)))
    shown = _ends(body, most)
    cut = preview.length or len(preview.body) > WHOLE or len(shown) < len(body)
    return Preview(
        preview.kind, visible(redact(preview.title)), shown, length if cut else 0, digest
    )


def _ends(text: str, most: int) -> str:
    """Return the beginning and the end of a text that is too long, cut between lines where there
    are any.
    """
    if len(text) <= most:
        return text
    head, tail = text[: most * 3 // 4], text[-most // 4 :]
    head = head[: head.rfind("\n") + 1 or len(head)]
    tail = tail[tail.find("\n") + 1 if "\n" in tail else 0 :]
    return (
        f"{head.rstrip(chr(10))}\n… {len(text) - len(head) - len(tail):,} characters are not shown"
        f" here …\n{tail}"
    )


def _title(change: ContentChange) -> str:
    if change.after is None:
        return f"delete {change.place.shown}"
    return f"{'create' if change.before is None else 'change'} {change.place.shown}"


def _file(change: ContentChange) -> tuple[str, int, int]:
    return compared(change.place.shown, change.before.data if change.before else None, change.after)


def compared(name: str, before: bytes | None, after: bytes | None) -> tuple[str, int, int]:
    """Return the diff of one file, and how many lines came and went. None: there is no file."""
    old, new = before or b"", after or b""
    head = [
        f"--- {'/dev/null' if before is None else 'a/' + name}",
        f"+++ {'/dev/null' if after is None else 'b/' + name}",
    ]
    if b"\0" in old or b"\0" in new:
        return "\n".join([*head, f"binary: {len(old):,} bytes become {len(new):,} bytes"]), 0, 0
    if old == new:
        return "", 0, 0
    # A return before every line end of both files says nothing; where only some lines have one, it
    # must be seen.
    windows = all(_all_crlf(data) for data in (old, new) if data)
    lines = _diff(_lines(old, windows), _lines(new, windows)) or [
        "the files differ only in bytes that cannot be shown"
    ]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return "\n".join([*head, *lines]), added, removed


def _all_crlf(data: bytes) -> bool:
    return data.count(b"\r\n") == data.count(b"\n") > 0


def _lines(data: bytes, windows: bool) -> list[str]:
    """Lines fit to be shown."""
    if not data:
        return []
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    ended = not lines[-1]
    if ended:
        lines.pop()
    shown = [visible(line.removesuffix("\r") if windows else line) for line in lines]
    if not ended:
        shown[-1] += "\n\\ No newline at end of file"
    return shown


def _diff(old: list[str], new: list[str]) -> list[str]:
    head = _common(old, new)
    tail = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - head)
    if max(len(old), len(new)) - head - tail > _MOST_COMPARED:
        gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
        where = f"@@ -{head + 1},{len(gone)} +{head + 1},{len(come)} @@"
        return [where, *(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
    # Lines far from any difference cannot appear in the diff; leaving them out keeps it fast on
    # large files.
    skip = max(0, head - _CONTEXT)
    drop = max(0, tail - _CONTEXT)
    lines = list(
        unified_diff(
            old[skip : len(old) - drop], new[skip : len(new) - drop], lineterm="", n=_CONTEXT
        )
    )[2:]
    return [_shifted(line, skip) if line.startswith("@@") else line for line in lines]


def _shifted(header: str, by: int) -> str:
    """A hunk header whose lines were counted from the `by`-th on."""
    _, old, new, _ = header.split(" ")
    return f"@@ {_moved(old, by)} {_moved(new, by)} @@"


def _moved(span: str, by: int) -> str:
    start, comma, count = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}{comma}{count}"


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count
