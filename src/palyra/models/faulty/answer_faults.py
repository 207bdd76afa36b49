"""Faults of what the model says: its answers and its calls."""

from palyra.models.faulty.behaviour import (
    ANSWER,
    Fault,
    answering,
    answering_once,
    as_text,
    calling,
    first_then_honest,
    honest,
    passing,
)
from palyra.models.faulty.wire import call, chunk, stream, text

ANSWERS: dict[str, Fault] = {
    "empty-once": Fault("an answer without a word, once", answering_once(*text("")), tape="empty"),
    "empty-always": Fault(
        "an answer without a word, always", answering(*text("")), "failed", "empty", "empty"
    ),
    "blank": Fault(
        "an answer of white space, always", answering(*text(" \n\n ")), "failed", "empty", "empty"
    ),
    "only-thoughts": Fault(
        "thoughts and no answer, always",
        answering(chunk({"reasoning_content": "Hm."}), chunk(finish="stop")),
        "failed",
        "empty",
        "empty",
    ),
    "thoughts-in-text": Fault(
        "thoughts in the answer's own text",
        answering(*text("<think>", "Let me see. ", "</think>", ANSWER)),
    ),
    "cut-by-length": Fault(
        "an answer cut off by its length, once",
        passing(
            lambda asked: (
                stream(*text("The folder was listed; ", finish="length"))
                if asked.results
                else honest(asked)
            )
        ),
        tape="length",
    ),
    "always-too-long": Fault(
        "an answer that is always cut off by its length",
        answering(*text("and on and further and ", finish="length")),
        "answered",
        "length",
        "incomplete",
    ),
    "call-cut-by-length": Fault(
        "a call cut off by its length, once",
        first_then_honest(lambda asked: call(asked.list_tool, '{"path": "d', finish="length")),
        tape="length",
    ),
    "repeats-words": Fault(
        "the same words again and again, without end",
        answering(*text(*["the same again, "] * 20_000)),
        "failed",
        "repetition",
        "repeat",
    ),
    "repeats-lines": Fault(
        "the same line again and again, without end",
        answering(*text(*["- and one more line of the list\n"] * 20_000)),
        "failed",
        "repetition",
        "repeat",
    ),
    "nothing-but-newlines": Fault(
        "ends of lines without end",
        answering(*text(*["\n"] * 50_000)),
        "failed",
        "repetition",
        "repeat",
    ),
    "refusal-field": Fault(
        "a refusal in a field of its own",
        answering(chunk({"refusal": "I cannot say that."}), chunk(finish="stop")),
        sees="I cannot say that.",
    ),
    "terminal-codes": Fault(
        "codes in the answer that act on a terminal",
        answering(*text("\x1b[2J\x1b]0;owned\x07", ANSWER, "\x1b[8m")),
    ),
    "no-usage": Fault("an answer without a count of tokens", answering(*text(ANSWER))),
    "odd-usage": Fault(
        "counts of tokens that are none",
        answering(
            *text(
                ANSWER,
                usage={"prompt_tokens": -5, "completion_tokens": "many", "total_tokens": None},
            )
        ),
    ),
    "nulls": Fault(
        "null wherever it may stand",
        answering(
            b'data: {"id": null, "choices": null, "usage": null}\n\n',
            b'data: {"choices": [{"index": null, "delta": null, "finish_reason": null}]}\n\n',
            *text(ANSWER),
        ),
    ),
}

CALLS: dict[str, Fault] = {
    "call-as-text": Fault(
        "a tool call written as text",
        calling(lambda asked: text(as_text({"name": "fs.list", "arguments": {}}))),
    ),
    "quoted-call": Fault(
        "a tool call that is only quoted",
        answering(
            *text("Such a call looks like this:\n\n```\n", as_text({"name": "fs.list"}), "\n```\n")
        ),
        sees="Such a call looks like this",
    ),
    "single-quotes": Fault(
        "arguments in single quotes",
        calling(lambda asked: call(asked.list_tool, "{'path': '.'}")),
        tape="repaired",
    ),
    "missing-brace": Fault(
        "arguments without their last brace",
        calling(lambda asked: call(asked.list_tool, '{"path": "."')),
        tape="repaired",
    ),
    "arguments-as-object": Fault(
        "arguments as an object instead of text",
        calling(
            lambda asked: (
                chunk(
                    {
                        "tool_calls": [
                            {
                                "index": 0,
                                "id": "call_1",
                                "function": {"name": asked.list_tool, "arguments": {}},
                            }
                        ]
                    }
                ),
                chunk(finish="tool_calls"),
            )
        ),
    ),
    "no-call-id": Fault(
        "a call without an id", calling(lambda asked: call(asked.list_tool, {}, id=None))
    ),
    "same-call-id": Fault(
        "two calls with one id",
        calling(
            lambda asked: (
                *call(asked.list_tool, {}, finish=None),
                *call(asked.list_tool, {"path": "."}, index=1),
            )
        ),
    ),
    "old-call": Fault(
        "a call in the form of before tools",
        calling(
            lambda asked: (
                chunk({"function_call": {"name": asked.list_tool, "arguments": "{}"}}),
                chunk(finish="function_call"),
            )
        ),
    ),
    "call-and-stop": Fault(
        "a call, and a finish that says there is none",
        calling(lambda asked: call(asked.list_tool, {}, finish="stop")),
    ),
    "no-call-and-calls": Fault(
        "a finish that says there is a call, and none",
        passing(calling(lambda asked: text("", finish="tool_calls"))),
        tape="empty",
    ),
    "unknown-tool": Fault(
        "a call of a tool that does not exist, once",
        first_then_honest(lambda asked: call("do_magic", {})),
        tape="denied",
    ),
    "unknown-tool-always": Fault(
        "calls of a tool that does not exist, always",
        lambda asked: stream(*call("do_magic", {"n": asked.results})),
        "failed",
        "arguments",
        "wrong names",
    ),
    "wrong-arguments": Fault(
        "arguments that the tool refuses, always",
        lambda asked: stream(*call(asked.list_tool, {"paths": [asked.results]})),
        "failed",
        "arguments",
        "arguments",
    ),
    "broken-arguments": Fault(
        "arguments that are no JSON at all, always",
        lambda asked: stream(*call(asked.list_tool, "path = here")),
        "failed",
        "arguments",
        "arguments",
    ),
    "loop": Fault(
        "the same call again and again",
        lambda asked: stream(*call(asked.list_tool, {})),
        "failed",
        "loop",
        "same tool call",
    ),
    "two-loops": Fault(
        "two calls in turn, again and again",
        lambda asked: stream(*call(asked.list_tool, {"path": "."} if asked.results % 2 else {})),
        "failed",
        "loop",
        "same tool call",
    ),
}
