"""Whether a word in a text is the name of a secret, or part of another word, of a type or of the
name of a resource.
"""

import re

# Glued to a letter these are other words: compass, monkey, patch.
_SHORT = frozenset(
    {
        "pass",
        "pw",
        "psw",
        "key",
        "auth",
        "private",
        "access",
        "license",
        "pat",
        "salt",
        "bearer",
        "tkn",
        "pwd",
        "psk",
    }
)
_GLUED_OWNER = re.compile(
    r"(?i)(?:user|db|my|root|admin|sql|ftp|smtp|mail|ssh|x|pg|redis|api|app|proxy|login|secret|access|license|private|token|store|trust|key|require|auth|client|master|server|device|site)$"
)
# A token or key of these is handed on in the open: it pages, locks, sorts or makes a request count
# once.
_OPEN = {
    "token": (
        *(
            "next",
            "prev",
            "previous",
            "page",
            "paging",
            "pagination",
            "continuation",
            "continue",
            "cursor",
            "lock",
            "sync",
            "starting",
        ),
        *("resume", "resumption", "idempotency", "request", "change"),
    ),
    "key": (
        *(
            "primary",
            "foreign",
            "partition",
            "sort",
            "range",
            "row",
            "cache",
            "object",
            "s3",
            "routing",
            "shard",
            "context",
            "dedup",
        ),
        *("dedupe", "deduplication", "idempotency", "concurrency"),
    ),
}
_PUBLIC = re.compile(r"(?i)(?:public|publishable|pub)[_\-. ]?(?:api[_\-. ]?)?(?:key[_\-. ]?)?$")
_TYPE_NAME = re.compile(r"\w::\w+::\w*$")  # AWS::IAM::AccessKey names a type
_TYPE_REACH, _ARN_REACH = 64, 120
_ARN = re.compile(r"arn:[\w:/.\-]*")


def is_name(text: str, keyword: re.Match[str]) -> bool:
    """Whether the keyword stands in `text` as a word of its own and is not said to be public."""
    start, end = keyword.span()
    before = text[max(0, start - 24) : start]
    glued = before[-1:].isalpha() and before[-1:].islower() == text[start].islower()
    if glued and keyword[0] in _SHORT and not _GLUED_OWNER.search(before):
        return False
    after = text[end : end + 1]
    if after.islower() and text[end - 1].islower():
        return False
    if keyword[0] in _SHORT and after.isupper() and text[end - 1].isupper() and after != "S":
        return False  # PATTERN, KEYBOARD
    is_open = keyword[0] in _OPEN and before.rstrip("_-. ").lower().endswith(_OPEN[keyword[0]])
    if is_open or (before[-1:] in ":-/_" and _is_in_arn(text, start)):
        return False
    if ("pub" in before or "Pub" in before or "PUB" in before) and _PUBLIC.search(before):
        return False
    return "::" not in (wide := text[max(0, start - _TYPE_REACH) : start]) or not _TYPE_NAME.search(
        wide
    )


def _is_in_arn(text: str, at: int) -> bool:
    """Whether this is part of the name of a resource: arn:aws:secretsmanager:...:secret:name."""
    arn = text.rfind("arn:", max(0, at - _ARN_REACH), at)
    return arn >= 0 and _ARN.fullmatch(text, arn, at) is not None
