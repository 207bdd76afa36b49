"""Conversations of OpenAI's API are sessions."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests import daemon
from tests.daemon import DaemonProcess
from tests.e2e.openai_api.test_door import CITIES, WEATHER, session_of
from tests.history_clients import reaching


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    script = {
        "*": [{"text": "hello"}],
        "look": [{"text": "I see."}],
        "weather": [{"text": "I ask.", "calls": CITIES}, {"text": "sunny"}],
    }
    config = "[limits]\nrequests_per_second = 100000\n[memory]\nembeddings = false\n"
    folder = tmp_path_factory.mktemp("conversations")
    with daemon.start(folder, config=config, script=script) as process:
        yield process


@pytest.fixture
def client(served: DaemonProcess) -> OpenAI:
    return reaching(served)


def test_responses_of_one_stay_in_its_session(client: OpenAI) -> None:
    made = client.conversations.create()
    found = [
        client.responses.create(model="palyra", input=text, conversation=made.id)
        for text in ("hi", "look")
    ]
    assert {f"conv_{session_of(each)}" for each in found} == {made.id}
    assert [each.conversation.id for each in found if each.conversation] == [made.id] * 2
    assert client.conversations.retrieve(made.id).created_at == made.created_at
    by_id: Any = {"id": made.id}
    again = client.responses.create(model="palyra", input="look", conversation=by_id)
    assert session_of(again) == session_of(found[0])


def test_its_items_are_what_was_said(client: OpenAI) -> None:
    made = client.conversations.create()
    tool: Any = {"type": "function", "strict": False, **WEATHER["function"]}  # type: ignore[dict-item]
    client.responses.create(model="palyra", input="hi", conversation=made.id)
    more: Any = {"model": "palyra", "conversation": made.id, "tools": [tool]}
    asked = client.responses.create(input="weather", **more)
    results: Any = [
        {"type": "function_call_output", "call_id": each.call_id, "output": "sun"}
        for each in asked.output
        if each.type == "function_call"
    ]
    client.responses.create(input=results, **more)
    found = [each.model_dump() for each in client.conversations.items.list(made.id, order="asc")]
    kinds = ["message", "message", "message", "message", "function_call", "function_call"]
    kinds += ["function_call_output", "function_call_output", "message"]
    assert [each["type"] for each in found] == kinds
    assert [each["content"][0]["text"] for each in found if each["type"] == "message"] == [
        "hi",
        "hello",
        "weather",
        "I ask.",
        "sunny",
    ]
    assert len({each["id"] for each in found}) == len(found)
    # Page by page it is the same.
    paged = client.conversations.items.list(made.id, order="asc", limit=2)
    assert [each.id for each in paged] == [each["id"] for each in found]
    newest = client.conversations.items.list(made.id, limit=1).data[0]
    assert "sunny" in json.dumps(newest.model_dump())


def test_one_that_was_deleted_is_gone_and_nobody_elses_is_there(
    served: DaemonProcess, client: OpenAI
) -> None:
    made = client.conversations.create()
    other = served.post("/v1/tokens", {"name": "another", "scope": "client"})
    with pytest.raises(openai.NotFoundError):
        reaching(served, other["token"]).conversations.retrieve(made.id)
    assert client.conversations.delete(made.id).deleted
    for gone in (made.id, "conv_1"):
        with pytest.raises(openai.NotFoundError):
            client.conversations.retrieve(gone)
    with pytest.raises(openai.APIStatusError):
        client.responses.create(model="palyra", input="hi", conversation=made.id)


def test_what_it_cannot_do_is_refused(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as told:
        client.conversations.create(items=[{"role": "user", "content": "hi"}])
    assert told.value.param == "items"
    made = client.conversations.with_raw_response.create(metadata={"a": "b"})
    assert made.headers["x-palyra-ignored"] == "metadata"
    first = client.responses.create(model="palyra", input="hi")
    for more in ({"previous_response_id": first.id}, {"conversation": 7}):
        wanted: Any = {"conversation": made.parse().id, **more}
        with pytest.raises(openai.BadRequestError) as told:
            client.responses.create(model="palyra", input="hi", **wanted)
        assert told.value.param == "conversation"
