"""Responses in the background: they outlive their caller, are fetched as far as they have come, and
can be cancelled.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests import daemon
from tests.daemon import DaemonProcess
from tests.e2e.openai_api.test_door import ended, session_of
from tests.history_clients import reaching


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("background")
    script = {
        "*": [{"text": "done"}, {"text": "and on"}],
        "hold": [{"text": ["so ", "far"], "hold": str(folder / "never"), "hold_after": 1}],
    }
    config = "[limits]\nrequests_per_second = 100000\nstreams = 2\n[memory]\nembeddings = false\n"
    with daemon.start(folder, config=config + daemon.IMPATIENT, script=script) as process:
        yield process


@pytest.fixture
def client(served: DaemonProcess) -> OpenAI:
    return reaching(served)


def begun(client: OpenAI, text: str, **more: Any) -> Any:
    return client.responses.create(model="palyra", input=text, background=True, **more)


def run_of(response: Any) -> str:
    return str(response.id[5:31])


def test_it_is_fetched_when_it_is_done(served: DaemonProcess, client: OpenAI) -> None:
    # More than there are places for those who wait.
    found = [begun(client, "work") for _ in range(4)]
    assert {(each.status, each.background) for each in found} == {("in_progress", True)}
    for each in found:
        assert ended(served, session_of(each), run_of(each)) == "run.completed"
        again = client.responses.retrieve(each.id)
        assert (again.status, again.output_text) == ("completed", "done")
    on = client.responses.create(model="palyra", input="on", previous_response_id=found[0].id)
    assert session_of(on) == session_of(found[0])


def test_it_is_cancelled_once_and_stays_so(served: DaemonProcess, client: OpenAI) -> None:
    response = begun(client, "hold")
    assert client.responses.retrieve(response.id).status == "in_progress"
    for _ in range(2):
        client.responses.cancel(response.id)
    assert ended(served, session_of(response), run_of(response)) == "run.cancelled"
    again = client.responses.retrieve(response.id)
    assert (again.status, again.error) == ("cancelled", None)
    done = client.responses.create(model="palyra", input="work")
    assert client.responses.cancel(done.id).status == "completed"
    with pytest.raises(openai.NotFoundError):
        client.responses.cancel("resp_1")


def test_a_stream_in_the_background_goes_on_without_its_reader(
    served: DaemonProcess, client: OpenAI
) -> None:
    heard = threading.Event()
    with begun(client, "hold", stream=True) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                heard.set()
                break
            if event.type == "response.created":
                response = event.response
    assert heard.is_set()
    assert client.responses.retrieve(response.id).status == "in_progress"
    client.responses.cancel(response.id)
    assert ended(served, session_of(response), run_of(response)) == "run.cancelled"


def test_nobody_else_cancels_it(served: DaemonProcess, client: OpenAI) -> None:
    response = begun(client, "hold")
    made = served.post("/v1/tokens", {"name": "another", "scope": "client"})
    with pytest.raises(openai.NotFoundError):
        reaching(served, made["token"]).responses.cancel(response.id)
    client.responses.cancel(response.id)
