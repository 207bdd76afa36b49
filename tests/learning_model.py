"""A scripted extraction model: rough on purpose. It tries the way of a model, quoting and budgets;
it is no measure of one.
"""

import json
import re

from palyra.core.messages import ModelRequest, Text, UserMessage
from palyra.models.scripted import ScriptedModel, Turn

_ENTRY = re.compile(r"^\[entry (\d+)\] (.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?:[^.!?]|[.!?](?=\S))+[.!?]?")
_WISH = re.compile(
    r"\b(always|never|prefer|don't like|call me|going forward|from now on)\b", re.IGNORECASE
)
_FACT = re.compile(
    r"\b(my name is|i'm called|i live|i work|our \w+|we (use|decided|agreed)|remember that|keep in mind|is our|stands for|maintains"
    r"|allergic|this project uses)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(says|said|according|suppose|if i|let's say|maybe|perhaps|i think|i guess|probably|seems|this file|this branch"
    r"|kidding|scratch|right now|today|reads|is empty|should)\b|\?",
    re.IGNORECASE,
)


def reader() -> ScriptedModel:
    return ScriptedModel(_answer)


def _answer(request: ModelRequest) -> Turn:
    message = request.messages[-1]
    assert isinstance(message, UserMessage)
    text = "".join(part.text for part in message.parts if isinstance(part, Text))
    found = []
    for number, said in _ENTRY.findall(text):
        retracted = re.search(r"kidding|scratch", said, re.IGNORECASE)
        for sentence in map(str.strip, _SENTENCE.findall(said)):
            if _NOT.search(sentence) or retracted or sentence.startswith(">"):
                continue
            kind = (
                "preference" if _WISH.search(sentence) else "fact" if _FACT.search(sentence) else ""
            )
            if kind:
                found.append(
                    {
                        "kind": kind,
                        "content": sentence,
                        "entry": int(number),
                        "quote": sentence,
                        "confidence": 88,
                    }
                )
        # What nobody said is not taken, whatever the model claims.
        found.append(
            {
                "kind": "fact",
                "content": "The user is a pilot",
                "entry": int(number),
                "quote": "I fly",
                "confidence": 99,
            }
        )
    return Turn(text=json.dumps({"found": found}))
