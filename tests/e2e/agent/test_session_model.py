"""The model that a session's runs are asked of: chosen once, kept by the session, named anew by any
message.
"""

import asyncio
import threading
from pathlib import Path

from palyra.models.scripted import Turn
from palyra.serve import config
from palyra.serve.wiring import daemon as wiring_daemon
from palyra.serve.wiring.daemon import Daemon
from tests.cli_terminal import palyra, terminal
from tests.daemon import start
from tests.fake_provider import Answer, Answering, Request, Script, openai_chat, sse
from tests.faults import in_daemon
from tests.inprocess import body, entries, finished, say, session
from tests.model_servers import llamacpp, serving

TWO = """[providers.blind]
kind = "demo"
models = ["two"]
"""


def test_a_session_keeps_its_choice_and_a_message_may_name_another(tmp_path: Path) -> None:
    settings = '[providers.other]\nkind = "demo"\nmodels = ["two"]\n'
    with start(tmp_path, script={"*": [{"text": "hi"}]}, config=settings) as daemon:
        where = daemon.post("/v1/sessions")["session_id"]
        path = f"/v1/sessions/{where}"
        changed = daemon.request("PATCH", path, {"model": "two"})
        assert (changed.status, changed.json["model"]) == (200, "other/two")
        assert daemon.request("PATCH", path, {"model": "nobody"}).code == "invalid_input"

        def asked(**more: str) -> str:
            _, found = daemon.run("hello", where, **more)
            planned = next(each for each in found if each["kind"] == "run.accepted")
            return str(planned["event"].get("model", ""))

        default = next(
            each["name"] for each in daemon.get("/v1/status")["models"] if each["default"]
        )
        assert asked() == "other/two"
        assert asked(model=default) == default
        daemon.stop()
        daemon.restart()
        assert daemon.get(path)["model"] == "other/two"
        branch = daemon.post(f"{path}/branch")
        assert branch["model"] == "other/two"
        daemon.request("PATCH", path, {"model": ""})
        assert asked() == ""


def test_a_choice_that_the_settings_no_longer_have_is_none(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await d.sessions.change(
            where.owner, where.session_id, title=None, archived=None, model="blind/two"
        )
        await finished(d, await say(d, where, "one"))
        config.remove_table(d.home, ("providers", "blind"))
        await wiring_daemon.reload_config(d, {})
        await finished(d, await say(d, where, "two"))
        accepted = [body(e) for e in await entries(d, where.session_id) if e.kind == "run.accepted"]
        assert [each.get("model", "") for each in accepted] == ["blind/two", ""]

    in_daemon(tmp_path, [Turn(text="hi"), Turn(text="hi")], scenario, TWO)


def test_a_chat_shows_its_model_and_picks_another_from_the_list(tmp_path: Path) -> None:
    settings = '[providers.other]\nkind = "demo"\nmodels = ["two"]\n'
    with (
        start(tmp_path, script={"*": [{"text": "hi"}]}, config=settings) as daemon,
        terminal(daemon.home, "chat", cwd=daemon.workspace, columns=250) as chat,
    ):
        chat.expect("· other/two · /help")
        chat.line("/model")
        number = chat.expect(r"(\d)  scripted/s1")[1]
        chat.expect("Switch with")
        chat.line(f"/model {number}")
        chat.expect("Model: scripted/s1")
        chat.line("/model nobody")
        chat.expect("there is no model 'nobody'")
        chat.type("\x04")
        assert chat.ends() == 0
        with terminal(daemon.home, "chat", cwd=daemon.workspace, columns=250) as again:
            again.expect("· scripted/s1 · /help")
            again.line("/model default")
            again.expect("Model: other/two")
            again.type("\x04")
            assert again.ends() == 0


def test_who_waits_sees_the_model_a_clock_and_how_far_the_prompt_is_read(tmp_path: Path) -> None:
    go = threading.Event()
    with start(tmp_path) as daemon, serving(_reading(go)) as server:
        done = palyra(daemon.home, "setup", "--yes", "--no-test", "--url", server.url, env={})
        assert done.returncode == 0, done.stderr
        with terminal(daemon.home, "ask", "hello", cwd=daemon.workspace) as person:
            person.expect(r"… reading the prompt: 40 % · local/qwen2.5-3b · \d+ s")
            go.set()
            person.expect("Hello")
            assert person.ends() == 0
        go.clear()
        with terminal(daemon.home, "chat", cwd=daemon.workspace) as chat:
            chat.shows("› ?\n[^\n]* · [^\n]*")
            chat.line("hello")
            chat.shows(
                r"… reading the prompt: 40 % · local/qwen2.5-3b · \d+ s · .*\n[^\n]* · [^\n]*"
            )
            go.set()
            chat.expect("Hello")
            chat.type("\x04")
            assert chat.ends() == 0


def _reading(go: threading.Event) -> Answering:
    """A llama.cpp that has read 40 % of the prompt, and goes on when it is told."""
    server = llamacpp()
    chunk = {"choices": [], "prompt_progress": {"total": 1000, "processed": 400, "cache": 0}}

    def answer(request: Request) -> Answer:
        if request.path != "/v1/chat/completions":
            return server(request)
        assert request.json()["return_progress"] is True
        body, first = openai_chat(Script(text=("Hello",))), sse(chunk)
        later = asyncio.Event()
        loop = asyncio.get_running_loop()
        waiting = threading.Thread(
            target=lambda: go.wait(60) and loop.call_soon_threadsafe(later.set), daemon=True
        )
        waiting.start()
        return Answer(first + body, late=(len(first), later))

    return answer
