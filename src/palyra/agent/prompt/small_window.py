"""Fit a prompt into a small window: fewer and shorter tools, shorter notes, fewer memories, cut
results.

The rule: what is sent fits, and the user's words of the current run are sent whole. Where that
cannot be, the request says which window it needs and nothing is sent. All of it follows from the
tape and from what is on offer, so that the same tape gives the same prompt; a session's tools
only grow as long as there is room for them, so that a prompt's beginning stays the same.
"""

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palyra.agent.prompt.run_context import RecalledMemory, RunContext, render
from palyra.agent.prompt.small_offer import OfferedTools
from palyra.agent.prompt.sources import Index, Project
from palyra.agent.prompt.token_sizes import Measure
from palyra.core.events import InputReceived, ToolFinished
from palyra.core.run_progress import CallProgress, ModelTurn, Summary, Turn, UserTurn
from palyra.models.routing import WINDOW_SHARE, Target

# The largest window that prompts are fitted to. With more room everything goes in as it is.
LARGEST = 16_384
# Of the budget, what each part may take.
_PROJECT = 0.15
_SKILLS = 0.08
_MEMORY = 0.08
_RESULTS = 0.25
_REPLY = 0.25
_ARGUMENTS = 0.125
_SUMMARY = 0.125
_NAMED = 0.2
# With less than this beside instructions and tools, no call and its result have room.
_LEAST_ROOM = 1_024
_LEAST_SHOWN = 48
_BYTES_PER_TOKEN = 3
_ROUND = 1_024
# What a fence and a header add to a text.
_FRAME = 64
# About a token each, rather too many than too few.
_PIECE = re.compile(r" ?[A-Za-z][a-z]{0,5}|\d{1,3}|\s+|.", re.DOTALL)
LEFT_OUT = (
    "[this result was left out to fit the model's window; call the tool again if you need it]"
)
_encode = msgspec.json.encode


def is_small(target: Target) -> bool:
    return target.context_tokens <= LARGEST


def result_bytes(budget: int, most: int) -> int:
    """Return how large a result may be before it is stored apart; `budget` is 0 in a large
    window.
    """
    return min(most, int(budget * _RESULTS) * _BYTES_PER_TOKEN) if budget else most


def cut(text: str, tokens: int) -> str:
    """The beginning of a text, about so many tokens of it."""
    if len(text) <= tokens:
        return text
    end = len(text)
    for number, piece in enumerate(_PIECE.finditer(text)):
        if number == tokens:
            end = piece.start()
            break
    return text[:end]


def project(notes: Project, budget: int) -> Project:
    """Project notes within their share, at the end of a line where there is one."""
    shown = _lines(notes.text, int(budget * _PROJECT))
    if shown == notes.text:
        return notes
    said = "\n[cut to fit the model's window; read the file for the rest]"
    label = ", ".join(filter(None, (notes.note, "cut to fit the window")))
    # Cut once more it must stay as it is: what is stored with a run is cut already.
    shown = _lines(notes.text, int(budget * _PROJECT) - len(_PIECE.findall(said)))
    return replace(notes, text=shown + said, note=label)


def skills(index: Index, budget: int) -> Index:
    return replace(index, text=_lines(index.text, int(budget * _SKILLS)))


def _lines(text: str, tokens: int) -> str:
    shown = cut(text, max(tokens, 0))
    if shown == text:
        return text
    end = shown.rfind("\n")
    return shown[:end] if end > len(shown) // 2 else shown


def around(context: RunContext, budget: int) -> tuple[RunContext, int]:
    """Return the memories that fit their share, the best first, and how many are left out."""
    share = int(budget * _MEMORY)
    recalled, left = _fitting(context.recalled, share)
    earlier, _ = _fitting(context.earlier, left)
    if len(recalled) == len(context.recalled) and len(earlier) == len(context.earlier):
        return context, 0
    missing = len(context.recalled) + len(context.earlier) - len(recalled) - len(earlier)
    memory = render(recalled) if recalled else ""
    return replace(context, recalled=recalled, memory=memory, earlier=earlier), missing


def _fitting(
    items: Iterable[RecalledMemory], tokens: int
) -> tuple[tuple[RecalledMemory, ...], int]:
    fitting: list[RecalledMemory] = []
    for each in items:
        tokens -= len(_PIECE.findall(each.text[: 8 * _LEAST_ROOM])) + _LEAST_SHOWN // 2
        if tokens < 0:
            break
        fitting.append(each)
    return tuple(fitting), max(tokens, 0)


