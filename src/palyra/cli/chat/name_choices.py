"""Names for the menu of a chat: sessions by title and models, as they are typed."""

import time

from palyra.cli import formatting, lookup, short_ids
from palyra.cli.chat.input_line import CompletionChoice
from palyra.cli.safe_text import clean, one_line
from palyra.client import Client
from palyra.core.errors import PalyraError

_FRESH_S = 10.0
_MOST = 50
_TITLE = 48


class NameChoices:
    """Names asked for on a thread of its own while a person types; they are kept for a moment."""

    def __init__(self, api: Client) -> None:
        self._api = api
        self._kept: dict[str, tuple[float, list[tuple[str, str]]]] = {}

    def choices(self, command: str, typed: str) -> list[CompletionChoice]:
        """Return what may follow `/session` or `/model`: by name, by number, or by a part of it."""
        wanted = typed.casefold()
        return [
            CompletionChoice(f"/{command} {value}", about)
            for value, about in self._listed(command)
            if wanted in f"{value} {about}".casefold()
        ]

    def _listed(self, command: str) -> list[tuple[str, str]]:
        at, found = self._kept.get(command, (0.0, []))
        if not at or time.monotonic() - at > _FRESH_S:
            try:
                found = self._sessions() if command == "session" else self._models()
            except PalyraError:
                found = []
            self._kept[command] = (time.monotonic(), found)
        return found

    def _sessions(self) -> list[tuple[str, str]]:
        numbers = short_ids.session_numbers(self._api)
        return [
            (
                f"#{numbers.get(each.session_id, 0)}",
                f"{one_line(each.title, _TITLE) or 'untitled'} · {formatting.ago(each.updated_ms)}",
            )
            for each in lookup.sessions(self._api, limit=_MOST)
        ]

    def _models(self) -> list[tuple[str, str]]:
        return [
            (clean(each.name), f"{formatting.count(each.context_tokens)} tokens")
            for each in self._api.list_models().models
        ]
