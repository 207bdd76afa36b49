"""The redactor as the event loop uses it: a long text goes to another thread."""

from typing import Any

from palyra.core import redaction
from palyra.core.redaction.engine import is_small
from palyra.system import thread_pool

# Longer texts would hold the event loop up.
_INLINE = 4_096


class Redactor(redaction.SecretRedactor):
    """`redact`, and the same for the event loop."""

    async def redacted(self, text: str) -> str:
        """`redact` for the event loop: a long text goes to another thread."""
        return (
            self.redact(text)
            if len(text) <= _INLINE
            else await thread_pool.everyday.run(self.redact, text)
        )

    async def redacted_json(self, value: Any) -> Any:
        """`redact_json` for the event loop."""
        return (
            self.redact_json(value)
            if is_small(value, _INLINE)
            else await thread_pool.everyday.run(self.redact_json, value)
        )
