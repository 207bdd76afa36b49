"""Faults of the server and of the connection to it."""

from palyra.models.faulty import wire
from palyra.models.faulty.behaviour import (
    ANSWER,
    Fault,
    always,
    answering,
    answering_once,
    honest,
    once,
    passing,
    split,
    whole,
)
from palyra.models.faulty.wire import DONE, HangUp, Silence, WireReply, call, text

_HUGE = 4 << 20

REFUSALS: dict[str, Fault] = {
    "wrong-key": Fault(
        "the key is refused (401)",
        always(wire.refusal(401, "Incorrect API key provided", code="invalid_api_key")),
        "failed",
        "auth",
        "key",
    ),
    "no-permission": Fault(
        "the key may not use this model (403)",
        always(wire.refusal(403, "You do not have access to this model")),
        "failed",
        "permission",
        "access",
    ),
    "no-credit": Fault(
        "the account has no credit left (402)",
        always(wire.refusal(402, "Insufficient balance")),
        "failed",
        "quota",
        "credit",
    ),
    "quota-as-429": Fault(
        "the account has no credit left, said as too many requests",
        always(wire.refusal(429, "You exceeded your current quota", code="insufficient_quota")),
        "failed",
        "quota",
        "credit",
    ),
    "no-such-model": Fault(
        "the model is not there (404)",
        always(wire.refusal(404, "The model does not exist", code="model_not_found")),
        "failed",
        "model_not_found",
        "model",
    ),
    "no-such-path": Fault(
        "the address is wrong: a plain 404",
        always(WireReply((b"404 page not found",), 404, "text/plain", length=18)),
        "failed",
        "bad_request",
        "base_url",
    ),
    "slow-down-once": Fault(
        "too many requests, once, with a time to come back",
        once(wire.refusal(429, "Rate limit reached", headers={"retry-after": "1"})),
        tape="rate_limited",
    ),
    "slow-down-always": Fault(
        "too many requests, always",
        always(wire.refusal(429, "Rate limit reached")),
        "failed",
        "rate_limited",
        "slow down",
    ),
    "overloaded-once": Fault(
        "overloaded, once (529)", once(wire.refusal(529, "Overloaded")), tape="overloaded"
    ),
    "overloaded-always": Fault(
        "overloaded, always (503)",
        always(wire.refusal(503, "The engine is currently overloaded")),
        "failed",
        "overloaded",
        "overloaded",
    ),
    "crash-once": Fault(
        "a stack trace instead of an answer, once (500)",
        once(
            WireReply((b"Traceback (most recent call last): boom",), 500, "text/plain", length=39)
        ),
        tape="overloaded",
    ),
    "bad-gateway-once": Fault(
        "a proxy's error page, once (502)",
        once(wire.page(502, "<html><h1>502 Bad Gateway</h1></html>")),
        tape="overloaded",
    ),
    "web-page": Fault(
        "a web page where the model server should be",
        always(wire.page(200, "<!doctype html><title>Welcome to nginx!</title>")),
        "failed",
        "not_a_model_server",
        "not a model server",
    ),
    "redirect": Fault(
        "a redirect to a page for people",
        always(wire.page(302, "moved", location="https://example.invalid/login")),
        "failed",
        "bad_request",
        "base_url",
    ),
    "no-tools": Fault(
        "a model that takes no tools says so (400)",
        lambda asked: (
            wire.refusal(400, "this model does not support tools") if asked.tools else honest(asked)
        ),
    ),
    "too-long": Fault(
        "the conversation is longer than the window (400)",
        always(
            wire.refusal(
                400,
                "This model's maximum context length is 512 tokens",
                code="context_length_exceeded",
            )
        ),
        "failed",
        "context_too_long",
        "too long",
    ),
    "too-long-in-stream": Fault(
        "the conversation is longer than the window, said in the stream",
        always(
            WireReply(
                (
                    b'data: {"error": {"message": "the request exceeds the available context size",'
                    b' "code": 400, "type": "exceed_context_size_error"}}\n\n',
                )
            )
        ),
        "failed",
        "context_too_long",
        "too long",
    ),
    "blocked": Fault(
        "the content is refused",
        always(wire.refusal(400, "flagged by our moderation", code="content_filter")),
        "failed",
        "content_blocked",
        "refused the content",
    ),
    "error-as-success": Fault(
        "an error with status 200, once",
        once(
            WireReply(
                (b'{"error": {"message": "upstream unavailable", "code": 503}}',),
                media_type=wire.JSON,
                length=59,
            )
        ),
        tape="overloaded",
    ),
    "error-in-stream": Fault(
        "an error in the middle of the stream, once",
        answering_once(
            *text("The folder ", finish=None),
            b'data: {"error": {"message": "Overloaded", "type": "overloaded_error"}}\n\n',
            end=False,
        ),
        tape="overloaded",
    ),
}

