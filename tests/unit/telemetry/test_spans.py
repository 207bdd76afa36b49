"""The trace of a run says what its tape says, in one shape whatever happened."""

from collections.abc import Sequence

from palyra.core import trace_context
from palyra.core.events import (
    AgentSpawned,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Budgets,
    Commission,
    InputAssembled,
    InputReceived,
    ModelFailed,
    ModelReplied,
    RunAccepted,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunWaiting,
    ToolFinished,
)
from palyra.core.ids import ApprovalId, CallId, RunId, SessionId
from palyra.core.messages import Usage
from palyra.core.tools import Preview
from palyra.core.trace_context import TracedTurn, span_of, trace_of
from palyra.core.verdicts import Risk
from palyra.features.telemetry.otlp import CLIENT, INTERNAL, SERVER, TraceSpan
from palyra.features.telemetry.spans import RunEntry, TracedRun, spans_of
from tests.tapes import RUN, allowed, call, started

CHILD = "01ARZ3NDEKTSV4RRFFQ69G5FAW"
SESSION = "01ARZ3NDEKTSV4RRFFQ69G5FAS"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
RISK: Risk = "low"


def trace(
    *events: tuple[int, AnyEvent], run_id: str = RUN, content: bool = False
) -> list[TraceSpan]:
    entries = [RunEntry(seq, at, event) for seq, (at, event) in enumerate(events, 1)]
    return spans_of(TracedRun(run_id, SESSION, "user:owner", entries), content=content)


def told(spans: Sequence[TraceSpan]) -> list[tuple[str, str, int, int, str]]:
    """Name, parent's name, start and end in milliseconds, and error of each span."""
    names = {each.span_id: each.name for each in spans}
    return [
        (
            each.name,
            names.get(each.parent_id, ""),
            each.start_ns // 1_000_000,
            each.end_ns // 1_000_000,
            each.error,
        )
        for each in spans
    ]


def turn(number: int) -> InputAssembled:
    return InputAssembled(turn=number, upto_seq=2, parts=(), tokens=40, budget=100)


def reply(number: int, *calls: str) -> ModelReplied:
    return ModelReplied(
        turn=number,
        provider="fake",
        model="m",
        text="secret plan",
        calls=tuple(map(call, calls)),
        usage=Usage(input_tokens=10, output_tokens=5, cached_tokens=4),
        cost_microusd=3,
        first_delta_ms=2,
        duration_ms=20,
    )


def asked(name: str) -> ApprovalRequested:
    return ApprovalRequested(
        approval_id=ApprovalId("A"),
        call_id=CallId(name),
        tool="fs.read",
        about="tool",
        preview=Preview("text", "x"),
        risk=RISK,
        why="because",
    )


def answered(name: str) -> ApprovalResolved:
    return ApprovalResolved(approval_id=ApprovalId("A"), call_id=CallId(name), decision="allow")


WITH_A_TOOL: tuple[tuple[int, AnyEvent], ...] = (
    (1_000, RunAccepted()),
    (1_000, InputReceived(submission_id=RUN, text="what is my secret plan?")),
    (1_040, RunStarted()),
    (1_050, turn(1)),
    (1_100, reply(1, "a")),
    *((1_101, each) for each in allowed("a")),
    (1_102, asked("a")),
    (1_502, answered("a")),
    (1_503, started("a")),
    (1_553, ToolFinished(call_id=CallId("a"), outcome="ok", text="secret result")),
    (1_560, turn(2)),
    (1_600, reply(2)),
    (1_601, RunCompleted(text="secret answer")),
)


def test_a_run_with_a_tool_that_asked_first() -> None:
    spans = trace(*WITH_A_TOOL)
    assert told(spans) == [
        ("invoke_agent palyra", "", 1_000, 1_601, ""),
        ("wait queue", "invoke_agent palyra", 1_000, 1_040, ""),
        ("chat m", "turn 1", 1_080, 1_100, ""),
        ("wait approval fs.read", "turn 1", 1_102, 1_502, ""),
        ("execute_tool fs.read", "turn 1", 1_503, 1_553, ""),
        ("turn 1", "invoke_agent palyra", 1_050, 1_560, ""),
        ("chat m", "turn 2", 1_580, 1_600, ""),
        ("turn 2", "invoke_agent palyra", 1_560, 1_601, ""),
    ]
    run, _, chat, wait, tool = spans[:5]
    assert {each.trace_id for each in spans} == {trace_of(RUN)}
    assert len({each.span_id for each in spans}) == len(spans)
    assert (run.kind, chat.kind, tool.kind) == (INTERNAL, CLIENT, INTERNAL)
    about = run.attributes
    assert about["gen_ai.conversation.id"] == SESSION
    assert (about["gen_ai.usage.input_tokens"], about["gen_ai.usage.output_tokens"]) == (20, 10)
    assert (about["palyra.cost.microusd"], about["palyra.turns"], about["palyra.state"]) == (
        *(6, 2),
        "done",
    )
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("end",)
    assert chat.attributes["palyra.first_delta_ms"] == 2
    assert wait.attributes["palyra.decision"] == "allow"
    assert tool.attributes["palyra.verdict"] == "allow"


