"""Shapes of `--json` where it is not what the API answers: scripts read these older ones."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from palyra.client.types.channels import ChannelStatus, Tested
    from palyra.client.types.journal import CleanedUp
    from palyra.client.types.policy import Explanation
    from palyra.client.types.schedules import ShownSchedule
    from palyra.client.types.sessions import Moment, ReferencesPreview
    from palyra.client.types.skills import Listed, ShownSkill
    from palyra.client.types.tls import Listening
    from palyra.client.types.tls import Shown as Certificate

# How the daemon keeps a skill is not for scripts.
_INTERNAL = ("folder", "state", "vouched", "signature", "generated")


def whole(value: Struct | None, *without: str, **instead: Any) -> dict[str, Any] | None:
    """Return every field, also those that have their default; but for some, and with others in the
    place of some.
    """
    if value is None:
        return None
    fields = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
    return {
        wire: instead[name] if name in instead else getattr(value, name)
        for name, wire in fields
        if name not in without
    }


def channel(found: "ChannelStatus") -> Any:
    return whole(found, connection=whole(found.connection, "heard_ms"))


def channels(found: "Iterable[ChannelStatus]") -> Any:
    return {"channels": [channel(each) for each in found]}


def channel_test(found: "Tested") -> Any:
    return whole(found, me=whole(found.me))


def cleaned(done: "CleanedUp") -> Any:
    return whole(done, artifacts=whole(done.artifacts, "dry_run"))


def explanation(found: "Explanation") -> Any:
    verdict = found.verdict
    about = {
        "reason": verdict.reason,
        "policies": getattr(verdict, "policies", ()),
        "risk": getattr(verdict, "risk", ""),
    }
    return whole(found, verdict={"type": verdict_kind(found), **about})


def verdict_kind(found: "Explanation") -> str:
    return str(type(found.verdict).__struct_config__.tag)


def moment(found: "Moment") -> Any:
    turns = [whole(turn, calls=[whole(call) for call in turn.calls]) for turn in found.turns]
    return whole(found, turns=turns)


def references(found: "ReferencesPreview") -> Any:
    return whole(found, references=[whole(each, "label") for each in found.references])


def schedule(found: "ShownSchedule") -> Any:
    return whole(found, forecast=whole(found.forecast))


def skill(found: "Listed") -> Any:
    return whole(found, record=whole(found.record, *_INTERNAL))


def shown_skill(found: "ShownSkill") -> Any:
    return whole(found, skill=skill(found.skill))


def certificate(found: "Certificate | None") -> Any:
    return whole(found, "begins_ms")


def listening(found: "Listening") -> Any:
    return whole(
        found, "exposure", served=certificate(found.served), authority=certificate(found.authority)
    )