def shortened(turns: Iterable[Turn], budget: int) -> list[Turn]:
    """The turns with long results, arguments and replies cut. What people wrote stays whole."""
    return [_shortened(turn, budget) for turn in turns]


def _shortened(turn: Turn, budget: int) -> Turn:
    match turn:
        case ModelTurn():
            return _reply(turn, budget)
        case UserTurn():
            inputs = tuple(_named(event, budget) for event in turn.inputs)
            changed = any(new is not old for new, old in zip(inputs, turn.inputs, strict=True))
            return dataclasses.replace(turn, inputs=inputs) if changed else turn
        case Summary():
            return dataclasses.replace(turn, text=_lines(turn.text, int(budget * _SUMMARY)))


def _reply(turn: ModelTurn, budget: int) -> ModelTurn:
    many = max(len(turn.calls), 1)
    results = max(int(budget * _RESULTS) // many, _LEAST_SHOWN)
    arguments = max(int(budget * _ARGUMENTS) // many, _LEAST_SHOWN)
    calls = [_call(call, results, arguments) for call in turn.calls]
    text = cut(turn.reply.text, int(budget * _REPLY))
    reply = replace(turn.reply, text=text, reasoning="")
    if reply != turn.reply or any(
        new.call is not old.call for new, old in zip(calls, turn.calls, strict=True)
    ):
        # A provider's own record of the reply holds all of it.
        reply = replace(reply, native=None)
    return dataclasses.replace(turn, reply=reply, calls=calls)


def _call(progress: CallProgress, results: int, arguments: int) -> CallProgress:
    finished, call = progress.finished, progress.call
    if finished is not None:
        finished = _result(finished, results, call.tool)
    given = _brief(call.arguments, arguments)
    if given != call.arguments:
        call = replace(call, arguments=given)
    return dataclasses.replace(progress, call=call, finished=finished)


def _result(finished: ToolFinished, tokens: int, tool: str) -> ToolFinished:
    shown = cut(finished.text, tokens)
    if shown == finished.text:
        return finished
    shown = _lines(finished.text, tokens)
    if finished.artifact:
        how = f"{finished.size} bytes in all; read on with artifact.read, id {finished.artifact}"
    elif tool == "artifact.read":
        how = f"read on with limit {max(len(shown.encode('utf-8', 'replace')), 1)}"
    else:
        how = f"{len(finished.text)} characters in all; ask for a smaller part"
    return replace(finished, text=f"{shown}\n… [cut to fit the model's window: {how}]")


def _brief(value: Any, tokens: int) -> Any:
    match value:
        case str():
            shown = cut(value, tokens)
            return value if shown == value else f"{shown}… [cut]"
        case dict():
            share = max(tokens // max(len(value), 1), 8) if len(value) > 2 else tokens
            return {key: _brief(each, share) for key, each in value.items()}
        case list():
            return [_brief(each, max(tokens // max(len(value), 1), 8)) for each in value]
        case _:
            return value


def _named(event: InputReceived, budget: int) -> InputReceived:
    """A message with what it names and what is attached cut; its words are not touched."""
    many = len(event.references) + len(event.attachments)
    if not many:
        return event
    share = max(int(budget * _NAMED) // many, _LEAST_SHOWN)
    hint = "cut to fit the model's window"
    named = tuple(
        each
        if (shown := cut(each.text, share)) == each.text
        else replace(each, text=shown, note=each.note or hint)
        for each in event.references
    )
    attached = tuple(
        each
        if (shown := cut(each.text, share)) == each.text
        else replace(each, text=shown, note=each.note or hint)
        for each in event.attachments
    )
    return replace(event, references=named, attachments=attached)


class FittedSizes(Struct, frozen=True):
    """The sizes of a conversation's turns as they are cut for a window, and without results."""

    shown: Measure
    bare: Measure


def sizes_for(sizes: Measure, target: Target) -> FittedSizes:
    return FittedSizes(sizes.fitted(target.budget, _FRAME), sizes.fitted(-target.budget, _FRAME))


def bare(turn: ModelTurn) -> ModelTurn:
    """The step with its calls, and a note in place of each long result."""
    calls = [
        dataclasses.replace(call, finished=replace(call.finished, text=LEFT_OUT))
        if call.finished is not None and len(call.finished.text) > len(LEFT_OUT)
        else call
        for call in turn.calls
    ]
    return dataclasses.replace(turn, calls=calls)


def bare_steps(turns: Iterable[Turn]) -> list[Turn]:
    return [bare(turn) for turn in turns if isinstance(turn, ModelTurn)]


def without_old_steps(
    turns: list[Turn], room: int, sizes: FittedSizes
) -> tuple[list[Turn], int, int]:
    """A run that outgrows the window: its oldest results give way, then whole steps, half a window
    at once so that what is left stays the same for a while. The newest step and all that people
    said stay. Returns the turns, their size and how many steps gave way.
    """
    total = sizes.shown.tokens(turns)
    if total <= room:
        return turns, total, 0
    kept, saved, given = _without_results(turns, _surplus(total, room), sizes)
    if total - saved <= room:
        return kept, total - saved, given
    kept, more, dropped = _without_steps(kept, _surplus(total - saved, room), sizes)
    if dropped:
        kept, more = _with_note(kept, dropped), more - _FRAME
    return kept, total - saved - more, max(given, dropped)


def _surplus(total: int, room: int) -> int:
    step = max(room // 2, 1)
    return -(-(total + _FRAME - room) // step) * step


def _without_results(
    turns: Sequence[Turn], surplus: int, sizes: FittedSizes
) -> tuple[list[Turn], int, int]:
    kept, saved, given = list(turns), 0, 0
    for place, turn in enumerate(turns[:-1]):
        if saved >= surplus:
            break
        if isinstance(turn, ModelTurn) and turn.calls:
            emptied = bare(turn)
            saved += sizes.shown.of(turn) - sizes.bare.of(emptied)
            kept[place] = emptied
            given += 1
    return kept, saved, given


def _without_steps(
    turns: Sequence[Turn], surplus: int, sizes: FittedSizes
) -> tuple[list[Turn], int, int]:
    """All their results have given way already, but for those of the newest."""
    saved, dropped = 0, set()
    for turn in turns[:-1]:
        if saved >= surplus:
            break
        if isinstance(turn, ModelTurn):
            saved += (sizes.bare if turn.calls else sizes.shown).of(turn)
            dropped.add(turn.seq)
    return [turn for turn in turns if turn.seq not in dropped], saved, len(dropped)


def _with_note(turns: list[Turn], dropped: int) -> list[Turn]:
    said = f"{dropped} earlier steps of this run were left out to fit your window."
    for place in range(len(turns) - 1, -1, -1):
        turn = turns[place]
        if isinstance(turn, UserTurn):
            noted = dataclasses.replace(turn, notes=(*turn.notes, said))
            return [*turns[:place], noted, *turns[place + 1 :]]
    return turns


def words_of(*texts: str) -> int:
    """Return about the tokens of short texts, rather too many than too few."""
    return sum(len(_PIECE.findall(text)) for text in texts)


def behind(asked_again: str) -> int:
    """Room for what may follow the conversation: to go on, or to give the answer another form."""
    return _LEAST_SHOWN + words_of(asked_again)


def window_needed(target: Target, fixed: int, size: int) -> int:
    """The window that a request needs at least, 0 if this one is enough."""
    needed = fixed + max(size, _LEAST_ROOM)
    if needed <= target.budget:
        return 0
    return math.ceil(needed / WINDOW_SHARE / _ROUND) * _ROUND


def complaint(target: Target, needed: int) -> str:
    return (
        f"the window of {target.name} is {target.context_tokens:,} tokens, and this request needs"
        f" one of {needed:,}: choose a model with a larger window, or, if its server can do more,"
        f" set providers.{target.provider}.context_tokens and the server's own limit to it"
    )


def notes(
    target: Target, offered: OfferedTools, index: tuple[Index, Index], left_out: int
) -> Mapping[str, str]:
    """Return what `why-tokens` says of the parts, by their source. `index`: the skills, whole and
    cut.
    """
    said = {"instructions": f"fitted to a window of {target.context_tokens:,} tokens"}
    if left_out:
        said["instructions"] += f"; {left_out} memories left out"
    if offered.note:
        said["tools"] = offered.note
    if index[0] != index[1]:
        said["skills"] = "cut to fit the window"
    return said


def cuts(turns: Sequence[Turn], whole: Collection[Turn]) -> int:
    """Return how many results are shown in part."""
    texts = {
        call.call.id: len(call.finished.text)
        for turn in whole
        if isinstance(turn, ModelTurn)
        for call in turn.calls
        if call.finished is not None
    }
    return sum(
        call.finished is not None and len(call.finished.text) != texts.get(call.call.id)
        for turn in turns
        if isinstance(turn, ModelTurn)
        for call in turn.calls
    )
