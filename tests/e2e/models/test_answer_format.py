"""What a calling program wants of an answer: the model is told, the answer is judged, and all of it
outlives a restart.
"""

import asyncio
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from palyra.core.events import ClientTool, Wanted
from palyra.core.ids import OWNER
from palyra.core.messages import ANY_CALL, NO_CALL, AnswerSchema
from palyra.features.openai_api.names import CallerRun, CallName
from palyra.features.openai_api.sessions import CallerRequest
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.replay import replay
from palyra.models.scripted import Script, ScriptedCall, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from tests import inprocess
from tests.inprocess import TERMINAL, body, entries, until

SETTINGS = "[memory]\nembeddings = false\n"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FITS = '{"city": "Brno"}'
SCHEMA = Wanted(form="schema", name="place", schema=CITY, strict=True)
WEATHER = ClientTool("get_weather", "the weather of a city", CITY)
OWN = ScriptedCall(name="test.pure", arguments={"text": "mine"})
THEIRS = ScriptedCall(name="get_weather", arguments={"city": "Brno"})


async def end(daemon: Daemon, begun: CallerRun, after: int = 0) -> dict[str, Any]:
    return body(await until(daemon, begun.session_id, *TERMINAL, run_id=begun.run_id, after=after))


def test_an_answer_that_does_not_fit_is_asked_for_again_also_after_a_restart_and_can_be_replayed(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        hold = StreamPause()
        turns = (
            Turn(text="I look.", calls=(OWN,)),
            Turn(text='{"town": "Brno"}'),
            Turn(text=f"```json\n{FITS}\n```", hold="h"),
        )
        said = ScriptedModel(Script.of(turns), holds={"h": hold})
        async with inprocess.daemon(tmp_path, said, SETTINGS) as daemon:
            begun = await daemon.callers.begin(OWNER, CallerRequest(text="where?", wanted=SCHEMA))
            await until(daemon, begun.session_id, "answer.refused")
            await asyncio.wait_for(hold.reached.wait(), 20)
        hold.released.set()
        async with inprocess.daemon(tmp_path, said, SETTINGS) as daemon:
            assert (await end(daemon, begun))["text"] == FITS
            (refused,) = [
                body(entry)
                for entry in await entries(daemon, begun.session_id)
                if entry.kind == "answer.refused"
            ]
            assert (refused["turn"], "city" in refused["problem"]) == (2, True)
            recorded = await daemon.db.read(lambda tx: recordings.read(tx, begun.run_id, OWNER))
            catalogue = daemon.catalogue
        assert all(
            each.json_schema == AnswerSchema("place", CITY, strict=True) for each in said.requests
        )
        # The last one twice: before the restart and after it.
        assert [each.tool_choice for each in said.requests] == ["", "", NO_CALL, NO_CALL]
        assert all(
            each.tools and '"required":["city"]' in each.instructions for each in said.requests
        )
        outcome = await asyncio.to_thread(replay, recorded, catalogue)
        assert outcome.difference is None

    asyncio.run(scene())


def test_an_answer_that_never_fits_fails_and_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        scripts = {
            "words": (Turn(text="in Brno"), Turn(text="in Brno!")),
            "cut": (Turn(text='{"city": "Br', stop="length"), Turn(text="[1]")),
            "blocked": (Turn(text="", stop="content_filter"),),
        }
        async with inprocess.daemon(tmp_path, ScriptedModel(Script(scripts)), SETTINGS) as daemon:
            for text in ("words", "cut"):
                begun = await daemon.callers.begin(
                    OWNER, CallerRequest(text=text, wanted=Wanted(form="object"))
                )
                failed = await end(daemon, begun)
                assert failed["reason"] == "answer_form"
                assert ("not JSON" if text == "words" else "not a JSON object") in failed["message"]
            begun = await daemon.callers.begin(OWNER, CallerRequest(text="blocked", wanted=SCHEMA))
            assert (await end(daemon, begun))["text"] == ""

    asyncio.run(scene())


def test_the_first_turn_calls_a_tool_of_the_program_and_each_request_has_its_own_wish(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        turns = (Turn(calls=(THEIRS,)), Turn(calls=(OWN,)), Turn(text=FITS))
        said = ScriptedModel(Script({"any": turns, "named": turns}))
        async with inprocess.daemon(tmp_path, said, SETTINGS) as daemon:
            for text, call in (("any", ANY_CALL), ("named", "get_weather")):
                said.requests.clear()
                begun = await daemon.callers.begin(
                    OWNER, CallerRequest(text=text, offered=(WEATHER,), wanted=Wanted(call=call))
                )
                handed = await until(daemon, begun.session_id, "tool.handed_over")
                results = {CallName(begun.run_id, each): "sun" for each in body(handed)["calls"]}
                await daemon.callers.begin(
                    OWNER,
                    CallerRequest(results=results, wanted=replace(SCHEMA, call="get_weather")),
                )
                assert (await end(daemon, begun))["text"] == FITS
                assert [each.tool_choice for each in said.requests] == [call, "get_weather", ""]
                assert [each.json_schema is None for each in said.requests] == [True, False, False]
                first, *later = [{tool.name for tool in each.tools} for each in said.requests]
                assert first == {"get_weather"} if call == ANY_CALL else "test.pure" in first
                assert all({"get_weather", "test.pure"} <= each for each in later)

    asyncio.run(scene())