CONNECTIONS: dict[str, Fault] = {
    "hangs-up-once": Fault(
        "the connection ends without a word, once",
        once(WireReply((HangUp(),), head=False)),
        tape="network",
    ),
    "hangs-up-always": Fault(
        "the connection ends without a word, always",
        always(WireReply((HangUp(),), head=False)),
        "failed",
        "network",
        "connection",
    ),
    "not-http": Fault(
        "something that speaks no HTTP listens there",
        always(WireReply((b"SSH-2.0-OpenSSH_9.2\r\n",), head=False)),
        "failed",
        "not_a_model_server",
        "does not speak HTTP",
    ),
    "ends-after-head": Fault(
        "the stream ends before its first word, once",
        answering_once(HangUp()),
        tape="cut",
    ),
    "cut-in-text": Fault(
        "the stream ends in the middle of the answer, once",
        answering_once(*text("The folder ", "was li", finish=None), HangUp(), end=False),
        tape="cut",
    ),
    "cut-in-call": Fault(
        "the stream ends in the middle of a call, once",
        passing(
            lambda asked: (
                honest(asked)
                if asked.results
                else WireReply((*call(asked.list_tool, '{"path": "do', finish=None), HangUp()))
            )
        ),
        tape="cut",
    ),
    "no-finish": Fault(
        "a whole answer without a word that it is finished",
        answering(*text(ANSWER, finish=None), end=False),
        tape="cut",
    ),
    "no-done": Fault(
        "a finished answer without the mark at the end",
        answering(*text(ANSWER), end=False),
    ),
    "stays-open": Fault(
        "a finished answer on a connection that stays open",
        answering(*text(ANSWER), DONE, Silence(), end=False),
    ),
    "late": Fault("the first word takes a second", answering(Silence(1.0), *text(ANSWER))),
    "silent": Fault(
        "the stream falls silent in the middle of the answer, once",
        answering_once(*text("The folder ", finish=None), Silence(), end=False),
        tape="timeout",
    ),
    "drip": Fault(
        "the stream arrives byte by byte",
        answering(*split(b"".join((*text(ANSWER), DONE)), 1), end=False),
    ),
    "odd-cuts": Fault(
        "the stream is cut in the middle of letters",
        answering(*split(b"".join((*text("Größe: 3 \U0001f4c1 — " + ANSWER), DONE)), 3), end=False),
    ),
    "odd-lines": Fault(
        "comments, a byte order mark and other ends of lines between the events",
        answering(
            b"\xef\xbb\xbf: hello\r\n\r\n",
            *[part.replace(b"\n", b"\r\n") for part in text(ANSWER)],
            b": keep-alive\r\n\r\n",
        ),
    ),
    "not-streamed": Fault(
        "a whole answer although a stream was asked for",
        lambda asked: whole(ANSWER) if asked.results else honest(asked),
    ),
    "broken-event": Fault(
        "an event that is no JSON, once",
        answering_once(*text("The folder ", finish=None), b'data: {"choices": [{\n\n', end=False),
        tape="malformed",
    ),
    "short-length": Fault(
        "a length that promises more than comes, once",
        once(WireReply((b'{"choices": [',), media_type=wire.JSON, length=4096)),
        tape="network",
    ),
    "huge-event": Fault(
        "an event of four megabytes that says nothing",
        answering(b'data: {"choices": [], "padding": "' + b"x" * _HUGE + b'"}\n\n', *text(ANSWER)),
    ),
}
