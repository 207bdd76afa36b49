"""`palyra approvals`: what waits for an answer, answering it, and taking a wider yes back. One
answer is for one approval.
"""

import sys
from typing import Any, cast

import click
import msgspec

from palyra.cli import formatting, lookup, short_ids
from palyra.cli.approval_prompt import subject_words
from palyra.cli.commands import group, verb
from palyra.cli.render import entries
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.cli.terminal_approval import answer_at_terminal
from palyra.client.http import StopSignal, decode
from palyra.client.types.approvals import AnsweredGroup, Approval
from palyra.core.errors import Conflict, InvalidInput
from palyra.core.events import Decision, Entry, GrantScope
from palyra.core.tools import Preview, Subject

_OUTCOMES = ("happened", "again", "skip")

approvals = group("approvals", "What the agent asks for, and your answers.", default="list")


@verb(approvals, "list", help="List pending approvals.")
@click.option("--all", "everything", is_flag=True, help="Also those that were answered.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 500))
def list_(state: CliState, everything: bool, limit: int) -> None:
    found = state.api.list_approvals(pending="any" if everything else "true", limit=limit).approvals
    if state.out.as_json:
        state.out.json({"approvals": found})
        return
    if not found:
        state.out.line("nothing needs approval")
        return
    rows = [
        [
            each.approval_id,
            each.request.risk,
            one_line(each.request.tool),
            one_line(each.request.preview.title, 60),
            formatting.ago(each.requested_ms),
            each.decision or "pending",
        ]
        for each in found
    ]
    state.out.table(["approval", "risk", "tool", "what", "asked", "state"], rows)


_which = click.argument("approval_id", default="", metavar="[ID]")


@verb(approvals, "show", help="Show one approval with everything that is known about it.")
@_which
def show(state: CliState, approval_id: str) -> None:
    found = short_ids.approval(state.api, approval_id)
    if state.out.as_json:
        state.out.json(found)
        return
    for line in entries.approval_lines(
        state.out.style, found.request, width=_width(state), details=True
    ):
        state.out.line(line)
    shown = _shown(state, found)
    for line in entries.preview_lines(state.out.style, shown, whole=True):
        state.out.line(line)
    if shown.digest:
        state.out.line(
            f"  SHA-256 of what {'ran' if found.decision else 'will run'}: {shown.digest}"
        )
    for number, subject in enumerate(found.request.subjects, 1):
        state.out.line(f"  a wider approval can cover {number}. {subject_words(subject)}")
    if found.request.group and not found.decision:
        for place, each in enumerate(_asked_together(state, found), 1):
            title = one_line(each.request.preview.title, 80)
            risk = f" ({each.request.risk} risk)"
            state.out.line(
                f"  asked together {place}. {one_line(each.request.tool)}: {title}{risk}"
            )
            if each.approval_id != found.approval_id:
                # All of them in one diff: that is what --all says yes to.
                for line in entries.preview_lines(state.out.style, each.request.preview):
                    state.out.line(line)
    state.out.line(f"  session {found.session_id}, asked {formatting.when(found.requested_ms)}")
    state.out.line(f"  {_state(found)}")


@verb(approvals, "allow", help="Allow a call: once, or wider with --session, --for or --always.")
@_which
@click.option(
    "--session",
    "for_session",
    is_flag=True,
    help="Allow similar calls for the rest of the session.",
)
@click.option(
    "--for", "period", metavar="TIME", help="Allow similar calls for a time: 10m, 2h, 1d."
)
@click.option(
    "--always", is_flag=True, help="Allow similar calls from now on; this writes a policy."
)
@click.option(
    "--subject",
    "number",
    type=int,
    metavar="N",
    help="What a wider approval covers, by its number in `show`.  [default: 1]",
)
@click.option("--arguments", metavar="JSON", help="Use these arguments instead of those proposed.")
@click.option("--rate", default="", metavar="N/TIME", help="At most so many calls: 10/hour, 3/day.")
@click.option("--upto", default="", metavar="AMOUNT", help="Amounts up to this.")
@click.option("--all", "together", is_flag=True, help="All calls that were asked together.")
@click.option(
    "--only",
    "only",
    metavar="N,N",
    help="Of those asked together, allow these lines of `show` and deny the others.",
)
@click.option(
    "--seen",
    default="",
    metavar="SHA256",
    help="The digest that `show` prints; needed for what is too long for one look.",
)
def allow(
    state: CliState,
    approval_id: str,
    for_session: bool,
    period: str | None,
    always: bool,
    number: int | None,
    arguments: str | None,
    rate: str,
    upto: str,
    together: bool,
    only: str | None,
    seen: str,
) -> None:
    if for_session + bool(period) + always > 1:
        raise InvalidInput("choose one of --session, --for and --always")
    scope: GrantScope = (
        "session" if for_session else "timed" if period else "always" if always else "once"
    )
    if number is not None and scope == "once":
        raise InvalidInput("--subject goes with --session, --for or --always")
    found = short_ids.approval(state.api, approval_id)
    if together or only:
        if number is not None or arguments or seen or (together and only):
            raise InvalidInput("--all and --only go with --session, --for and --always alone")
        answered = state.api.answer_group(
            found.approval_id,
            decision="allow",
            only=_lines(state, found, only) if only else (),
            others="deny" if only else "",
            scope=scope,
            for_ms=formatting.parse_duration(period) if period else 0,
        )
        _all_answered(state, answered)
        return
    edited = _arguments(arguments) if arguments else None
    subjects = found.request.subjects
    if number is not None and number > 1 and edited is None:
        _tell_past(state, found, number)
    if edited is not None and number is not None:
        # Other arguments are about other things.
        subjects = state.api.preview_approval(found.approval_id, arguments=edited).subjects
    _answered(
        state,
        state.api.answer(
            found.approval_id,
            decision="allow",
            scope=scope,
            subject=_subject(subjects, number) if number is not None else None,
            for_ms=formatting.parse_duration(period) if period else 0,
            arguments=edited,
            seen=seen,
            rate=rate,
            upto=upto,
        ),
    )


@verb(approvals, "past", help="What a wider approval would have let run in the last 30 days.")
@_which
@click.option("--subject", "number", type=int, default=1, show_default=True, metavar="N")
def past(state: CliState, approval_id: str, number: int) -> None:
    found = short_ids.approval(state.api, approval_id)
    _subject(found.request.subjects, number)
    told = state.api.past_of_approval(found.approval_id, subject=number)
    if state.out.as_json:
        state.out.json(told)
        return
    state.out.line(f"{told.calls} calls of the last 30 days, {told.asked} of them asked")
    for each in told.examples:
        state.out.line(f"  {formatting.when(each.time_ms)} {each.verdict}: {one_line(each.about)}")


def _tell_past(state: CliState, approval: Approval, number: int) -> None:
    """Say what a choice wider than the narrowest would have let run."""
    _subject(approval.request.subjects, number)
    told = state.api.past_of_approval(approval.approval_id, subject=number)
    state.out.note(
        f"this covers {told.calls} calls of the last 30 days, {told.asked} of which asked;"
        " `palyra approvals past` lists them"
    )


@verb(approvals, "deny", help="Deny a call, with a reason for the agent.")
@_which
@click.option("--reason", default="", metavar="TEXT", help="Why, for the agent to read.")
@click.option("--all", "together", is_flag=True, help="All calls that were asked together.")
def deny(state: CliState, approval_id: str, reason: str, together: bool) -> None:
    found = short_ids.approval(state.api, approval_id)
    if together:
        _all_answered(
            state, state.api.answer_group(found.approval_id, decision="deny", reason=reason)
        )
        return
    _answered(state, state.api.answer(found.approval_id, decision="deny", reason=reason))


@verb(
    approvals, "settle", help="Say what became of a call that was running when the daemon stopped."
)
@click.argument("given", nargs=-1, required=True, metavar="[ID] happened|again|skip")
def settle(state: CliState, given: tuple[str, ...]) -> None:
    *approval_id, outcome = given
    if outcome not in _OUTCOMES or len(approval_id) > 1:
        raise InvalidInput(f"settle it how? with {', '.join(_OUTCOMES)}, behind the id")
    found = short_ids.approval(state.api, "".join(approval_id))
    _answered(state, state.api.answer(found.approval_id, decision=cast("Decision", outcome)))


@verb(approvals, "grants", help="List what you have allowed beyond one call, and until when.")
def grants(state: CliState) -> None:
    listed = state.api.list_grants()
    found = listed.grants
    if state.out.as_json:
        state.out.json(listed)
        return
    rows = [
        [
            each.approval_id,
            subject_words(each.subject),
            f"session {each.session_id}" if each.session_id else "every session",
            (
                f"until {formatting.when(each.until_ms)}"
                if each.until_ms
                else "until the session ends"
            ),
            formatting.ago(listed.uses[each.approval_id].last_ms)
            if each.approval_id in listed.uses
            else "never",
        ]
        for each in found
    ]
    if rows:
        state.out.table(["grant", "allows", "in", "how long", "last used"], rows)
    else:
        state.out.line("no grants: nothing is allowed beyond what the policy allows")
    state.out.note(
        "what was answered with `always` is in the policy: `palyra policy show` lists it,"
        " always.cedar holds it"
    )


@verb(approvals, "revoke", help="Revoke a grant: similar calls need approval again.")
@click.argument("grant_id", metavar="ID")
def revoke(state: CliState, grant_id: str) -> None:
    whole = short_ids.grant(state.api, grant_id)
    state.api.remove_grant(whole)
    if state.out.as_json:
        state.out.json({"revoked": whole})
    else:
        state.out.line(f"{whole} is revoked: similar calls need approval again")


@verb(approvals, "watch", help="Wait for approvals; on a terminal, answer them as they come.")
def watch(state: CliState) -> None:
    interactive = sys.stdin.isatty() and sys.stderr.isatty() and not state.out.as_json
    known: set[str] = set()

    def tell() -> None:
        for approval in reversed(lookup.pending(state.api)):
            if approval.approval_id in known:
                continue
            known.add(approval.approval_id)
            if interactive:
                try:
                    _answered(
                        state, answer_at_terminal(state, approval.session_id, approval.request)
                    )
                except Conflict as error:
                    state.out.note(error.message)
            else:
                _tell(state, approval)

    # From where the history ends before we look at what is pending: what is asked for meanwhile is
    # told once, and not missed.
    after = state.api.status().entries
    tell()
    state.out.note("waiting for approvals; Ctrl-C ends")
    for message in state.api.http.watch("/v1/events", after, StopSignal(), patience_s=60):
        item = decode(message)
        if isinstance(item, Entry) and item.kind == "approval.requested":
            tell()


def _tell(state: CliState, approval: Approval) -> None:
    if state.out.as_json:
        state.out.json_line(approval)
        return
    request = approval.request
    for line in (
        *entries.approval_lines(state.out.style, request, width=_width(state), details=True),
        *entries.preview_lines(state.out.style, request.preview),
    ):
        state.out.line(line)
    state.out.line(f"  answer with: palyra approvals allow {approval.approval_id}, or deny")
    sys.stdout.flush()


def _asked_together(state: CliState, approval: Approval) -> list[Approval]:
    return state.api.get_approval_group(approval.approval_id).approvals


def _lines(state: CliState, approval: Approval, numbers: str) -> tuple[str, ...]:
    """The approvals that the numbers of `show` stand for."""
    together = _asked_together(state, approval)
    found: list[str] = []
    for each in numbers.replace(",", " ").split():
        if not each.isdecimal() or not 1 <= int(each) <= len(together):
            raise InvalidInput(f"there is no line {each}: `palyra approvals show` numbers them")
        found.append(together[int(each) - 1].approval_id)
    if not found:
        raise InvalidInput("--only needs the numbers of lines, such as 1,3")
    return tuple(found)


def _all_answered(state: CliState, answered: AnsweredGroup) -> None:
    if state.out.as_json:
        state.out.json(answered)
        return
    for each in answered.approvals:
        _answered(state, each)
    for problem in answered.problems:
        state.out.line(f"{problem.approval_id} stays pending: {one_line(problem.message, 300)}")


def _shown(state: CliState, approval: Approval) -> Preview:
    """Return what ran, or all of what would run: an edit counts, and what was cut is asked for."""
    if approval.resolution is not None and approval.resolution.preview is not None:
        return approval.resolution.preview
    if approval.request.preview.length and not approval.decision:
        return state.api.preview_approval(approval.approval_id).preview
    return approval.request.preview


def _width(state: CliState) -> int:
    """Lines are broken for a terminal; a program gets them whole."""
    return state.out.width if state.out.is_terminal else 0


def _subject(subjects: tuple[Subject, ...], number: int) -> Subject:
    if not 1 <= number <= len(subjects):
        raise InvalidInput(f"there is no subject {number}: `palyra approvals show` numbers them")
    return subjects[number - 1]


def _arguments(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInput(f"--arguments must be a JSON object: {error}") from error


def _state(approval: Approval) -> str:
    if not approval.decision:
        return "pending"
    reason = (
        f": {one_line(approval.resolution.reason, 200)}"
        if approval.resolution and approval.resolution.reason
        else ""
    )
    given = approval.resolution
    covers = (
        f", and {subject_words(given.subject)} ({given.scope})" if given and given.subject else ""
    )
    return (
        f"{approval.decision}{covers} by {clean(approval.resolved_by)}"
        f" {formatting.when(approval.resolved_ms)}{reason}"
    )


def _answered(state: CliState, approval: Approval) -> None:
    if state.out.as_json:
        state.out.json(approval)
    else:
        request = approval.request
        state.out.line(
            f"{one_line(request.tool)}, {one_line(request.preview.title, 80)}: {_state(approval)}"
        )
