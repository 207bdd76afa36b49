"""The answer that a calling program wants: how the model is told, and whether the answer fits.

The rule: it is about the final answer alone. While the agent works it may say what it likes and
call what it needs; what is given out as the answer fits, or the run fails and says why.
"""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.events import Wanted
from palyra.core.messages import NO_CALL, AnswerSchema
from palyra.core.run_progress import RunProgress
from palyra.system import thread_pool
from palyra.tools import catalogue as schemas

_MOST_COMPLAINTS = 4
_LONGEST_COMPLAINT = 300
_FENCE = "```"
_CUT_OFF = "it was cut off at the longest that a reply may be: give a shorter one"


class Valid(Struct, frozen=True):
    """The answer as the program gets it."""

    text: str


class Invalid(Struct, frozen=True):
    problem: str


def words(run: RunProgress) -> str:
    """Return what the instructions say about it. Also where a provider can be told otherwise: not
    every server obeys.
    """
    wanted = run.wanted
    if wanted is None or wanted.form == "text":
        return ""
    alone = (
        "Call tools as usual before that; your final answer is read by a program and must be that"
        " JSON alone, without a fence."
    )
    if wanted.form == "object":
        return f"\n\nThe program that calls you wants the final answer as one JSON object. {alone}"
    schema = msgspec.json.encode(wanted.schema).decode()
    return (
        "\n\nThe program that calls you wants the final answer as JSON that fits this JSON"
        f" Schema:\n{schema}\n{alone}"
    )


def again(run: RunProgress) -> str:
    said = f"Your answer has not the form that is wanted: {run.refused}."
    return f"[note from the daemon] {said} Give the whole answer again, as that JSON alone."


def schema(run: RunProgress) -> AnswerSchema | None:
    wanted = run.wanted
    if wanted is None or wanted.form != "schema":
        return None
    return AnswerSchema(wanted.name or "answer", wanted.schema, wanted.strict)


def choice(run: RunProgress) -> str:
    """Return which tool is to be called now: the wish is about the first turn, and an answer that
    is asked for again needs none.
    """
    if run.refused and run.flaw == "form" and not run.inputs:
        return NO_CALL
    return run.wanted.call if run.wanted is not None and run.turns == run.wanted_at else ""


async def judge(run: RunProgress, text: str) -> Valid | Invalid:
    assert run.wanted is not None
    stop = run.last.reply.stop if run.last else "end"
    if stop == "length":
        return Invalid(_CUT_OFF)
    if stop == "content_filter":
        # The program is told that, and expects nothing.
        return Valid(text)
    return await thread_pool.everyday.run(_judged, run.wanted, text)


def _judged(wanted: Wanted, text: str) -> Valid | Invalid:
    bare = _bare(text)
    try:
        value = msgspec.json.decode(bare)
    except (msgspec.DecodeError, RecursionError) as error:
        return Invalid(f"it is not JSON ({str(error)[:_LONGEST_COMPLAINT]})")
    if wanted.form == "object":
        return Valid(bare) if isinstance(value, dict) else Invalid("it is not a JSON object")
    complaints = _complaints(wanted.schema, value)
    return Invalid("; ".join(complaints)) if complaints else Valid(bare)


def _bare(text: str) -> str:
    """Strip the fence that models like to put around JSON."""
    text = text.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and "\n" in text:
        return text.partition("\n")[2].removesuffix(_FENCE).strip()
    return text


def _complaints(schema: dict[str, Any], value: Any) -> list[str]:
    complaints = []
    for error in schemas.compiled(schema).iter_errors(value):
        where = ".".join(map(str, error.instance_path))
        complaints.append((f"{where}: " if where else "") + error.message[:_LONGEST_COMPLAINT])
        if len(complaints) == _MOST_COMPLAINTS:
            break
    return complaints


async def check(wanted: Wanted) -> None:
    """Raise InvalidInput for a schema that no answer could be judged by."""
    if wanted.form == "schema":
        try:
            await thread_pool.everyday.run(schemas.compiled, wanted.schema)
        except InvalidInput as error:
            raise InvalidInput(f"the answer's schema cannot be used: {error.message}") from None
