"""What a streamed delta costs in processor time of our own process. Run with -s to see the
figures.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from palyra.core.messages import (
    AssistantMessage,
    Channel,
    Message,
    ModelCall,
    Text,
    ToolMessage,
    UserMessage,
)
from palyra.models.dialects import open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from tests.fake_provider import DELTAS, TOOL_TURNS
from tests.material import ROOT
from tests.model_reading import asks

REPLIES = 100
# Several times what it takes on a quiet machine: this guards against a change of kind, not of
# degree.
LIMIT_US = 60.0


@pytest.fixture
def server() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.fake_provider"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def conversation() -> tuple[Message, ...]:
    turns = [
        (
            AssistantMessage(calls=(ModelCall(f"c{n}", "fs.list", "{}"),)),
            ToolMessage(f"c{n}", "fs.list", "a\nb"),
        )
        for n in range(TOOL_TURNS)
    ]
    return (UserMessage((Text("hi"),)), *(message for turn in turns for message in turn))


def test_a_streamed_delta_costs_microseconds(server: str) -> None:
    heard = 0

    def emit(channel: Channel, text: str) -> None:
        nonlocal heard
        heard += len(text)

    async def work() -> tuple[float, int]:
        http = HttpClient()
        provider = open_provider(
            "openai-chat", ProviderEndpoint(name="bench", base_url=server), http
        )
        request = asks("fs.list", messages=conversation())
        whole = await provider.stream(request, lambda channel, text: None)
        start = time.process_time()
        for _ in range(REPLIES):
            await provider.stream(request, emit)
        spent = time.process_time() - start
        await http.close()
        return spent, len(whole.text)

    spent, size = asyncio.run(asyncio.wait_for(work(), 60))
    assert heard == REPLIES * size > REPLIES * DELTAS
    each_us = spent * 1e6 / heard
    print(
        f"{each_us:.1f} us of processor time a delta, {spent * 1e3 / REPLIES:.2f} ms a reply of {DELTAS}"
    )
    assert each_us < LIMIT_US
