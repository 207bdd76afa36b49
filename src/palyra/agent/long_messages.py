"""A message that a model's window has no room for: its beginning and its end are said, and all of
it is attached.

The rule: nothing of it is lost, and whoever reads the conversation sees that it was cut.
"""

from palyra.agent.message_inputs import Enclosed, ReferenceBody
from palyra.core.events import Attachment
from palyra.core.redaction import PLACEHOLDER
from palyra.models import usage_estimate

NAME = "message.txt"
_TYPE = "text/plain; charset=utf-8"
# A message may take half of what a model can be sent: the rest is for the conversation. What is
# said of a longer one is a quarter of that: what somebody wants stands at the beginning or the end.
_SHARE = 2
_SAID = 4
_CHARACTERS_PER_TOKEN = 3


def shortened(text: str, enclosed: Enclosed, budget: int) -> tuple[str, Enclosed]:
    """The text to be said, and what goes with it; both as they were if there is room."""
    most = budget // _SHARE
    if len(text) <= most or usage_estimate.tokens(text) <= most:
        return text, enclosed
    half = most * _CHARACTERS_PER_TOKEN // _SAID // 2
    begin, end = _around(text, half), _around(text, len(text) - half)
    body = ReferenceBody(text.encode(), _TYPE)
    attached = Attachment(
        body.artifact,
        _TYPE,
        name=NAME,
        size=len(body.data),
        text_artifact=body.artifact,
        note="the whole message, of which the middle is left out below",
    )
    said = (
        f"{text[:begin].rstrip()}\n[… {end - begin:,} of {len(text):,} characters are left out"
        f" here: the message is larger than the model's window; all of it is attached as {NAME}"
        f" …]\n{text[end:].lstrip()}"
    )
    return said, Enclosed(
        enclosed.references,
        (*enclosed.attachments, attached),
        (*enclosed.bodies, body),
    )


def _around(text: str, at: int) -> int:
    """A place near there that is not inside of what stands for a secret."""
    for secret in PLACEHOLDER.finditer(text, max(0, at - 200), at + 200):
        if secret.start() < at < secret.end():
            return secret.start()
    return at
