"""One reply while it streams, so that every word of it is shown exactly once, also when the
connection or the daemon broke.

Pieces are not stored and may be missing after a break; the finished reply is stored and is the
truth. Where both agree nothing is said twice; where they cannot be brought together the whole reply
is shown again, and that is said.
"""

from collections.abc import Callable

BEGINS_AGAIN = "(reply restarted)"


class ReplyText:
    """`say` prints words of the reply; `note` prints a remark of ours on a line of its own."""

    def __init__(self, say: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._say = say
        self._note = note
        self._turn: tuple[str, int] | None = None
        self._shown = ""
        self._current = ""
        # Whether the pieces are known to come from the beginning of the turn, and whether to wait
        # for the whole instead.
        self._sure = False
        self._quiet = False
        # Set until the first piece after a connection was made: the turn under way may have begun
        # without us.
        self._doubt = True
        self._ours: set[str] = set()

    def connected(self) -> None:
        self._doubt = True
        self._sure = False
        self._ours.clear()
        self._current = ""

    def started(self, run_id: str) -> None:
        """We began this run, and were listening: none of its pieces can be missing."""
        self._ours.add(run_id)

    def began_again(self) -> None:
        """The model is asked the same again, from the beginning."""
        self._current = ""
        if not self._doubt:
            self._sure, self._quiet = True, False

    def piece(self, run_id: str, turn: int, text: str) -> None:
        doubtful = self._doubt and run_id not in self._ours
        self._doubt = False
        if self._turn != (run_id, turn):
            self._begin(run_id, turn)
            self._sure, self._quiet = not doubtful, doubtful
        elif doubtful and not self._shown:
            self._quiet = True
        if not self._quiet:
            self._current += text
            self._show()

    def so_far(self, run_id: str, turn: int, text: str) -> None:
        """Everything the turn has said: what was missed is there again, and no piece behind it can
        be missing.
        """
        self._doubt = False
        if self._turn != (run_id, turn):
            self._begin(run_id, turn)
        self._sure, self._quiet, self._current = True, False, text
        self._show()

    def _show(self) -> None:
        if self._shown.startswith(self._current):
            return
        if self._current.startswith(self._shown):
            self._say(self._current[len(self._shown) :])
            self._shown = self._current
        elif self._sure:
            self._note(BEGINS_AGAIN)
            self._say(self._current)
            self._shown = self._current
        else:
            self._quiet = True

    def finished(self, run_id: str, turn: int, text: str) -> None:
        """The stored reply: show what is missing of it."""
        if self._turn != (run_id, turn):
            self._begin(run_id, turn)
        if text.startswith(self._shown):
            self._say(text[len(self._shown) :])
        else:
            self._note(BEGINS_AGAIN)
            self._say(text)
        self._turn = None
        self._shown = self._current = ""

    def _begin(self, run_id: str, turn: int) -> None:
        self._turn = (run_id, turn)
        self._shown = self._current = ""
