"""Slack's own way to write: into it for what we say, out of it for what people say.

The rule: what stands in code stays as it is, and nothing that was only quoted becomes a ping.
"""

import re

from palyra.features.channels.message_splitter import LengthLimit, split

# What Slack takes: in a message's text, and in one section.
MOST_TEXT = 40_000
SECTION = LengthLimit(3_000, "utf16")
# It takes 12,000 in Markdown, and a little more in all blocks together; buttons and what it makes
# of tables need some of that.
MARKDOWN = LengthLimit(10_000, "utf16")

_CODE = re.compile(
    r"(^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}\2[`~]*[ \t]*$|\Z)|`[^`\n]+`)",
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^\n]*", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]*+)\]\((https?://[^\s)]++)\)")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.{1,600}?)(?<=\S)\1")
_ITALIC = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])")
_STRUCK = re.compile(r"~~(?=\S)(.{1,600}?)(?<=\S)~~")
_BULLET = re.compile(r"^([ \t]*)[*+-][ \t]+", re.MULTILINE)
_EVERYBODY = re.compile(r"<!(?=everyone|here|channel|subteam)", re.IGNORECASE)
_NAMED = re.compile(r"(?<![\w@<!])@(everyone|here|channel)(?!\w)")
_TOKEN = re.compile(r"<([^<>\n]+)>")
EVERYONE = re.compile(r"<!(everyone|here|channel)(?:\|[^>]*)?>")


def pinging(text: str, *, everyone: bool) -> str:
    """The text such that it pings everybody, if it says so and may; otherwise such that it
    cannot.
    """
    return _NAMED.sub(r"<!\1>", text) if everyone else _EVERYBODY.sub("<\u200b!", text)


def written(markdown: str, *, everyone: bool = False) -> str:
    """Markdown in Slack's own marks, for places where Slack does not read Markdown."""
    parts = _CODE.split(markdown)
    # Each piece of code comes with the marks it was found by: text, code, marks, text, …
    made = []
    for at in range(0, len(parts), 3):
        made.append(_prose(parts[at], everyone=everyone))
        if at + 1 < len(parts):
            made.append(_code(parts[at + 1]))
    return "".join(made)


def _code(code: str) -> str:
    escaped = _escaped(code)
    # A fence has no language there, and only one length.
    return escaped if code.startswith("`") and "\n" not in code else _FENCE.sub("```", escaped)


def _prose(text: str, *, everyone: bool) -> str:
    text = _escaped(text.replace("\0", ""))
    text = _LINK.sub(lambda found: f"<{found[2]}|{found[1].replace('|', '/') or found[2]}>", text)
    # One star is bold there, and was slanted here: bold waits until the slanted is done.
    text = _HEADING.sub(lambda found: f"\0{found[1].replace('**', '')}\0", text)
    text = _BULLET.sub(r"\1• ", text)
    text = _BOLD.sub("\0\\2\0", text)
    text = _ITALIC.sub(r"_\1_", text).replace("\0", "*")
    text = _STRUCK.sub(r"~\1~", text)
    return _NAMED.sub(r"<!\1>", text) if everyone else text


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sections(markdown: str, *, everyone: bool = False) -> list[str]:
    """The same as pieces that each fit a section."""
    return split(written(markdown, everyone=everyone), SECTION)


def read(text: str) -> str:
    """What somebody wrote, as they see it. Mentions of people keep their form, which is the only
    sure one.
    """
    text = _TOKEN.sub(_meant, text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _meant(found: re.Match[str]) -> str:
    what, _, label = found[1].partition("|")
    if what.startswith("@"):
        return f"<{what}>"
    if what.startswith("#"):
        return f"#{label or what[1:]}"
    if what.startswith("!"):
        return label if label.startswith("@") else f"@{label or what[1:].partition('^')[0]}"
    if what.startswith("mailto:"):
        return label or what[7:]
    return what if not label or label == what or f"//{label}" in what else f"{label} ({what})"
