"""The part of a message that its sender says in their own words: without what was quoted, pasted,
forwarded, handed over to be worked on, or made up.

The rule: better a sentence too few than one that somebody else wrote. What cannot be told apart is
nobody's word.
"""

import re

from palyra.core.references import unfenced

# Of a long message the beginning and the end are the person's own words; what lies between was
# mostly pasted.
_LONG_MESSAGE = 2_000
_OWN_PART = 600
_LONGEST_LINE = 400
_FEWEST_SPEAKERS = 2


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_QUOTED_LINE = (">", "|", "+ ", "- [", "diff ", "@@", "    ", "\t")
# One of these lines, and everything below was sent by somebody else.
_FORWARDED = _re(
    r"""^\W{0,12}(?:begin\s+forwarded\s+message|forwarded\s+message|original\s+message
    |weitergeleitete\s+nachricht|ursprüngliche\s+nachricht|message\s+transféré)\b
    |^(?:on|am|le|el|il)\s.{4,100}\s(?:wrote|schrieb|a\s+écrit|escribió|ha\s+scritto)\s*:\s*$"""
)
_HEADER = _re(
    r"^\W{0,3}(?:from|to|cc|bcc|subject|sent|date|reply-to|von|an|betreff|datum|de|para|asunto|objet)\s*:\s*\S"
)
_FEWEST_HEADERS = 2
# A line of its own that addresses somebody, as letters begin; the agent is not "Dear Sir".
_SALUTATION = _re(
    r"""^(?:dear|hi|hello|hey|good\s+(?:morning|afternoon|evening)|greetings|to\s+whom\s+it\s+may\s+concern)
    (?:\s+[\w.'’\-]+){0,5}\s*[,!:.]?\s*$"""
)
_SIGN_OFF = _re(
    r"""^(?:(?:with\s+)?(?:best|kind|warm(?:est)?|many)?\s*(?:regards|wishes|thanks)|best|cheers|sincerely(?:\s+yours)?|yours(?:\s+\w+)?
    |thanks(?:\s+again)?|thank\s+you|love|respectfully|the\s+[\w ]{2,30}\s+team)\s*[,.!]?\s*$"""
)
# "Translate this: …", "Here is her mail: …": what follows the colon is handed over.
_HANDED_OVER = _re(
    r"""\b(?:translat\w+|summari[sz]\w+|rewrit\w+|re-?phras\w+|proof-?read\w*|paraphras\w+|shorten|polish|correct|fix\s+the\s+(?:grammar|wording|spelling)
    |improve|edit|review|classify|analy[sz]e|extract|reply\s+to|respond\s+to|answer\s+(?:this|the|her|his|their)|what\s+does|explain|repeat|parse|convert|count
    |(?:e-?)?mails?|messages?|texts?|notes?|articles?|posts?|stor(?:y|ies)|paragraphs?|drafts?|letters?|pages?|docs?|documents?|logs?|transcripts?|chats?|conversations?
    |quot(?:e|es|ed|ation)|poems?|songs?|lyrics|reviews?|comments?|tickets?|issues?|readme|outputs?|sms|tweets?|following|below|pasted?|says|said|wrote|writes|told\s+me|sent\s+me|reads?)
    \b[^:\n]{0,60}:"""
)
# Words to be written for others: what follows says what is to stand in them.
_TO_WRITE = _re(
    r"""\b(?:write|continue|tell|make\s+up|invent|draft|compose|create|generate|imagine|finish|give\s+me)\s+(?:me\s+|us\s+|up\s+)?(?:an?|the|this|some|my|another|one)\s+
    (?:[\w-]+\s+){0,4}?(?:stor(?:y|ies)|poem|haiku|limerick|song|dialogue|scene|novel|chapter|script|sketch|play|character|persona|monologue|speech|toast|lyrics|joke|fairy\s*tale
    |letter|(?:e-?)?mail|message|post|tweet|ad|advert\w*|bio|profile|resume|cv|cover\s+letter|review|quiz|example|sample|template|slogan|caption|reply|announcement)s?\b"""
)
# The whole message is about something made up.
_MADE_UP = _re(
    r"""\b(?:role-?play|pretend|act\s+as|you\s+are\s+(?:now\s+)?(?:a|an|the)\s|play\s+the\s+(?:part|role)|in\s+(?:the|this|my|our)\s+(?:story|novel|game|book|film|movie|play|scene|dream)
    |(?:my|the|our)\s+(?:character|protagonist|hero|villain|narrator)|once\s+upon\s+a\s+time|fictional|hypothetical\w*|for\s+the\s+sake\s+of\s+argument|dungeon\s*master)\b"""
)
_SPEAKER = re.compile(
    r"^\s*(?:\[?\(?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[AaPp][Mm])?\)?\]?\s*)?"
    r"(?:<[\w .'’\-]{1,30}>|[A-Z][\w .'’\-]{0,24}:)\s+\S"
)
_STAMPED = re.compile(
    r"^\s*[\[(]?(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}[:.]\d\d(?:[:.]\d\d)?)\b"
)
# A note to the agent may begin with a word and a colon, too.
_OWN_LEAD = _re(r"^\s*(?:remember|note|fyi|ps|p\.s\.|ok|also|correction|important|reminder)\s*:")
_PROGRAM = re.compile(r"^\s*(?:[{}\[\]<]|\"[\w.\-]+\"\s*:|[\w.\-]+\s*=\s*\S|[$#%]\s|//|/\*|\*\s@)")


