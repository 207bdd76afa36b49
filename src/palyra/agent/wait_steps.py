"""Steps over the runs that wait for a provider: let them through, end them, plan them again; and
what is decided and said about them.
"""

from collections.abc import Mapping

from palyra.agent.run_end import end
from palyra.core import wait_words
from palyra.core.errors import Conflict
from palyra.core.events import RunFailed, RunResumed, RunWaiting
from palyra.core.messages import ModelFailure
from palyra.core.verdicts import Origin
from palyra.models.reliability import NEEDS_PERSON, OUTLIVED
from palyra.models.routing import Target
from palyra.store import run_waits, runs, tape
from palyra.store.database import Tx
from palyra.store.run_waits import RunWait, WaitingRun
from palyra.store.runs import RunRow

UNAVAILABLE = "provider_unavailable"


def root_origin(tx: Tx, run_id: str) -> Origin:
    """The origin of the run that a subagent works for in the end."""
    accepted = runs.accepted(tx, run_id)
    while accepted.parent_run_id:
        accepted = runs.accepted(tx, accepted.parent_run_id)
    return accepted.origin


def let_through(tx: Tx, found: list[WaitingRun]) -> list[str]:
    """Set these to work; those that do not wait any more are given back."""
    gone: list[str] = []
    for each in found:
        run = runs.find(tx, each.run_id)
        if run is None or (run.state, run.reason) != ("waiting", "provider"):
            gone.append(each.run_id)
            continue
        tape.append(
            tx, each.session_id, each.principal, [RunResumed(after="provider")], each.run_id
        )
    return gone


def check_waits(run: RunRow) -> None:
    """Raise Conflict if a run does not wait for a provider."""
    if run.wait is None:
        raise Conflict(
            f"run {run.run_id} does not wait for a provider: it is {run.state}", run_id=run.run_id
        )


def try_again(tx: Tx, run_id: str, principal: str, model: str) -> RunRow:
    """Set a run to work that waits, with another model if one is named."""
    run = runs.get(tx, run_id, principal)
    check_waits(run)
    resumed = RunResumed(after="provider", model=model)
    tape.append(tx, run.session_id, run.principal, [resumed], run_id)
    return runs.get(tx, run_id, principal)


def give_up(tx: Tx, waiting: WaitingRun, wait: RunWait) -> None:
    """End a run that has waited until its deadline, unless it does not wait any more."""
    run = runs.find(tx, waiting.run_id)
    ending = RunFailed(reason=UNAVAILABLE, message=_given_up(wait))
    if run is not None and (run.state, run.reason) == ("waiting", "provider"):
        end(tx, waiting.run_id, [], ending)


def plan_again(tx: Tx, plans: list[run_waits.ProviderWait], by_ms: int) -> None:
    """Say anew until when everybody waits, after the clock was set by so much."""
    for plan in plans:
        run_waits.plan(tx, plan)
    for waiting, wait in run_waits.everybody(tx):
        later = RunWaiting(
            cause=wait.cause,
            message=wait.message,
            provider=wait.provider,
            model=wait.model,
            next_try_ms=wait.next_try_ms,
            deadline_ms=wait.deadline_ms + by_ms,
            since_ms=wait.since_ms + by_ms,
            attempt=wait.attempt,
        )
        tape.append(tx, waiting.session_id, waiting.principal, [later], waiting.run_id)


def _given_up(wait: RunWait) -> str:
    """Return what happened, and what to do about it."""
    waited = wait_words.span(wait.deadline_ms - wait.since_ms)
    action = wait_words.action(wait.cause) or (
        "choose another model, or name a fallback in models.fallbacks"
    )
    return (
        f"{wait.provider}/{wait.model} did not answer for {waited}"
        f" ({wait_words.cause(wait.cause).lower()}): {wait.message}; {action}"
    )


def hope(failures: Mapping[Target, ModelFailure]) -> tuple[Target, ModelFailure] | None:
    """Return whose answer is worth waiting for: the first who may be back by itself, else the first
    whom a person can help.
    """
    if any(failure.failure == "content_blocked" for failure in failures.values()):
        return None
    outlived = [each for each in failures.items() if each[1].failure in OUTLIVED]
    passing = [each for each in outlived if each[1].failure not in NEEDS_PERSON]
    return next(iter(passing or outlived), None)


def for_owner(waiting: RunWaiting) -> str:
    """Return what the owner is told where only a person can help."""
    return (
        f"{waiting.provider}: {wait_words.cause(waiting.cause)}. Runs wait until you"
        f" {wait_words.action(waiting.cause)}. {waiting.message}"
    )
