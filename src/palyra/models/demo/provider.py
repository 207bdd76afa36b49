"""The demo model as a provider: it streams word by word, like a real one, and says that it is not
one.
"""

import asyncio
import re

import msgspec

from palyra.core.messages import Channel, Emit, ModelReply, ModelRequest
from palyra.models import usage_estimate
from palyra.models.demo import json_answer
from palyra.models.demo.responder import think

NAME = "demo"
MODEL = "demo-1"
# However long an answer is, it is on the screen in a second or two.
_MOST_PIECES = 200
_WORD = re.compile(r"\s*\S+\s*")


class DemoModel:
    """Rule based, offline, without memory of its own. `delay_ms` is the pause after each word."""

    def __init__(self, *, delay_ms: int = 8) -> None:
        self._delay_s = delay_ms / 1000

    @property
    def name(self) -> str:
        return NAME

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        thought = think(request)
        text = thought.text
        if request.json_mode and not thought.calls:
            text = msgspec.json.encode({"answer": text}).decode()
        elif request.json_schema is not None and not thought.calls:
            text = msgspec.json.encode(
                json_answer.fitting(request.json_schema.schema, text)
            ).decode()
        await self._say("reasoning", thought.reasoning, emit)
        await self._say("text", text, emit)
        for call in thought.calls:
            emit("call", call.name)
        arguments = "".join(call.arguments for call in thought.calls)
        return ModelReply(
            text=text,
            reasoning=thought.reasoning,
            calls=thought.calls,
            stop="tool_calls" if thought.calls else "end",
            usage=usage_estimate.usage(
                request, text=text, reasoning=thought.reasoning, arguments=arguments
            ),
            model=MODEL,
        )

    async def _say(self, channel: Channel, text: str, emit: Emit) -> None:
        pieces = _WORD.findall(text)
        step = -(-len(pieces) // _MOST_PIECES) or 1
        for at in range(0, len(pieces), step):
            emit(channel, "".join(pieces[at : at + step]))
            await asyncio.sleep(self._delay_s)
