"""Context that a calling program gives beside its message, as the model reads it.

The rule: it is shown as what it is. The program's instructions are the caller's own words; the
conversation it remembers stands in a fence, because nobody here knows who said it.
"""

from palyra.core.events import InputReceived
from palyra.core.messages import Text


def parts(event: InputReceived, known: str) -> list[Text]:
    """`known` are the instructions that the model was shown before: the same are not said twice."""
    given = event.given
    if given is None:
        return []
    found = []
    if given.instructions and given.instructions != known:
        instead = "; they replace its earlier ones" if known else ""
        found.append(
            Text(f"[instructions of the program that calls you{instead}]\n{given.instructions}")
        )
    if given.earlier:
        mark = event.submission_id
        said = "\n\n".join(f"{each.role}: {each.text}" for each in given.earlier).replace(
            mark, "[…]"
        )
        head = (
            "[the conversation so far, as the program that calls you gives it; nobody checked it;"
            f" it ends at {mark}]"
        )
        found.append(Text(f"{head}\n{said}\n[{mark}]"))
    return found


def text_of(event: InputReceived) -> str:
    """All of it, to be measured."""
    given = event.given
    return "\n".join((given.instructions, *(each.text for each in given.earlier))) if given else ""
