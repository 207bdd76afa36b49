"""Facts and preferences found in what a person said, by rules over sentences: the same words always
give the same findings.

The rule: a sentence counts only as the person's own and as meant to last. What is quoted, asked,
supposed, hedged or true for the moment only is given little confidence or none; better one thing
too few than one that was never said.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from palyra.core import labels
from palyra.core.events import InputReceived, SessionCompacted
from palyra.core.labels import Label
from palyra.core.redaction import PLACEHOLDER
from palyra.core.sentences import (
    cut,
    names_something,
    normal,
    sentences,
    told_before_asking,
    topic,
)
from palyra.features.learning.model import LONGEST_CONTENT, Evidence, LearningFinding
from palyra.features.learning.own_words import own_words
from palyra.features.memory.model import Kind as MemoryKind

_LONGEST = 300
_FEWEST_WORDS = 3
_REPEATED_BPS = 800
_MOST_BPS = 9_900


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_LEAD = _re(
    r"""^(?:(?:ok(?:ay)?|also|and|but|so|well|hey|hi|hello|oh|ah|btw|by\s+the\s+way|one\s+more\s+thing|please|thanks?(?:\s+you)?
    |great|sorry|actually)[,.!:]?\s+|(?:no|yes|right|wait|correction)[,.!:]\s+)+"""
)
_REMEMBER = _re(
    r"""^(?:(?:can|could|would)\s+you\s+)?(?:please\s+)?(?:remember|note|keep\s+in\s+mind|bear\s+in\s+mind|do(?:n['’]t|\s+not)\s+forget|fyi
    |for\s+(?:the\s+record|(?:your|future)\s+(?:reference|information))|make\s+a\s+note|write\s+down)
    (?:\s+(?:that|this))?\s*[,:]?\s+(?!to\b)"""
)
_RETRACT = _re(
    r"""\b(?:scratch\s+that|forget\s+(?:that|it|what\s+i\s+(?:just\s+)?said)|never\s*mind|ignore\s+(?:that|what\s+i\s+said)|i\s+was\s+(?:wrong|joking|kidding)
    |just\s+(?:kidding|joking)|only\s+joking|i\s+take\s+that\s+back|disregard\s+that)\b"""
)
_SUPPOSED = _re(
    r"^(?:if|suppose|supposing|imagine|say|let['’]s\s+(?:say|pretend|assume)|assum(?:e|ing)|pretend|what\s+if|for\s+example|e\.g\.|hypothetically|in\s+the\s+story)\b"
)
_REPORTED = _re(
    r"""\b(?:according\s+to|(?:page|site|article|post|readme|document|docs?|file|email|mail|message|log|error|output|book|ticket|issue|comment|it|he|she|they|somebody|someone)
    \s+(?:says?|said|reads?|claims?|claimed|states?|stated|mentions?|wrote|writes|told|asks?|wants?))\b"""
)
_QUOTED = re.compile(r"[\"“”«»‘][^\"“”«»‘’]{12,}[\"“”«»’]")
_HEDGED = _re(
    r"\b(?:maybe|perhaps|probably|possibly|i\s+(?:think|guess|suppose|believe|assume)|might|not\s+sure|could\s+be|seems?|apparently|allegedly|presumably|or\s+something)\b"
)
_PASSING = _re(
    r"""\b(?:today|tonight|tomorrow|yesterday|currently|at\s+the\s+moment|right\s+now|for\s+now|for\s+the\s+moment|temporar(?:y|ily)
    |(?:this|next|last)\s+(?:time|week|month|morning|afternoon|evening|file|one|run|branch|function|test|case|message|question|task|commit)
    |here|just\s+(?:this\s+)?once|until\s+(?:then|tomorrow|monday|later)|still|again|already|almost|broken|fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|error|bug
    |wrong|done|ready|finished|empty|missing|stuck|in\s+progress|waiting)\b"""
)
_CHANGED = _re(r"\b(?:is|are)\s+now\b|\bha(?:s|ve)\s+moved\s+to\b|\bchanged\s+to\b")

_LASTING = _re(
    r"""\b(?:from\s+now\s+on|in\s+(?:the\s+)?future|going\s+forward|as\s+a\s+rule|in\s+general|generally|whenever|every\s+time|each\s+time|by\s+default|always|never|at\s+all\s+times)\b"""
)
_STRONG = _re(
    r"\b(?:from\s+now\s+on|in\s+(?:the\s+)?future|going\s+forward|as\s+a\s+rule|every\s+time|whenever|at\s+all\s+times)\b"
)
_PREFER = _re(
    r"""\bi\s+(?:really\s+|strongly\s+|much\s+|generally\s+|always\s+|usually\s+)*(?:prefer|hate|dislike|can(?:['’]t|not)\s+stand|do(?:n['’]t|\s+not)\s+(?:like|want)
    |like\s+(?:it\s+when|my|your|to\s+(?:have|see|get))|want\s+(?:you\s+to\s+(?:always|never)|all|every|my|your))\b"""
)
# A habit: I never fly on Sundays.
_HABIT = _re(
    r"^i\s+(?:always|never|only|do\s+not|don['’]t)\s+(?!(?:said|had|heard|seen|knew|know|thought|think|been|got|did|was|saw|mind|care|understand|remember|get|believe|see|feel|mean|have\s+to|need|want|like)\b)[a-z]+\s+\w"
)
_WOULD = _re(r"\bi(?:['’]d|\s+would)\s+(?:like|prefer|love|rather)\b")
_CALL_ME = _re(r"^(?:please\s+)?(?:call|address)\s+me\s+(?:as\s+)?\w")
_ORDER = _re(
    r"""^(?:please\s+)?(?:(?:always|never|do\s+not|don['’]t|only)\s+(?:ever\s+)?)?(?:answer|reply|respond|write|use|keep|indent|format|name|add|include|ask|speak|talk
    |explain|show|avoid|stick|put|commit|push|test|run|round|spell|translate|sign|start|begin|end|give|sort|leave|tell|check|say|summari[sz]e|quote|cite|wrap|document|prefix|tag|order)\b"""
)
_NO_MORE = _re(
    r"^(?:please\s+)?no\s+(?:more\s+)?\w+(?:\s+\w+){0,4}(?:\s+please|\s+in\s+\w+.*)?[.!]?$"
)

_I_AM = _re(
    r"""^(?:my\s+(?:(?:full|first|last|nick)\s*)?name\s+is|i(?:['’]m|\s+am)\s+(?:called|named|based\s+in|allergic|vegetarian|vegan|left-handed|colou?r-?blind|married\s+to|an?\s+\w+(?:\s+\w+)?\s+(?:at|in|for|by))
    |i\s+(?:live|work|study|was\s+born|grew\s+up|come|teach|speak)\s+(?:in|at|for|as|on|from|with|near)?|i\s+(?:speak|have\s+(?:a|an|two|three|four|\d+)\s+(?:child|kid|son|daughter|dog|cat|brother|sister)\w*))\b"""
)
_MINE = _re(
    r"""^my\s+(?:[\w-]+(?:['’]s)?\s+){0,3}?(?:name|job|role|title|wife|husband|partner|son|daughter|child|kids?|dog|cat|mother|father|brother|sister|birthday|email|e-mail|address|phone|number
    |time\s*zone|timezone|manager|boss|team|company|employer|city|country|language|languages|editor|shell|laptop|desktop|machine|keyboard|car|doctor|dentist|bank|school|university|hobby|instrument
    |favou?rite(?:\s+\w+)?|github|handle|username|office|blog|website|domain|blood\s+type|size|diet|birth\s+year|native\s+language|assistant|accountant|landlord|gym)\s+(?:is|are|lives?|works?)\b"""
)
_OURS = _re(
    r"""^(?:(?:in|at|on|for)\s+(?:our|my|the|this)\s+\w+(?:\s+\w+)?,?\s+)?(?:our|my|the|this)\s+(?:[\w./`-]+\s+){1,6}?(?:is|are|lives?|lies|runs?|uses?|costs?|belongs?|listens?|ha(?:s|ve)\s+moved|stays?|sits?|expires?|starts?|begins?|ends?|goes|ships?|deploys?|takes\s+place|happens?)\b"""
)
_CALLED = _re(r"^(?:my|our)\b.{1,60}?\b(?:is|are)\s+(?:called|named)\s+\w")
# What somebody reckoned or read off, to be used now.
_RECKONED = _re(
    r"^(?:the|our|my)\s+(?:\w+\s+){0,2}?(?:total|sum|tax|result|answer|output|value|count|average|difference|score|rest|remainder)\b"
)
_FOR_EACH_TIME = _re(
    r"^(?:whenever|every\s+time|each\s+time)\s+(?:you|i|we)\b[^,]{2,80},\s+\w|,\s*(?:every|each)\s+time[.!]?$"
)
# A rule begins with a verb; what begins with one of these tells something instead.
_RULE = _re(
    r"""^(?:please\s+)?(?:(?:in\s+general|generally|by\s+default|as\s+a\s+rule|from\s+now\s+on|going\s+forward|in\s+(?:the\s+)?future),?\s+(?:please\s+)?
    (?:always\s+|never\s+|do\s+not\s+|don['’]t\s+)?|(?:always|never)\s+)
    (?!(?:i|we|you|he|she|it|they|the|this|that|there|these|those|my|our|your|a|an|mind|again|been|had|happy|heard|seen|knew|thought|said|in)\b)[a-z]+\s+\w"""
)
_WE = _re(
    r"""^(?:(?:in|at|on|for)\s+(?:our|my|the|this)\s+\w+(?:\s+\w+)?,?\s+)?(?:we|our\s+(?:team|company|project|repo(?:sitory)?|product|code(?:base)?|group)|this\s+(?:project|repo(?:sitory)?|codebase))\s+(?:always\s+|mostly\s+|only\s+)?
    (?:use|uses|run|runs|deploy|deploys|host|hosts|store|stores|ship|ships|release|releases|work|works|target|targets|support|supports|keep|keeps|require|requires|build|builds|meet|meets|write|writes|have|has|follow|follows)\b"""
)
_DECIDED = _re(
    r"\b(?:(?:we|i)(?:['’]ve|\s+have)?\s+(?:decided|agreed|settled)|we(?:['’]ve|\s+have)?\s+(?:chosen|chose|picked|voted))\b|^(?:it\s+(?:was|is)\s+decided|decision\s*:)"
)
# "Ann is our lead": of a person; "Dance is my passion" is about nobody.
_PERSON = (
    r"(?:[\w-]+\s+){0,3}(?:wife|husband|partner|son|daughter|child|mother|father|brother|sister|aunt|uncle|cousin|friend|neighbou?r|boss|manager|lead|head|colleague|assistant"
    r"|accountant|lawyer|doctor|dentist|teacher|landlord|contact|client|customer|supplier|vendor|bank|provider|host|hosting|owner|admin\w*|engineer|developer|designer|tester|reviewer"
    r"|maintainer|director|ceo|cto|cfo|founder|intern|trainer|coach|nanny|cat|dog|company)\b"
)
_SOMEBODY = re.compile(
    rf"^[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)?\s+(?:is\s+our|is\s+my\s+{_PERSON}|leads|owns|handles|maintains|stands\s+for|reviews|takes\s+care|signs|approves|manages"
    r"|(is\s+(?:my|the)|works|lives|prefers|likes|runs|belongs|joined|writes|decides|pays|knows))\b"
)
_NOT_SOMEBODY = frozenset(
    {
        "it",
        "this",
        "that",
        "there",
        "here",
        "he",
        "she",
        "they",
        "we",
        "you",
        "i",
        "what",
        "who",
        "the",
        "our",
        "my",
        "please",
        "everything",
        "nothing",
    }
)
_ASKING_TO_DO = _re(
    r"^(?:please\s+)?(?:can|could|would|will|do|does|did|is|are|what|when|where|why|how|who|which|shall|should)\b.*\?$"
)
# What people feel, cheer and say as a saying holds for nobody.
_FEELING = _re(
    r"""\b(?:is|are|am|was|were|feels?|['’]m|['’]re|['’]s)\s+(?:so|very|really|too|super|such|quite|totally|just|truly|all\s+about|important)\b
    |\b(?:excited|happy|proud|glad|grateful|thankful|thrilled|amazing|awesome|wonderful|beautiful|gorgeous|fantastic|incredible|inspiring|passion\w*|dreams?|therapy)\b"""
)
# What is said to the agent about nobody: a saying, a thing that was just shown.
_OF_NOBODY = _re(
    r"^(?:you|your|yourself|it|this|that|these|those|there|here|he|she|they|life|nobody|nothing|everybody|everyone|everything|people|one|just|to|how|what|why|when|where|who|if)\b"
)
_OWN = _re(r"^(?:i|i['’]m|i['’]ve|my|mine|we|we['’]re|we['’]ve|our|ours|me)\b")
_FOR_ONE = _re(
    r"\b(?:in|for|to|with|on)\s+(?:this|that|the\s+(?:next|last|first|second|new))\s+\w+"
)


class SaidInput(NamedTuple):
    """One input of a session, with where it stands. `by_program`: nobody typed it, so it is a
    suggestion at most.
    """

    session_id: str
    seq: int
    position: int
    event: InputReceived
    by_program: bool = False


class _Claim(NamedTuple):
    kind: str
    memory_kind: MemoryKind
    bps: int


def of_inputs(inputs: Sequence[SaidInput]) -> list[LearningFinding]:
    """Return what the speaker said about themselves and their work, the newest version of each."""
    findings: list[LearningFinding] = []
    from_message: list[LearningFinding] = []
    for said in inputs:
        told = sentences(own_words(said.event.text))
        if told and _RETRACT.search(told[0]):
            # It is about what was said before this message.
            gone = {id(each) for each in from_message}
            findings = [each for each in findings if id(each) not in gone]
        from_message = _of_message(said, told)
        findings += from_message
    return _newest(_repeated(findings))


def _of_message(said: SaidInput, told: Sequence[str]) -> list[LearningFinding]:
    found: list[LearningFinding] = []
    for sentence in told:
        if _RETRACT.search(sentence):
            found.clear()
            continue
        finding = of_sentence(sentence, said.event.label)
        if finding is not None:
            evidence = Evidence(said.session_id, said.seq, cut(sentence, _LONGEST), said.position)
            found.append(
                msgspec.structs.replace(_with(finding, evidence), risk="medium")
                if said.by_program
                else _with(finding, evidence)
            )
    return found


def of_summary(
    session_id: str, seq: int, position: int, event: SessionCompacted
) -> list[LearningFinding]:
    """Return what a summary kept as required, decided or known, where the words themselves were not
    read.
    """
    found = []
    for point in event.points:
        if point.kind not in ("constraint", "decision", "fact"):
            continue
        finding = of_sentence(point.text, event.label)
        if finding is not None:
            found.append(
                _with(
                    finding,
                    Evidence(
                        session_id,
                        point.seq if point.seq > 0 else seq,
                        cut(point.text, _LONGEST),
                        position,
                    ),
                )
            )
    return _newest(found)


def of_sentence(sentence: str, label: Label) -> LearningFinding | None:
    """Return what one sentence of a person claims to hold from now on, or nothing."""
    plain = _LEAD.sub("", told_before_asking(sentence)).strip()
    if PLACEHOLDER.search(plain) or len(plain) > _LONGEST or plain.endswith(("?", ":")):
        return None
    if (
        _SUPPOSED.search(plain)
        or _QUOTED.search(plain)
        or _REPORTED.search(plain)
        or _ASKING_TO_DO.search(plain)
    ):
        return None
    asked = _REMEMBER.match(plain)
    core = plain[asked.end() :] if asked else plain
    if len(core.split()) < _FEWEST_WORDS and not _I_AM.search(core):
        return None
    claim = _claim(core)
    if claim is None:
        if not asked:
            return None
        told = _OWN.match(core) or names_something(core) or _named(core)
        claim = _Claim("fact", "fact", 8_600 if told and not _OF_NOBODY.match(core) else 5_900)
    bps = _weighed(claim, core, asked=asked is not None)
    risky = labels.commands(core, by_a_person=True)
    return LearningFinding(
        kind="preference" if claim.kind == "preference" else "fact",
        content=_content(core),
        confidence_bps=bps,
        evidence=(),
        risk="high" if risky or label.integrity == "untrusted" else "low",
        label=label,
        memory_kind=claim.memory_kind,
        about=about(core),
        addressed=_is_addressed(core, asked=asked is not None),
    )


def is_addressed(text: str, quote: str) -> bool:
    """Return whether the sentence of a message that holds `quote` tells the agent to keep it."""
    wanted = normal(quote)
    for sentence in sentences(own_words(text)):
        plain = _LEAD.sub("", sentence).strip()
        asked = _REMEMBER.match(plain)
        if wanted in normal(sentence) or normal(sentence) in wanted:
            return _is_addressed(plain[asked.end() :] if asked else plain, asked=asked is not None)
    return False


def _is_addressed(core: str, *, asked: bool) -> bool:
    """Return whether this was said to the agent, to be kept: remember that …, from now on …"""
    if _OF_NOBODY.match(core) and not _STRONG.search(core):
        return False
    return asked or (
        _STRONG.search(core) is not None
        and (_ORDER.search(_STRONG.sub("", core).strip(" ,")) or _RULE.search(core)) is not None
    )


def _claim(core: str) -> _Claim | None:
    """Return the kind of a sentence's claim and its confidence, before anything that weakens it."""
    if _WOULD.search(core) and not _LASTING.search(core):
        return None
    if _CALL_ME.search(core):
        return _Claim("preference", "preference", 9_000)
    if _PREFER.search(core):
        return _Claim("preference", "preference", 9_200 if _STRONG.search(core) else 8_700)
    if _DECIDED.search(core):
        return _Claim("fact", "decision", 8_300)
    order = _ORDER.search(_STRONG.sub("", core).strip(" ,")) or _NO_MORE.search(core)
    if order and _LASTING.search(core):
        return _Claim("preference", "preference", 9_200 if _STRONG.search(core) else 8_800)
    if _RULE.search(core):
        return _Claim("preference", "preference", 9_000 if _STRONG.search(core) else 8_600)
    if order:
        return _Claim("preference", "preference", 6_600)
    if _HABIT.search(core):
        return _Claim("preference", "preference", 8_300)
    if _FOR_EACH_TIME.search(core):
        return _Claim("preference", "preference", 8_600)
    if _CALLED.search(core):
        return _Claim("fact", "fact", 9_000)
    if _I_AM.search(core):
        return _Claim("fact", "fact", 9_200)
    if _MINE.search(core):
        return _Claim("fact", "fact", 9_100)
    if _WE.search(core):
        return _Claim("fact", "fact", 8_300)
    if _OURS.search(core):
        own = core[:3].casefold() in ("our", "my ")
        strong = names_something(core) or _named(core)
        return _Claim(
            "fact", "fact", (8_400 if own else 7_800) if strong else (7_600 if own else 6_500)
        )
    somebody = _SOMEBODY.search(core)
    if somebody and core.split()[0].casefold() not in _NOT_SOMEBODY:
        # A word that begins a sentence need not be a name: "Hard work pays".
        sure = not somebody[1] or _named(core) or names_something(core)
        return _Claim("fact", "fact", 7_900 if sure else 7_000)
    return None


def _weighed(claim: _Claim, core: str, *, asked: bool) -> int:
    bps = claim.bps
    if asked:
        # A preference that somebody asks to remember could hardly be said more clearly.
        bps = (
            max(bps, 9_600 if claim.kind == "preference" else 9_500)
            if claim.bps >= 8_000
            else bps + 1_500
        )
    if _HEDGED.search(core) or (claim.kind == "fact" and _FEELING.search(core)):
        bps -= 2_500
    if core.endswith("!") and not (asked and _OWN.match(core)):
        bps -= 1_500
    if _RECKONED.search(core) or (_PASSING.search(core) and not _CHANGED.search(core)):
        bps -= 2_500
    if claim.kind == "preference" and _FOR_ONE.search(core):
        bps -= 2_500
    return max(0, min(_MOST_BPS, bps))


_PAIR = _re(r"\bprefer\s+(.+?)\s+(?:over|to|instead\s+of|rather\s+than)\s+(.+)$")
_LANGUAGE = _re(r"\b(?:answer|reply|respond|write|speak|talk)\b.*?\bin\s+(\w+)\b")
_IN_LANGUAGES = frozenset(
    (
        "chinese",
        "czech",
        "dutch",
        "english",
        "french",
        "german",
        "italian",
        "japanese",
        "polish",
        "portuguese",
        "russian",
        "spanish",
    )
)
_POLARITY = _re(r"\b(?:always|never|do\s+not|don['’]t|please|ever|only|no|not|without|avoid)\b")
_LIVES = _re(r"^i\s+(?:now\s+)?(live|work|study|teach)\s+(in|at|for|as|near)\b")
_USES_FOR = _re(
    r"^(?:we|our\s+\w+|this\s+\w+)\s+(?:always\s+)?(use|uses|run|runs|deploy|deploys|host|hosts|store|stores)\s+(.+?)\s+(for|as|in|to|on|with)\s+(.+)$"
)
_IS = _re(
    r"^(?:our|my|the|this)\s+(.{1,80}?)\s+(?:is|are|lives?|runs?|uses?|costs?|listens?|ha(?:s|ve)\s+moved|starts?|begins?|ends?|happens?)\b(?:\s+now)?"
)


_MOST_READ = 2_000  # the beginning of a text says what it is about


def about(text: str) -> str:
    """Return what a sentence is about, without the value it gives. Two that are about the same and
    are not the same are in conflict.
    """
    plain = _LEAD.sub("", text.strip()[:_MOST_READ])
    asked = _REMEMBER.match(plain)
    plain = (plain[asked.end() :] if asked else plain).rstrip(".!")
    pair = _PAIR.search(plain)
    if pair:
        return "prefer " + " or ".join(sorted((normal(pair[1]), normal(pair[2]))))
    language = _LANGUAGE.search(plain)
    if language and language[1].casefold() in _IN_LANGUAGES:
        return "language of answers"
    if _CALL_ME.search(plain):
        return "call me"
    lives = _LIVES.search(plain)
    if lives:
        return f"i {lives[1].casefold()} {lives[2].casefold()}"
    uses = _USES_FOR.search(plain)
    if uses:
        return f"we use {normal(uses[3])} {normal(uses[4])}"
    says = _IS.match(plain)
    if says:
        return f"{normal(says[1])} is"
    if _ORDER.search(plain) or _LASTING.search(plain):
        return "rule " + normal(_POLARITY.sub(" ", _STRONG.sub(" ", plain)))
    return topic(plain, free=True)


def _named(core: str) -> bool:
    """Return whether something in it has a name: a capital letter that does not begin the
    sentence.
    """
    return any(word[:1].isupper() and word not in ("I", "I'm") for word in core.split()[1:])


def _content(core: str) -> str:
    text = cut(core.strip(), LONGEST_CONTENT)
    return text[:1].upper() + text[1:]


def _with(finding: LearningFinding, evidence: Evidence) -> LearningFinding:
    return msgspec.structs.replace(finding, evidence=(evidence,))


def _repeated(findings: Iterable[LearningFinding]) -> list[LearningFinding]:
    """Merge findings of the same content; what was said again is surer, and has more evidence."""
    found: dict[tuple[str, str], LearningFinding] = {}
    for each in findings:
        key = (each.kind, normal(each.content))
        known = found.pop(key, None)
        if known is not None:
            each = msgspec.structs.replace(
                each,
                evidence=(*known.evidence, *each.evidence),
                confidence_bps=min(
                    _MOST_BPS, max(known.confidence_bps, each.confidence_bps) + _REPEATED_BPS
                ),
            )
        found[key] = each
    return list(found.values())


def _newest(findings: Sequence[LearningFinding]) -> list[LearningFinding]:
    """Keep the last one of several about the same."""
    last = {(each.kind, each.about): each for each in findings}
    return [each for each in findings if last[each.kind, each.about] is each]
