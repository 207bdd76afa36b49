"""Texts of the daemon itself in chats: short, plain, and never more than the reader may know."""

from palyra.core import wait_words
from palyra.core.errors import PalyraError
from palyra.core.events import ApprovalRequested, RunCancelled, RunCompleted, RunFailed
from palyra.core.sentences import visible
from palyra.core.tools import Preview
from palyra.features.channels.model import Button
from palyra.store.run_waits import RunWait
from palyra.store.runs import RunRow

# Of one message on the narrowest platform; what is longer comes in several, and nobody reads those
# as one.
_PREVIEW = 1_500


# Failures that a sender can do something about; of the others a guest learns only that there was
# one.
_FOR_GUESTS = frozenset({"invalid_input", "limit_exceeded", "not_found", "conflict", "forbidden"})
_MODELS = 30
# Ends of runs that are about the guest's own share.
_GUESTS_OWN = frozenset({"budget_spent"})
NOT_AVAILABLE = "I am not available at the moment. The owner can see why; please try again later."


WAIT_BUTTONS = (
    Button("Try now", "retry", "good"),
    Button("Switch model", "model"),
    Button("Cancel", "cancel", "bad"),
)


def waiting(
    wait: RunWait, now_ms: int, *, inside: bool, buttons: bool
) -> tuple[str, tuple[Button, ...]]:
    """Return what is said while a run waits for its provider, and what can be done about it. A
    guest learns nothing of the cause.
    """
    if not inside:
        return "I am not available at the moment. I will answer as soon as I can.", ()
    action = wait_words.action(wait.cause)
    said = wait_words.sentence(wait.cause, wait.next_try_ms, now_ms)
    lines = [f"{said} I keep trying, and answer as soon as it works."]
    if action:
        lines.append(f"You can {action}.")
    if not buttons:
        lines.append("Write `!retry` to try now, `!model` to switch models, or `!cancel`.")
    return " ".join(lines), WAIT_BUTTONS if buttons else ()


_STATES = {"accepted": "waits its turn", "in_progress": "is being worked on", "waiting": "waits"}


def run_state(run: RunRow, wait: RunWait | None, now_ms: int, *, inside: bool) -> str:
    """Return how a run stands that has not ended. A guest learns nothing of providers."""
    if wait is None:
        said = _STATES[run.state] + (f" ({run.reason})" if run.reason else "")
    elif inside:
        said = f"waits: {wait_words.sentence(wait.cause, wait.next_try_ms, now_ms)}"
    else:
        said = _STATES["waiting"]
    return f"{run.run_id[-8:]} {said}"


def models(used: str, known: list[str]) -> str:
    """Return the list that a model is picked from."""
    lines = [f"{number}. {name}" for number, name in enumerate(known[:_MODELS], 1)]
    more = len(known) - _MODELS
    lines += [f"… and {more} more"] if more > 0 else []
    return "\n".join(
        [
            f"This conversation uses {used}. There are:",
            *lines,
            "Write `model NUMBER` or `model NAME` to switch.",
        ]
    )


def problem(error: PalyraError, *, inside: bool) -> str:
    """Return why something cannot be done, as a user of the daemon (`inside`) or a guest may know
    it.
    """
    return (
        error.message
        if inside or error.code in _FOR_GUESTS
        else "something went wrong here; the owner can see what"
    )


def answer(event: RunCompleted | RunFailed | RunCancelled, *, inside: bool) -> str:
    """Return what a run came to. `inside`: only a user of the daemon reads it; a guest learns
    nothing of hosts and models.
    """
    match event:
        case RunCompleted(text=text):
            return text if text.strip() else "(There is nothing to say to that.)"
        case RunFailed(message=message):
            return (
                f"That did not work: {message}"
                if inside or event.reason in _GUESTS_OWN
                else NOT_AVAILABLE
            )
        case RunCancelled(reason=reason):
            return f"Stopped: {reason}."


def short(approval_id: str) -> str:
    """Return as much of an id as a person types."""
    return approval_id[-8:]


