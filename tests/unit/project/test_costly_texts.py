"""Texts made to cost much cost no more than twenty times what plain text costs, and grow no faster
than their length.
"""

import asyncio

import pytest

from palyra.serve.trials import pathological
from palyra.serve.trials.pathological import CASES, PARTS, Case
from palyra.system.redactor import Redactor


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 40
    assert {case.part for case in CASES} == set(PARTS)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.part}: {case.what}" for case in CASES])
def test_a_hostile_text_costs_little_more_than_a_plain_one(case: Case) -> None:
    # Once is enough; another process on the same cores can spoil one measurement.
    verdicts = (pathological.judge(case) for _ in range(3))
    assert any(verdict.holds for verdict in verdicts), pathological.judge(case)


@pytest.mark.parametrize("what", ["names of secrets", "base64 in base64", "fences", "broken lines"])
def test_the_event_loop_turns_while_a_long_hostile_text_is_redacted(what: str) -> None:
    case = next(case for case in CASES if (case.part, case.what) == ("redaction", what))
    text = case.text(210 << 10)

    async def turns() -> int:
        counted = 0
        work = asyncio.ensure_future(Redactor(b"k").redacted(text))
        while not work.done():
            counted += 1
            await asyncio.sleep(0)
        return counted

    # On the loop itself it would be done at the second turn.
    assert asyncio.run(turns()) > 10
