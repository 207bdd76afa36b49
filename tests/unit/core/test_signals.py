"""Signals: who is told, in which order, and what happens when one of them fails."""

import asyncio

import pytest

from palyra.core.signals import Signal


def test_everybody_is_told_in_the_order_of_connecting_also_behind_one_that_fails() -> None:
    signal, heard = Signal[[int]]("a test"), list[str]()

    def fails(number: int) -> None:
        raise RuntimeError("a defect")

    signal.connect(lambda number: heard.append(f"second {number}"))
    signal.connect(fails, first=True)
    signal.connect(lambda number: heard.append(f"first {number}"), first=True)
    signal.send(1)
    assert heard == ["first 1", "second 1"]


def test_who_leaves_while_a_signal_is_sent_is_not_told_of_the_next_one() -> None:
    signal, heard = Signal[[]]("a test"), list[str]()

    def once() -> None:
        heard.append("once")
        leave()

    leave = signal.connect(once)
    signal.connect(lambda: heard.append("always"))
    signal.send()
    signal.send()
    leave()
    assert heard == ["once", "always", "always"]


def test_who_waits_for_its_listeners_hears_of_the_first_failure() -> None:
    signal, heard = Signal[[]]("a test"), list[str]()

    async def fails() -> None:
        raise ValueError("not now")

    async def hears() -> None:
        heard.append("heard")

    signal.connect(hears)
    signal.connect(fails)
    signal.connect(hears)
    with pytest.raises(ValueError, match="not now"):
        asyncio.run(signal.send_and_wait())
    assert heard == ["heard"]
