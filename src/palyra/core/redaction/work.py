"""The work budget of one text. Judging is bounded by the text's length, so no text can hold the
redactor up.

One unit is about a microsecond. Ordinary text uses a few per cent of its budget. A text that is
nothing but names of secrets uses it up, and then the redactor fails safe: the rest of that stretch
goes unread, behind one placeholder.
"""

# A short text may be dense: an environment file, a list of accounts.
_LEAST = 1_200
_CHARACTERS = 2  # so many of them earn one unit
UNREAD = "unread"  # the rule under which a stretch goes that the budget did not reach


class Work:
    """What may still be spent on a text of `size` characters."""

    __slots__ = ("judged", "left")

    def __init__(self, size: int) -> None:
        self.judged: dict[
            tuple[object, ...], bool
        ] = {}  # the same value under the same kind of name is judged once
        self.left = _LEAST + size // _CHARACTERS

    def spend(self, units: int) -> bool:
        """Spend `units`. Return False once there are none left."""
        self.left -= units
        return self.left >= 0
