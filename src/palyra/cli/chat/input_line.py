"""The input line of a chat: keys, history and completion on top of prompt-toolkit.

Enter sends the message. Alt-Enter, or a backslash at the end, begins a new line. A paste is never
sent by its line breaks.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, has_focus
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, Window
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.widgets import SearchToolbar

from palyra.cli.safe_text import clean

MOST_HISTORY = 1_000
_MENU_ROWS = 8
# Indents the second line of a message and those after it, so that they stand below the text of the
# first.
_NEXT_LINE = "  "


class CompletionChoice(Struct, frozen=True):
    """A completion: the whole text before the cursor as it would become, and a few words for the
    menu.
    """

    text: str
    about: str = ""


Complete = Callable[[str], list[CompletionChoice]]


class InputListener(Protocol):
    """The owner of the line: names the prompt and acts on keys. `settle` is called after all keys
    of one read.
    """

    def prompt(self) -> str: ...
    def status_line(self) -> str: ...
    def settle(self) -> None: ...
    def entered(self, text: str) -> None: ...
    def interrupted(self) -> None: ...
    def ended(self) -> None: ...
    def suspended(self) -> None: ...


class InputLine:
    def __init__(self, history: Sequence[str] = (), complete: Complete = lambda text: []) -> None:
        self.history = list(history)
        self._complete = complete
        self._buffer = Buffer(
            history=_History(self.history),
            completer=ThreadedCompleter(_Completer(complete)),
            complete_while_typing=Condition(
                lambda: _may_complete(self._buffer.document.text_before_cursor)
            ),
            multiline=True,
        )
        self._search = SearchToolbar(ignore_case=True)

    @property
    def text(self) -> str:
        return self._buffer.text

    @property
    def in_use(self) -> bool:
        """Return whether the person is writing a message or searching the history."""
        return bool(self._buffer.text) or get_app().layout.is_searching

    @property
    def menu_is_open(self) -> bool:
        """Return whether the menu or the search takes the room below the line."""
        return bool(self._buffer.complete_state) or get_app().layout.is_searching

    def clear(self) -> None:
        self._buffer.reset()

    def remember(self, line: str) -> None:
        if line.strip() and self.history[-1:] != [line]:
            self.history.append(line)
            del self.history[:-MOST_HISTORY]
            self._buffer.reset()

    def forget(self) -> None:
        """Remove the newest line from the history."""
        self.history.pop()
        self._buffer.reset()

    def windows(self, listener: InputListener, rows: Callable[[], int]) -> list[AnyContainer]:
        """Return the line, its menu and its search bar. The line takes half of the screen at most,
        then scrolls.
        """

        def prefix(line: int, wrap: int) -> StyleAndTextTuples:
            return to_formatted_text(ANSI(listener.prompt()) if line == wrap == 0 else _NEXT_LINE)

        control = BufferControl(
            self._buffer,
            input_processors=[_Harmless()],
            search_buffer_control=self._search.control,
            preview_search=True,
        )
        line = Window(
            control,
            height=lambda: Dimension(max=max(1, rows() // 2)),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=prefix,
        )
        return [line, CompletionsMenu(max_height=_MENU_ROWS), self._search]

    def bindings(self, listener: InputListener) -> KeyBindings:
        keys = KeyBindings()
        here = has_focus(self._buffer)
        selected = Condition(
            lambda: bool(
                self._buffer.complete_state and self._buffer.complete_state.current_completion
            )
        )

        @keys.add("enter", filter=here & ~selected)
        @keys.add("c-j", filter=here & ~selected)
        @keys.add("c-o", filter=here)
        def _(event: KeyPressEvent) -> None:
            self._enter(listener)

        @keys.add("enter", filter=here & selected)
        @keys.add("c-j", filter=here & selected)
        def _(event: KeyPressEvent) -> None:
            self._buffer.complete_state = None

        @keys.add("escape", "enter", filter=here)
        def _(event: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("escape", filter=here & has_completions)
        def _(event: KeyPressEvent) -> None:
            self._buffer.cancel_completion()

        @keys.add("tab", filter=here)
        def _(event: KeyPressEvent) -> None:
            self._tab()

        @keys.add("c-c", filter=here)
        def _(event: KeyPressEvent) -> None:
            if self.text:
                self.clear()
            else:
                listener.interrupted()

        @keys.add("c-d", filter=here)
        def _(event: KeyPressEvent) -> None:
            if self.text:
                self._buffer.delete()
            else:
                listener.ended()

        @keys.add("c-z", filter=here)
        def _(event: KeyPressEvent) -> None:
            listener.suspended()

        # Both delete across the lines of a message.
        @keys.add("c-u", filter=here)
        def _(event: KeyPressEvent) -> None:
            self._buffer.delete_before_cursor(self._buffer.cursor_position)

        @keys.add("c-k", filter=here)
        def _(event: KeyPressEvent) -> None:
            self._buffer.delete(len(self._buffer.text) - self._buffer.cursor_position)

        return keys

    def _enter(self, listener: InputListener) -> None:
        if self.text.endswith("\\") and self._buffer.document.is_cursor_at_the_end:
            self._buffer.delete_before_cursor()
            self._buffer.insert_text("\n")
            return
        text = self.text
        self.clear()
        listener.entered(text)

    def _tab(self) -> None:
        """Insert what all choices have in common. If that adds nothing, select the next choice."""
        before = self._buffer.document.text_before_cursor
        choices = [each.text for each in self._complete(before)]
        common = _common(choices)
        if not common.startswith(before):
            # A name that is found by a part of it takes the place of what was typed.
            self._buffer.start_completion(select_first=True)
        elif len(common) > len(before) or len(choices) == 1:
            # A folder or a kind of reference is not complete yet.
            done = len(choices) == 1 and not common.endswith(("/", ":"))
            self._buffer.cancel_completion()
            self._buffer.insert_text(common[len(before) :] + " " * done)
        elif self._buffer.complete_state:
            self._buffer.complete_next()
        elif choices:
            self._buffer.start_completion(select_first=True)


def _common(texts: list[str]) -> str:
    """Return the longest text that all of them begin with."""
    first, last = min(texts, default=""), max(texts, default="")
    return first[
        : next((at for at, char in enumerate(first) if last[at : at + 1] != char), len(first))
    ]


def _may_complete(text: str) -> bool:
    return text.startswith("/") or "@" in text


class _History(History):
    """The history of a chat, oldest first, in a list that its owner changes."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    async def load(self) -> AsyncGenerator[str, None]:
        for line in reversed(self._lines):
            yield line

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._lines)

    def store_string(self, string: str) -> None:
        self._lines.append(string)


class _Completer(Completer):
    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        choices = self._complete(before)
        # The menu shows the word that is being written, not the sentence before it.
        start = max(0, _common([before, *(each.text for each in choices)]).rfind("@"))
        for each in choices:
            yield Completion(each.text[start:], start - len(before), display_meta=each.about)


class _Harmless(Processor):
    """Display of control and direction characters, which a paste may contain, as escapes."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        text = fragment_list_to_text(fragments)
        if clean(text) == text:
            return Transformation(fragments)
        shown = [clean(char) for char in text]
        starts = [0]
        for each in shown:
            starts.append(starts[-1] + len(each))

        def source_to_display(at: int) -> int:
            return starts[min(at, len(text))]

        def display_to_source(at: int) -> int:
            import bisect

            return max(0, bisect.bisect_right(starts, at) - 1)

        return Transformation([("", "".join(shown))], source_to_display, display_to_source)
