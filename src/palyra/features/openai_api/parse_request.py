"""Parser of OpenAI's requests: what is new in them, what was before, what tools gave.

The rule: the messages behind the last one of the assistant are new; all others are what the program
remembers.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.errors import InvalidInput
from palyra.core.events import ClientTool, Earlier, Wanted
from palyra.features.openai_api import answer_options, model_options
from palyra.features.openai_api.answer_options import refuse
from palyra.features.openai_api.names import CallName, named_call, named_response
from palyra.features.openai_api.sessions import CallerRequest
from palyra.features.openai_api.wire_types import (
    ChatMessage,
    ChatRequest,
    Content,
    ContentPart,
    ImageUrl,
    ResponseItem,
    ResponseRequest,
)

AGENT = "palyra"
SESSION = b"x-palyra-session"
KEY = b"idempotency-key"
_TEXTS = frozenset({"text", "input_text", "output_text"})
_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
}
_ADDRESS = re.compile(r"https?://[^\s]{1,2000}\Z", re.IGNORECASE)
_FIELD = re.compile(rb"[!-~]{1,200}")


def chat(body: ChatRequest, headers: dict[bytes, bytes]) -> CallerRequest:
    if (body.n or 1) != 1:
        refuse("n", "there is one answer to a message: leave n out")
    if body.logprobs:
        refuse("logprobs", "an agent's answer has no log probabilities: leave logprobs out")
    if body.modalities and body.modalities != ["text"]:
        refuse("modalities", "answers are text: leave modalities out")
    if body.functions:
        refuse("functions", "functions became tools: use tools")
    tools = tuple(
        ClientTool(
            each.function.name, each.function.description or "", each.function.parameters or {}
        )
        for each in body.tools or ()
    )
    offered, wanted = answer_options.of_chat(body.response_format, body.tool_choice, tools)
    read = _Read.of_chat(body.messages)
    return _asked(
        read,
        headers,
        model=body.model,
        user=body.user or "",
        offered=offered,
        wanted=_with(wanted, model_options.of_chat(body)),
        names=model_options.CHAT_NAMES,
    )


def responses(body: ResponseRequest, headers: dict[bytes, bytes]) -> CallerRequest:
    if body.background:
        refuse(
            "background",
            "a response is waited for: leave background out, and name a session to come back to it",
        )
    if body.conversation is not None:
        refuse(
            "conversation", "conversations are sessions: name one with the header X-Palyra-Session"
        )
    for each in body.tools or ():
        if each.type != "function":
            refuse(
                "tools",
                f"the agent has tools of its own and cannot be given {each.type[:40]!r}: offer"
                " functions only",
            )
    tools = tuple(
        ClientTool(each.name, each.description or "", each.parameters or {})
        for each in body.tools or ()
    )
    offered, wanted = answer_options.of_response(body.text, body.tool_choice, tools)
    items = [ResponseItem(content=body.input)] if isinstance(body.input, str) else body.input
    return _asked(
        _Read.of_items(items),
        headers,
        instructions=body.instructions or "",
        model=body.model,
        user=body.user or "",
        previous=named_response(body.previous_response_id)[0] if body.previous_response_id else "",
        offered=offered,
        wanted=_with(wanted, model_options.of_response(body)),
        names=model_options.RESPONSES_NAMES,
    )


def _with(wanted: Wanted | None, options: CallOptions) -> Wanted | None:
    if options == NOTHING:
        return wanted
    return msgspec.structs.replace(wanted or Wanted(), options=options)


def _asked(
    read: "_Read", headers: dict[bytes, bytes], *, model: str, instructions: str = "", **more: Any
) -> CallerRequest:
    if not (read.text or read.files or read.results):
        raise InvalidInput(
            "there is nothing new to answer: the last message must be the user's, or a result of a"
            " tool"
        )
    return CallerRequest(
        text="\n\n".join(read.text),
        instructions="\n\n".join(filter(None, (instructions, *read.instructions))),
        earlier=tuple(read.earlier),
        files=tuple(read.files),
        results=read.results,
        model="" if model == AGENT else model,
        session=_header(headers, SESSION),
        key=_header(headers, KEY),
        **more,
    )


def _header(headers: dict[bytes, bytes], name: bytes) -> str:
    value = headers.get(name)
    if value is None:
        return ""
    if not _FIELD.fullmatch(value):
        raise InvalidInput(
            f"the header {name.decode()} takes 1 to 200 characters of ASCII, without spaces"
        )
    return value.decode("ascii")


class _Read:
    """A conversation, sorted."""

    def __init__(self) -> None:
        self.instructions: list[str] = []
        self.earlier: list[Earlier] = []
        self.text: list[str] = []
        self.files: list[tuple[str, bytes | str]] = []
        self.results: dict[CallName, str] = {}

    @classmethod
    def of_chat(cls, messages: Sequence[ChatMessage]) -> "_Read":
        read = cls()
        new = _behind([message.role == "assistant" for message in messages])
        for at, message in enumerate(messages):
            match message.role:
                case "system" | "developer":
                    read.instructions.append(_text(message.content))
                case "tool" if at >= new:
                    read.results[named_call(message.tool_call_id)] = _text(message.content)
                case "user" if at >= new:
                    read._new(message.content)
                case role:
                    called = [
                        f"[calls {each.function.name} {each.function.arguments}]"
                        for each in message.tool_calls or ()
                    ]
                    read._before(role, (_text(message.content), *called))
        return read

    @classmethod
    def of_items(cls, items: Sequence[ResponseItem]) -> "_Read":
        read = cls()
        new = _behind(
            [
                item.type == "function_call"
                or (item.type == "message" and item.role == "assistant")
                for item in items
            ]
        )
        for at, item in enumerate(items):
            match item.type:
                case "message" if item.role in ("system", "developer"):
                    read.instructions.append(_text(item.content))
                case "message" if item.role == "user" and at >= new:
                    read._new(item.content)
                case "message":
                    read._before(item.role, (_text(item.content),))
                case "function_call":
                    read._before("assistant", (f"[calls {item.name} {item.arguments}]",))
                case "function_call_output" if at >= new:
                    read.results[named_call(item.call_id)] = _text(item.output)
                case "function_call_output":
                    read._before("tool", (_text(item.output),))
                case "reasoning":
                    continue
                case other:
                    raise InvalidInput(
                        f"an item of type {other[:40]!r} cannot be taken: send messages and results"
                        " of functions"
                    )
        return read

    def _before(self, role: Any, texts: Iterable[str]) -> None:
        self.earlier.append(Earlier(role, "\n".join(filter(None, texts))))

    def _new(self, content: Content) -> None:
        text = _text(content)
        if text:
            self.text.append(text)
        for part in content if isinstance(content, list) else ():
            if part.type not in _TEXTS and part.type != "refusal":
                self.files.append(_file(part, len(self.files) + 1))


def _behind(spoken: Sequence[bool]) -> int:
    """The place behind the last of the assistant's words."""
    return max((at for at, each in enumerate(spoken) if each), default=-1) + 1


