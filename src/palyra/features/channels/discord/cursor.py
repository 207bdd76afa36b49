"""Where we are in what Discord tells us: what a gateway session is resumed with, and what is
fetched if it cannot be.

Ids of messages grow with time over all of Discord, so one of them says up to where everything was
taken.
"""

import msgspec
from msgspec import Struct

_MOST_DIRECT = 200


class DiscordCursor(Struct, frozen=True, omit_defaults=True):
    """`direct` are the conversations with one person: the gateway does not list them, so we
    remember them, the latest last.
    """

    session: str = ""
    sequence: int = 0
    gateway: str = ""
    last: int = 0
    direct: tuple[int, ...] = ()

    def with_direct(self, channel: int) -> "DiscordCursor":
        if channel in self.direct[-1:]:
            return self
        others = tuple(each for each in self.direct if each != channel)
        return msgspec.structs.replace(self, direct=(*others, channel)[-_MOST_DIRECT:])

    def without_session(self) -> "DiscordCursor":
        return msgspec.structs.replace(self, session="", sequence=0, gateway="")


def read(text: str) -> DiscordCursor:
    """What was stored; a beginning if it is not understood."""
    try:
        return msgspec.json.decode(text, type=DiscordCursor) if text else DiscordCursor()
    except msgspec.MsgspecError:
        return DiscordCursor()


def written(cursor: DiscordCursor) -> str:
    return msgspec.json.encode(cursor).decode()