def own_words(text: str) -> str:
    """Return what is left of `text`, line by line; nothing of a message about something made up."""
    if _MADE_UP.search(text[:_LONG_MESSAGE]):
        return ""
    plain = unfenced(text)
    to_write = _TO_WRITE.search(plain)
    lines = (plain[: to_write.start()] if to_write else plain).splitlines()
    own: list[str] = []
    signed = _last_signed(lines)
    for at, line in enumerate(lines):
        is_letter = at < signed and _SALUTATION.match(line.strip()) is not None
        if _FORWARDED.search(line) or is_letter or _are_headers(lines, at):
            break
        if (over := _HANDED_OVER.search(line)) is not None and _OWN_LEAD.match(line) is None:
            own.append(line[: over.start()])
            # The rest of the line, and what follows a line that ends so.
            if not line[over.end() :].strip() or at + 1 < len(lines):
                break
            continue
        own.append(line)
    own = [line for line in _without_talk(own) if not _is_foreign(line)]
    return _ends("\n".join(own))


def _is_foreign(line: str) -> bool:
    return (
        line.lstrip(" ").startswith(_QUOTED_LINE[:6])
        or line.startswith(_QUOTED_LINE[6:])
        or len(line) > _LONG_MESSAGE
        or _PROGRAM.match(line) is not None
    )


def _last_signed(lines: list[str]) -> int:
    """Return where the last letter is signed, or -1. It begins where somebody is addressed."""
    for at in range(len(lines) - 1, -1, -1):
        if len(lines[at]) < _LONGEST_LINE and _SIGN_OFF.match(lines[at].strip()):
            return at
    return -1


def _are_headers(lines: list[str], at: int) -> bool:
    near = lines[at : at + 6]
    return (
        _HEADER.match(lines[at][:_LONGEST_LINE]) is not None
        and sum(_HEADER.match(line[:_LONGEST_LINE]) is not None for line in near) >= _FEWEST_HEADERS
    )


def _without_talk(lines: list[str]) -> list[str]:
    """Remove the lines of a transcript: several that name their speaker or the time."""
    spoken = [
        at
        for at, line in enumerate(lines)
        if _OWN_LEAD.match(line) is None and (_SPEAKER.match(line) or _STAMPED.match(line))
    ]
    those = set(spoken)
    return (
        [line for at, line in enumerate(lines) if at not in those]
        if len(spoken) >= _FEWEST_SPEAKERS
        else lines
    )


def _ends(own: str) -> str:
    if len(own) <= _LONG_MESSAGE:
        return own
    head = own[:_OWN_PART].rpartition("\n")[0] or own[:_OWN_PART]
    return f"{head}\n{own[-_OWN_PART:].partition(chr(10))[2]}"
