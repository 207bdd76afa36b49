"""What `--json` prints where it is not what the API answers: every key, also those whose value is
their default.
"""

from typing import Any

import msgspec

from palyra.cli import json_shapes
from palyra.client.types import channels
from palyra.client.types.journal import CleanedUp
from palyra.client.types.policy import Explanation
from palyra.client.types.schedules import ShownSchedule
from palyra.client.types.sessions import Moment, ReferencesPreview
from palyra.client.types.skills import ShownSkill
from palyra.client.types.tls import Listening

SCHEDULE = {
    "schedule_id": "s", "owner": "o", "name": "n", "text": "t", "trigger": {"on": "every", "every_ms": 60_000}, "created_ms": 1,
    "updated_ms": 1, "zone": "Etc/UTC",
}  # fmt: skip
CERTIFICATE = {
    "fingerprint": "f",
    "subject": "s",
    "issuer": "i",
    "names": [],
    "begins_ms": 1,
    "expires_ms": 2,
    "own": True,
}


def printed(shape: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(shape))


def test_a_channel_says_all_of_its_connection_but_when_it_was_heard() -> None:
    wire = {"name": "n", "kind": "k", "enabled": True, "paused": False, "rules": {}, "changed": {}}
    found = msgspec.convert(
        {**wire, "connection": {"state": "off", "heard_ms": 7}}, channels.ChannelStatus
    )
    connection = {
        "state": "off",
        "detail": "",
        "account": "",
        "place": "",
        "connects": 0,
        "since_ms": 0,
    }
    assert printed(json_shapes.channel(found))["connection"] == connection
    assert printed(json_shapes.channels([found]))["channels"][0]["connection"] == connection
    tested = msgspec.convert({"me": {"account": "a"}}, channels.Tested)
    assert printed(json_shapes.channel_test(tested)) == {
        "me": {"account": "a", "names": [], "place": ""},
        "reply_id": "",
    }


def test_cleaning_up_says_what_came_of_the_file_also_if_nothing_did() -> None:
    done = msgspec.convert({"artifacts": {"artifacts": 1, "bytes": 2, "dry_run": True}}, CleanedUp)
    assert printed(json_shapes.cleaned(done)) == {
        "artifacts": {"artifacts": 1, "bytes": 2},
        "file": None,
    }


def test_a_verdict_has_the_same_keys_whatever_it_is() -> None:
    rest = {"version": "v", "tool": "t", "principal": "p", "rules": [], "errors": [], "facts": {}}
    for verdict, risk in (
        ({"type": "allow"}, ""),
        ({"type": "deny"}, ""),
        ({"type": "ask", "risk": "high"}, "high"),
    ):
        given = {**rest, "verdict": {"reason": "why", "policies": ["one"], **verdict}}
        shown = printed(json_shapes.explanation(msgspec.convert(given, Explanation)))
        assert shown["verdict"] == {
            "type": verdict["type"],
            "reason": "why",
            "policies": ["one"],
            "risk": risk,
        }


def test_a_moment_says_everything_of_its_turns_and_their_calls() -> None:
    call = {"call_id": "c", "tool": "t", "arguments": {}}
    rest = {
        "left_out": 0,
        "unread": [],
        "label": {},
        "rules": [],
        "runs": [],
        "changed": [],
        "lasting": [],
    }
    given = {
        "session_id": "s",
        "seq": 1,
        "head_seq": 2,
        "time_ms": 3,
        "kind": "k",
        "turns": [{"seq": 1, "who": "model", "calls": [call]}],
    }
    (turn,) = printed(json_shapes.moment(msgspec.convert({**given, **rest}, Moment)))["turns"]
    shown = {**call, "outcome": "", "text": "", "undone": False}
    assert turn == {
        "seq": 1,
        "who": "model",
        "text": "",
        "run_id": "",
        "notes": [],
        "calls": [shown],
    }


def test_a_reference_says_everything_but_its_label() -> None:
    given = {"references": [{"reference": "@file:a", "kind": "file"}], "characters": 0, "tokens": 0}
    (shown,) = printed(json_shapes.references(msgspec.convert(given, ReferencesPreview)))[
        "references"
    ]
    assert list(shown) == [
        "reference", "kind", "target", "size", "unit", "characters", "tokens", "truncated", "warnings", "error", "policies",
    ]  # fmt: skip


def test_a_schedule_says_everything_around_it() -> None:
    given = {"schedule": SCHEDULE, "when": "every minute", "forecast": {"firings_a_month": 3}}
    shown = printed(json_shapes.schedule(msgspec.convert(given, ShownSchedule)))
    assert list(shown) == [
        "schedule",
        "when",
        "upcoming",
        "upcoming_shown",
        "forecast",
        "firings",
        "secret",
    ]
    assert shown["forecast"] == {
        "firings_a_month": 3, "runs": 0, "like": 0, "tokens_a_run": 0, "cost_microusd_a_run": 0, "cost_microusd_a_month": 0,
    }  # fmt: skip
    assert (
        printed(json_shapes.schedule(msgspec.convert({**given, "forecast": None}, ShownSchedule)))[
            "forecast"
        ]
        is None
    )


def test_a_skill_says_nothing_of_how_it_is_kept() -> None:
    record = {"name": "n", "description": "d", "digest": "x", "folder": "f", "files": {}}
    given = {
        "skill": {"record": record, "state": "enabled", "publisher": ""},
        "permissions": [],
        "tools": [],
        "instructions": "",
    }
    shown = printed(json_shapes.shown_skill(msgspec.convert(given, ShownSkill)))
    kept = [
        "name",
        "description",
        "version",
        "digest",
        "files",
        "granted",
        "signer",
        "installed_ms",
    ]
    assert list(shown["skill"]["record"]) == kept


def test_certificates_do_not_say_since_when_and_listening_not_who_can_reach_it() -> None:
    given = {
        "exposure": {},
        "listeners": [],
        "served": CERTIFICATE,
        "authority": None,
        "workers": [],
    }
    shown = printed(json_shapes.listening(msgspec.convert(given, Listening)))
    served = {name: value for name, value in CERTIFICATE.items() if name != "begins_ms"}
    assert shown == {"listeners": [], "served": served, "authority": None, "workers": []}
