"""One call to a provider, to see whether it can be used: it is asked to call a tool."""

import asyncio
import time
from typing import Final

from palyra.core.messages import ModelFailure, ModelRequest, Text, ToolSchema, UserMessage
from palyra.core.ports import ModelProvider
from palyra.features.setup.model import Trial

_LONGEST_S: Final = 30
# A local server may have to load the model first.
_LONGEST_LOCAL_S: Final = 180
_TOOL: Final = ToolSchema(
    "report.ready",
    "Reports that you are ready.",
    {
        "type": "object",
        "properties": {"word": {"type": "string", "description": "the word to report"}},
        "required": ["word"],
    },
)
_REFUSED: Final = frozenset({"bad_request", "malformed", "tools_unsupported"})
_FIXES: Final = {
    "auth": "check the key",
    "network": "check the address, and that the server runs",
    "quota": "check your account there",
    "model_not_found": "choose one of the models that it has",
    "not_a_model_server": "check the address: it answers with a web page",
    "permission": "check what the key may use",
    "timeout": "check the address, or give it more time",
    "bad_request": "check the model's name",
}
NO_TOOLS: Final = (
    "the agent works by tools: choose a model that can call them, or start the server with tool"
    " calls on"
)

AS_TEXT: Final = "it calls tools only as text, so Palyra writes them into its prompt from now on"


async def call_with_tool(
    provider: ModelProvider, model: str, *, local: bool, fitted: bool = False
) -> Trial:
    """Ask for a tool call. A server that refuses the tool is asked once more, without it. `fitted`:
    as a prompt for a small window asks for it.
    """
    began, limit_s = time.monotonic(), _LONGEST_LOCAL_S if local else _LONGEST_S

    def took() -> int:
        return int((time.monotonic() - began) * 1000)

    try:
        async with asyncio.timeout(limit_s):
            called = await _called(provider, model, fitted=fitted)
    except ModelFailure as failure:
        fix = _FIXES.get(failure.failure, "look at the provider's status page")
        return Trial(ok=False, model=model, took_ms=took(), message=str(failure), fix=fix)
    except TimeoutError:
        return Trial(
            ok=False,
            model=model,
            took_ms=took(),
            message=f"no answer in {limit_s} s",
            fix=_FIXES["timeout"],
        )
    return Trial(
        ok=True,
        model=model,
        took_ms=took(),
        message=f"{model} answered",
        fix="" if called else NO_TOOLS,
        tools=called,
    )


async def _called(provider: ModelProvider, model: str, *, fitted: bool) -> bool:
    request = ModelRequest(
        model=model,
        instructions="You test a connection. Call the tool report.ready with the word ready.",
        messages=(UserMessage((Text("Call the tool now, with the word ready."),)),),
        tools=(_TOOL,),
        fitted=fitted,
        # Room for a model that thinks first.
        max_output_tokens=1024,
    )
    try:
        reply = await provider.stream(request, lambda channel, text: None)
    except ModelFailure as failure:
        if failure.failure not in _REFUSED:
            raise
        plain = ModelRequest(
            model=model,
            instructions="Answer with one word.",
            messages=(UserMessage((Text("Say: ready"),)),),
            max_output_tokens=64,
        )
        await provider.stream(plain, lambda channel, text: None)
        return False
    return any(call.name == _TOOL.name for call in reply.calls)