def _text(content: Content) -> str:
    """The words of a message; pictures of the past are named, not shown."""
    if not isinstance(content, list):
        return content or ""
    return "\n".join(
        filter(
            None,
            (
                part.text or part.refusal if part.type in (*_TEXTS, "refusal") else ""
                for part in content
            ),
        )
    )


def _file(part: ContentPart, number: int) -> tuple[str, bytes | str]:
    match part.type:
        case "image_url" | "input_image":
            url = (
                part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url or ""
            )
            if _ADDRESS.match(url):
                return f"image-{number}", url
            return _data(url, f"image-{number}", "")
        case "file" if part.file is not None:
            return _data(part.file.file_data, f"file-{number}", part.file.filename)
        case "input_file":
            return _data(part.file_data, f"file-{number}", part.filename)
    raise InvalidInput(
        f"a part of type {part.type[:40]!r} cannot be taken: send text, images and files"
    )


def _data(url: str, stem: str, name: str) -> tuple[str, bytes]:
    """A file from a data: URL."""
    head, comma, encoded = url.partition(",")
    media, _, coding = head.removeprefix("data:").partition(";")
    if not head.startswith("data:") or not comma or coding.rpartition(";")[2] != "base64":
        raise InvalidInput(
            "files are sent along: give them as data:TYPE;base64,…, and images as that or by an"
            " http(s) address"
        )
    try:
        data = b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"{name or stem} is not valid base64: {error}") from None
    return name or f"{stem}.{_EXTENSIONS.get(media.lower(), 'bin')}", data