def test_what_was_said_is_in_it_only_on_demand() -> None:
    assert "secret" not in repr(trace(*WITH_A_TOOL))
    spans = repr(trace(*WITH_A_TOOL, content=True))
    for each in ("what is my secret plan?", "secret plan", "secret result", "secret answer"):
        assert each in spans


def test_a_run_that_waits_for_its_provider_and_fails() -> None:
    waiting = RunWaiting(
        cause="overloaded",
        message="m",
        provider="p",
        model="m",
        next_try_ms=1,
        deadline_ms=2,
    )
    failed = ModelFailed(
        turn=1,
        provider="fake",
        model="m",
        failure="overloaded",
        message="the key sk-1 is wrong",
        will_retry=False,
        duration_ms=5,
    )
    spans = trace(
        (0, RunAccepted()),
        (0, RunStarted()),
        (10, turn(1)),
        (20, failed),
        (21, waiting),
        (321, RunResumed(after="provider")),
        (322, turn(1)),
        (330, failed),
        (331, RunFailed(reason="overloaded", message="no provider could answer")),
    )
    assert told(spans) == [
        ("invoke_agent palyra", "", 0, 331, "overloaded"),
        ("chat m", "turn 1", 15, 20, "overloaded"),
        ("wait provider", "turn 1", 21, 321, ""),
        ("chat m", "turn 1", 325, 330, "overloaded"),
        ("turn 1", "invoke_agent palyra", 10, 331, ""),
    ]
    assert spans[0].attributes["error.type"] == "overloaded"
    assert "sk-1" not in repr(spans)
    assert len({each.span_id for each in spans}) == len(spans)


def test_a_subagent_is_a_trace_of_its_own_that_is_linked_both_ways() -> None:
    spawned = AgentSpawned(
        call_id=CallId("a"), session_id=SessionId(CHILD), run_id=RunId(CHILD), budgets=Budgets()
    )
    parent = trace(
        (0, RunAccepted()),
        (1, turn(1)),
        *((2, each) for each in allowed("a")),
        (3, started("a")),
        (4, spawned),
        (50, ToolFinished(call_id=CallId("a"), outcome="error")),
        (51, RunCompleted(text="")),
    )
    commission = Commission(
        session_id=SessionId(SESSION),
        run_id=RunId(RUN),
        call_id=CallId("a"),
        root=SessionId(SESSION),
    )
    child = trace(
        (4, RunAccepted(commission=commission)), (40, RunCompleted(text="")), run_id=CHILD
    )
    tool = next(each for each in parent if each.name.startswith("execute_tool"))
    assert tool.error == "error"
    assert (tool.links[0].trace_id, tool.links[0].span_id) == (
        child[0].trace_id,
        child[0].span_id,
    )
    assert (child[0].links[0].trace_id, child[0].links[0].span_id) == (
        tool.trace_id,
        tool.span_id,
    )


def test_a_run_joins_the_trace_of_the_program_that_asked() -> None:
    spans = trace((0, RunAccepted(trace=CALLER)), (5, turn(1)), (9, RunCompleted(text="")))
    assert {each.trace_id.hex() for each in spans} == {"4bf92f3577b34da6a3ce929d0e0e4736"}
    assert (spans[0].parent_id.hex(), spans[0].kind) == ("00f067aa0ba902b7", SERVER)
    # What is told to the provider is the turn's own span.
    handed = trace_context.handed_on(TracedTurn(RUN, CALLER, 1))
    assert handed == f"00-4bf92f3577b34da6a3ce929d0e0e4736-{span_of(RUN, 'turn', 1).hex()}-01"
    assert spans[1].span_id == span_of(RUN, "turn", 1)
    # It does not trace, so nothing is sent.
    assert trace((0, RunAccepted(trace=f"{CALLER[:-2]}00")), (9, RunCompleted(text=""))) == []


def test_what_says_nothing_is_no_trace_context() -> None:
    nothing = (
        *("", "00", CALLER.upper(), f"{CALLER}-1", f"01{CALLER[2:]}", f"{CALLER}\n"),
        CALLER.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        CALLER.replace("00f067aa0ba902b7", "0" * 16),
    )
    for given in nothing:
        assert trace_context.parse(given) is None, given
        trace_context.receive(given.encode())
        assert trace_context.asked_in.get() == ""
    assert trace_of(RUN).hex() == "01563e3ab5d3d6764c61efb99302bd5b"
