"""Up to where everything was taken. Slack's time stamps name messages and grow over a whole
workspace, so one of them says it.

Replies in a thread are not in the history of its channel; the threads that were spoken in lately
are remembered besides.
"""

import msgspec
from msgspec import Struct

_MOST_THREADS = 100


class SlackCursor(Struct, frozen=True, omit_defaults=True):
    last: str = ""
    # Channel and time stamp of each, the latest last.
    threads: tuple[tuple[str, str], ...] = ()

    def after(self, stamp: str) -> "SlackCursor":
        return msgspec.structs.replace(self, last=max(self.last, stamp, key=moment))

    def with_thread(self, channel: str, thread: str) -> "SlackCursor":
        if (channel, thread) in self.threads[-1:]:
            return self
        others = tuple(each for each in self.threads if each != (channel, thread))
        return msgspec.structs.replace(self, threads=(*others, (channel, thread))[-_MOST_THREADS:])


def moment(stamp: str) -> tuple[int, int]:
    """A time stamp as what it counts: a float would not hold it."""
    seconds, _, rest = stamp.partition(".")
    return (
        (int(seconds), int(rest or 0))
        if seconds.isdecimal() and (rest or "0").isdecimal()
        else (0, 0)
    )


def read(text: str) -> SlackCursor:
    """What was stored; a beginning if it is not understood."""
    try:
        return msgspec.json.decode(text, type=SlackCursor) if text else SlackCursor()
    except msgspec.MsgspecError:
        return SlackCursor()


def written(cursor: SlackCursor) -> str:
    return msgspec.json.encode(cursor).decode()
