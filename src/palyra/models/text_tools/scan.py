"""Reads the text of a reply while it streams: what is answer, what is reasoning, what is a call.

Where a call may stand: at the beginning of a line, outside code fences and block quotes. From there
on the text is held back until the reply is complete or until something else than a call follows; so
how the stream is cut into pieces changes nothing.

Text behind a call: weak models make up what the tool will say. In text mode the call counts and
that text is dropped, unless the model was shown the tool's name: then the reply may quote it.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from palyra.core.messages import Channel, Emit
from palyra.models.text_tools import region
from palyra.models.text_tools.calls import Offered, TextCall
from palyra.models.text_tools.lines import Lines, Wanted, is_ordinary
from palyra.models.text_tools.region import ACTION, UNAMBIGUOUS, Region
from palyra.models.text_tools.thoughts import FinalChannel, Thoughts

# A call longer than this is not read.
_LARGEST: Final = 1 << 20
# Held text is looked at again when it has doubled: all looks together cost no more than one.
_FIRST_LOOK: Final = 512
# So much is looked at in one go, so that going back to the beginning of a line costs little.
_SLICE: Final = 8192
# After so many places where a call might have begun, nothing in a reply is taken for one.
_MOST_TRIES: Final = 400
_DROPPED: Final = "dropped the text behind it"
_BROKEN_STOPS: Final = ("length", "content_filter", "interrupted")


class Read(Struct, frozen=True, kw_only=True):
    """Result of reading a reply.

    `changed`: it is not just the text as it came. `stray`: it holds a call with something behind
    it, which was not taken for one.
    """

    text: str
    reasoning: str
    calls: tuple[TextCall, ...] = ()
    changed: bool = False
    stray: bool = False


class Scanner:
    """One reply. `wanted` says which forms of a call count; `bare`, whether an object alone, or in
    a fence, can be one; `shown`, whether the model was shown the name of a tool.
    """

    def __init__(
        self,
        emit: Emit,
        offered: Offered,
        wanted: Wanted,
        *,
        bare: bool = True,
        shown: Callable[[str], bool] = lambda tool: True,
    ) -> None:
        self._emit = emit
        self._offered = offered
        self._wanted: Wanted = wanted if offered else "none"
        self._bare = bare and self._wanted == "every"
        self._thoughts = Thoughts()
        self._final: FinalChannel | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._lines = Lines(self._wanted, bare=self._bare)
        # From where a call may have begun, if it has.
        self._held: list[str] | None = None
        self._held_size = 0
        self._next_look = 0
        self._tries = 0
        # Whether a piece without a line break is ordinary text for sure.
        self._plain = False
        self._stray = False
        self._shown = shown
        self._answered = False
        # The calls, once something else than a call has followed them: then the rest is dropped.
        self._calls: tuple[TextCall, ...] = ()

    def hear(self, channel: Channel, piece: str) -> None:
        """A piece of the reply, as a provider emits it. What the provider itself calls reasoning is
        never searched for calls.
        """
        if channel == "text":
            if self._plain and "\n" not in piece:
                # The common piece, in the middle of a line.
                self._text.append(piece)
                self._emit("text", piece)
            else:
                self._read_text(piece)
        elif channel == "reasoning":
            self._think(piece)
        else:
            self._emit(channel, piece)

    def _read_text(self, piece: str) -> None:
        self._read_on(piece)
        self._plain = (
            self._held is None
            and not self._calls
            and self._final is None
            and self._thoughts.is_over()
            and (self._wanted == "none" or self._lines.in_line)
        )

    def _read_on(self, piece: str) -> None:
        answer = piece
        if not self._thoughts.is_over():
            thought, answer = self._thoughts.take(piece)
            if thought:
                self._think(thought)
            if self._thoughts.harmony and self._thoughts.is_over():
                self._final = FinalChannel()
        if self._final is not None:
            answer = self._final.take(answer)
        if answer:
            self._answer(answer)

    def end(self, stop: str) -> Read:
        """The reply is complete, for this reason."""
        thought, answer = self._thoughts.end()
        if thought:
            self._think(thought)
        if self._final is not None:
            answer += self._final.end()
        if answer:
            self._answer(answer)
        found: tuple[TextCall, ...] = ()
        while self._held is not None:
            found, rest = self._settle(stop)
            self._answer(rest)
        self._say(self._lines.rest())
        found = self._without_answer(self._calls or found)
        for call in found:
            self._emit("call", call.name)
        return Read(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=found,
            changed=bool(found) or self._thoughts.found or self._answered,
            stray=self._stray,
        )

    def _without_answer(self, found: tuple[TextCall, ...]) -> tuple[TextCall, ...]:
        """The calls; an answer in the form of a call becomes text, unless there is still a call."""
        said = [self._offered.answer_in(call) for call in found]
        calls = tuple(call for call, text in zip(found, said, strict=True) if text is None)
        if found and not calls:
            self._answered = True
            self._calls = ()
            self._say("\n\n".join(text for text in said if text))
        return calls

    def break_off(self) -> None:
        """The reply failed or was stopped: show what was only held back in case it grew into a
        call. What had begun as one is not shown.
        """
        thought, answer = self._thoughts.end()
        if thought:
            self._think(thought)
        held = "".join(self._held or ())
        if held and not self._is_sure(held) and not self._offered.named_in(held):
            self._say(held)
        if self._held is None:
            self._say(self._lines.rest() + answer)

    def _think(self, piece: str) -> None:
        self._reasoning.append(piece)
        self._emit("reasoning", piece)

    def _say(self, piece: str) -> None:
        if piece and not self._calls:
            self._text.append(piece)
            self._emit("text", piece)

    def _answer(self, text: str) -> None:
        for at in range(0, len(text), _SLICE):
            rest = text[at : at + _SLICE]
            while rest:
                rest = self._hold(rest) if self._held is not None else self._scan(rest)

    def _scan(self, text: str) -> str:
        """Show what is ordinary text. Return the rest, from where a call may begin."""
        if self._wanted == "none":
            self._say(text)
            return ""
        plain, rest = self._lines.take(text)
        self._say(plain)
        if rest:
            self._tries += 1
            if self._tries > _MOST_TRIES:
                self._wanted = "none"
                return rest
            self._held, self._held_size, self._next_look = [], 0, 0
        return rest

    def _hold(self, piece: str) -> str:
        """Hold text back. Return what has to be read as ordinary text after all."""
        assert self._held is not None
        if self._held_size > _LARGEST:
            return ""
        self._held.append(piece)
        self._held_size += len(piece)
        return self._look() if self._held_size >= self._next_look else ""

    def _look(self) -> str:
        assert self._held is not None
        text = "".join(self._held)
        self._held = [text]
        # People wait for what turns out to be text, so the beginning is looked at often.
        self._next_look = 0 if len(text) < _FIRST_LOOK else 2 * len(text)
        if len(text) > _LARGEST:
            return "" if self._is_sure(text) or self._offered.named_in(text) else self._ordinary()
        if is_ordinary(text, self._offered):
            return self._ordinary()
        found = region.so_far(text, self._offered, every=self._wanted == "every")
        if found.kind != "quoted":
            return ""
        if not found.calls:
            return self._ordinary()
        return self._with_text_behind(text, found)

    def _ordinary(self) -> str:
        """Read the held text as an ordinary object, fence or line, and continue behind it."""
        text = "".join(self._held or ())
        self._held = None
        self._lines.pass_over(text)
        return text

    def _with_text_behind(self, text: str, found: Region) -> str:
        """Settle calls that something else follows: the model's own, or quoted. Nothing behind
        them is a call.
        """
        self._held = None
        ours = self._wanted == "every" and not any(
            call.malformed or self._shown(call.name) for call in found.calls
        )
        self._stray = self._wanted == "every" and not ours
        self._wanted = "none"
        if not ours:
            return text
        self._calls = tuple(
            msgspec.structs.replace(call, repaired=(*call.repaired, _DROPPED))
            for call in found.calls
        )
        return ""

    def _settle(self, stop: str) -> tuple[tuple[TextCall, ...], str]:
        """The calls in what was held back, now that nothing can follow, or else the text to read
        as ordinary.
        """
        text = "".join(self._held or ())
        if is_ordinary(text, self._offered, over=True):
            return (), self._ordinary()
        if len(text) > _LARGEST:
            found = Region("unreadable", problem=f"a call may have {_LARGEST} characters")
        else:
            found = region.read(text, self._offered, every=self._wanted == "every")
        match found.kind:
            case "calls" if self._is_sure(text) or not any(one.malformed for one in found.calls):
                self._held = None
                return found.calls, ""
            case "calls" | "quoted" if found.calls:
                return (), self._with_text_behind(text, found)
            case "incomplete" | "unreadable":
                named = self._offered.named_in(text)
                if named or self._is_sure(text):
                    self._held = None
                    return (_malformed(named or "tool_call", found.problem, stop),), ""
        return (), self._ordinary()

    def _is_sure(self, text: str) -> bool:
        """Return whether text that begins like this can only have been meant as a call."""
        return self._wanted == "every" and text.lstrip().startswith((*UNAMBIGUOUS, ACTION))


def _malformed(name: str, problem: str, stop: str) -> TextCall:
    if stop in _BROKEN_STOPS:
        problem = "the reply was cut off before the call was complete"
    return TextCall(name=name, malformed=problem)
