"""Does a text look as if it wants to tell the agent what to do? Then a person looks at it before it
is remembered as true.

The rule: better one look too many. What is held back is not lost, and nothing here decides anything
else.
"""

import re

# Nobody who states a fact writes like this, whoever it is.
_ALWAYS = re.compile(
    r"""
    \b(ignore|disregard|forget|override|bypass)\b.{0,40}\b(instructions?|rules?|polic(y|ies)|prompts?|previous|prior|above|guardrails?)\b
    | \bsystem\s+prompt\b | \bnew\s+instructions?\b | \bdeveloper\s+mode\b | \bjailbreak
    | <\|?/?(system|assistant|user|im_start|im_end|tool|instructions?)\b | ^\s*\#*\s*(system|assistant|developer)\s*:
    | \b(do\s+not|don't|never)\s+(tell|inform|mention\s+(this\s+)?to|ask|alert|warn)\s+(the\s+)?(user|owner|human|anyone|anybody)\b
    | \bwithout\s+(asking|telling|informing|approval|confirmation|permission)\b
    | \b(act|behave|respond|pretend)\s+as\s+(if|though|an?|the)\b.{0,40}\b(assistant|ai|model|admin|root|no\s+restrictions)\b
    | \byou\s+are\s+now\b | \bfrom\s+now\s+on,?\s+you\b
    | (curl|wget)\s+[^|\n]{0,200}\|\s*(ba|z|da)?sh\b | \brm\s+-rf\b | \bbase64\s+(-d|--decode)\b
    """,  # noqa: E501
    re.IGNORECASE | re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# An agent that writes such things down is writing orders to itself; a person may put a preference
# like this.
_FROM_A_MODEL = re.compile(
    r"""
    \b(you|the\s+(assistant|agent|ai|model))\s+(must|should|shall|will|need\s+to|have\s+to|are\s+to)\b
    | \b(always|never)\s+(run|call|execute|send|forward|open|visit|fetch|download|upload|approve|allow|include|add)\b
    | ^\s*(please\s+)?(run|execute|send|forward|upload|download|visit|click|open|fetch|delete|install|email|post|transfer|reveal|
        write|include|append|add|insert|encode|decode|translate|explain|create|provide|respond|reply|answer|tell|list|describe|give|
        identify|recommend|generate|modify|set|reverse|substitute|change|incorporate|introduce|advise|share|suggest|inject|
        conduct|utilize|use|discuss|convert|replace)\b
    | \b(shell\.run|http\.fetch|fs\.(write|patch)|tool\s+call|function\s+call|api\s+key|password)\b
    """,  # noqa: E501
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)


def commands(text: str, *, by_a_person: bool) -> str:
    """The words that look like an instruction to the agent, or nothing. A person's own words get
    the benefit of the doubt.
    """
    found = _ALWAYS.search(text) or (None if by_a_person else _FROM_A_MODEL.search(text))
    return " ".join(found.group(0).split())[:80] if found else ""
