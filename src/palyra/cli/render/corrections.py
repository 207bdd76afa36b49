"""Texts that people see when a model is told that its reply cannot be used."""

from typing import Final

from palyra.core.degenerate import Flaw

SAID: Final[dict[Flaw, str]] = {
    "form": "The answer does not have the requested form; asking again",
    "empty": "The model gave an empty answer; asking again",
    "loop": "The model repeats the same tool call; telling it so",
    "arguments": "The model keeps sending wrong arguments; showing it the tool's schema",
    "repetition": "The answer repeated itself and was stopped; asking again",
    "described": "The model described a tool call and made none; asking for the call",
    "stray_call": "Text followed a tool call, so it was not run; asking again",
}