def approval(
    request: ApprovalRequested, who: str, *, buttons: bool, brief: bool = False, together: int = 0
) -> tuple[str, tuple[Button, ...]]:
    """The question as it fits a chat, and the buttons to answer it with. `brief`: others read
    along, so the content is left out. `together`: so many calls are asked at once, of which this
    is the first.
    """
    preview = request.preview
    body, whole = shown(preview)
    fence = "`" * max(3, _longest_run(body) + 1)
    language = {"diff": "diff", "command": "sh"}.get(preview.kind, "")
    lines = [
        f"{visible(who)} needs approval: {request.tool}, {request.risk} risk.",
        f"Why: {visible(request.why)}",
    ]
    if request.label.integrity != "trusted":
        lines.append(
            "It has read untrusted text from"
            f" {visible(', '.join(request.label.sources)) or 'outside'}."
        )
    lines += ["", visible(preview.title)]
    if brief:
        lines.append("What exactly it would do is in the console, or ask me directly.")
    elif body.strip():
        lines += [f"{fence}{language}", body, fence]
    if request.plan:
        lines.append(f"Not part of the plan: {visible(request.plan)}")
    name = short(request.approval_id)
    if together > 1:
        lines.append(
            f"{together} calls are asked together: `approve {name} all` allows them all,"
            f" `deny {name} all` denies them."
        )
    choices = ("happened", "again", "skip") if request.about == "in_doubt" else ()
    if not whole and not choices:
        # A yes to something that nobody has seen whole is none.
        lines.append(elsewhere(request.approval_id))
        deny = Button("Deny", f"deny {request.approval_id}", "bad")
        if not buttons:
            lines.append(f"To refuse it, write `deny {name}` and why.")
        return "\n".join(lines), (deny,) if buttons else ()
    if not buttons:
        wider = (
            f", `approve {name} session`, `approve {name} 1h`"
            if request.subjects and not brief
            else ""
        )
        how = (
            f"`approve {name}`{wider}"
            if not choices
            else ", ".join(f"`approve {name} {each}`" for each in choices)
        )
        lines.append(
            f"Answer with {how}, or `deny {name}` and why."
            if not choices
            else f"Answer with {how}."
        )
        return "\n".join(lines), ()
    if choices:
        return "\n".join(lines), tuple(
            Button(each.capitalize(), f"approve {request.approval_id} {each}") for each in choices
        )
    yes = [Button("Approve", f"approve {request.approval_id}", "good")]
    if request.subjects and not brief:
        covers = request.subjects[0]
        lines.append(
            f"Session and 1 hour cover {visible(f'{covers.tool} {covers.value}'.strip())}."
        )
        yes += [Button("For this session", f"approve {request.approval_id} session")]
        yes += [Button("For 1 hour", f"approve {request.approval_id} 1h")]
    return "\n".join(lines), (*yes, Button("Deny", f"deny {request.approval_id}", "bad"))


def shown(preview: Preview) -> tuple[str, bool]:
    """Return what a chat shows of a preview, and whether that is all of it: else its beginning, its
    end, length and digest.
    """
    body = visible(preview.body)
    if len(body) <= _PREVIEW:
        return body, not preview.length
    head, tail = body[: _PREVIEW * 3 // 4], body[-_PREVIEW // 4 :]
    length = preview.length or len(body)
    return (
        (
            f"{head}\n… ({length:,} characters in all, SHA-256 {preview.digest[:16] or 'unknown'})"
            f" …\n{tail}"
        ),
        False,
    )


def elsewhere(approval_id: str) -> str:
    return (
        "This is too long to be shown whole here, so it cannot be approved here. See all of it in"
        f" the console (Approvals) or with `palyra approvals show {approval_id}`, and answer there."
    )


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest


def pairing(code: str, minutes: int) -> str:
    shown = f"{code[:4]}-{code[4:]}"
    return (
        f"We have not met. Your code is {shown}; it works once, for {minutes} minutes. Give it to"
        f" the owner of this agent: they approve it with `palyra channels pair {shown}`, in the"
        f" console, or by writing `pair {shown}` here. Then write to me again."
    )


def still_pairing(minutes: int) -> str:
    left = f"{minutes} more {'minute' if minutes == 1 else 'minutes'}"
    return (
        "I do not know you yet, so I cannot read your messages. The code that I sent you works for"
        f" {left}: give it to the owner of this agent, and write to me again when they have let"
        " you in."
    )


NO_MORE_CODES = (
    "You have asked for too many codes in the last hour. Ask the owner of this agent, or write to"
    " me again later."
)

HELP = """\
status – what is under way
stop – end everything of yours that runs
reset – start this conversation over
new – begin another conversation; this one stays in the archive
approve ID [session, 2h], deny ID [why] – answer what the agent asks for
model [NAME or NUMBER] – which model answers here
/retry – ask a model again that could not answer
/cancel – end what is under way in this conversation
usage – what was used today
remember TEXT – keep something in mind
pair CODE – admit somebody, or be admitted
whoami – who you are to the agent
help – this list
Anything else goes to the agent."""
