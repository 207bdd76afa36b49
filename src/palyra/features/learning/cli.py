"""`palyra learn`: what was learned from finished runs, yours to accept, reject and take back."""

from collections.abc import Iterator
from typing import Any

import click

from palyra.cli import formatting, short_ids
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.learning import Candidate

_STATES = (
    "waiting",
    "pending_review",
    "conflicted",
    "applied",
    "suppressed",
    "rejected",
    "rolled_back",
    "all",
)
_KINDS = ("any", "fact", "preference", "procedure", "policy")
_PAGE = 500
_APPLYING_S = 120.0

learn = group(
    "learn",
    "What was learned: list, show, accept, reject, rollback, reflect, settings.",
    default="list",
)


@verb(learn, "list", help="List what waits for you, or what is in another state, newest first.")
@click.option("--state", "wanted", type=click.Choice(_STATES), default="waiting", show_default=True)
@click.option("--kind", type=click.Choice(_KINDS), default="any", show_default=True)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
def list_(state: CliState, wanted: Any, kind: Any, limit: int) -> None:
    page = state.api.list_candidates(state=wanted, kind=kind, limit=limit)
    if state.out.as_json:
        state.out.json(page)
        return
    if page.candidates or wanted != "waiting":
        _table(state, page.candidates)
    if wanted == "waiting":
        _applied(state)
        state.out.note(
            "palyra learn show ID, then accept ID or reject ID"
            if page.candidates
            else "nothing needs review"
        )


def _applied(state: CliState) -> None:
    """Show what was applied without asking beside what needs review, with the way to undo it."""
    recent = state.api.list_candidates(state="applied", limit=20).candidates
    for each in recent:
        if each.automatic:
            state.out.line(
                f"applied at once: {one_line(each.content, 100)}  (undo: palyra learn rollback"
                f" {each.candidate_id})"
            )


@verb(learn, "show", help="Show one candidate: its evidence, and what accepting it would do.")
@click.argument("candidate_id", metavar="ID")
def show(state: CliState, candidate_id: str) -> None:
    shown = state.api.get_candidate(_id(state, candidate_id))
    if state.out.as_json:
        state.out.json(shown)
        return
    candidate = shown.candidate
    state.out.line(clean(candidate.content))
    told = {
        "id": candidate.candidate_id,
        "kind": candidate.kind,
        "state": ": ".join(filter(None, (candidate.state.replace("_", " "), candidate.reason))),
        "confidence": f"{candidate.confidence_bps / 100:.0f} %",
        "risk": candidate.risk,
        "trust": f"{candidate.label.integrity} {', '.join(candidate.label.sources)}".strip(),
        "found by": candidate.found_by,
        "accepting": f"would {shown.would}" if "accept" in shown.moves else "",
        "but": shown.problem,
        "became": _became(candidate),
        "found": formatting.when(candidate.created_ms),
    }
    for name, value in told.items():
        if value:
            state.out.line(state.out.style(f"{name:>12}", "dim") + f"  {clean(value)}")
    for each in candidate.evidence:
        state.out.line(
            state.out.style(f"{'said':>12}", "dim")
            + f"  “{one_line(each.quote, 160)}” (entry {each.seq} of {each.session_id})"
        )
    if shown.diff:
        state.out.line(clean(shown.diff))


@verb(
    learn,
    "accept",
    help="Accept a candidate, which does it: remembers it, installs the skill, adds the policy.",
)
@click.argument("candidate_id", metavar="ID")
@click.argument("text", nargs=-1)
def accept(state: CliState, candidate_id: str, text: tuple[str, ...]) -> None:
    _say(
        state,
        state.api.within(_APPLYING_S).accept_candidate(
            _id(state, candidate_id), text=" ".join(text)
        ),
        "accepted",
    )


@verb(learn, "reject", help="Reject a candidate. It is not suggested again.")
@click.argument("candidate_id", metavar="ID")
@click.option("--reason", default="", metavar="TEXT")
def reject(state: CliState, candidate_id: str, reason: str) -> None:
    _say(state, state.api.reject_candidate(_id(state, candidate_id), reason=reason), "rejected")


@verb(
    learn, "rollback", help="Roll back what a candidate did. The next prompt knows nothing of it."
)
@click.argument("candidate_id", metavar="ID")
def rollback(state: CliState, candidate_id: str) -> None:
    _say(
        state,
        state.api.within(_APPLYING_S).roll_back_candidate(_id(state, candidate_id)),
        "undone",
    )


@verb(learn, "reflect", help="Look now for what can be learned from a finished run.")
@click.argument("run_id", metavar="RUN")
def reflect(state: CliState, run_id: str) -> None:
    done = state.api.within(_APPLYING_S).reflect_on_run(short_ids.run(state.api, run_id))
    if state.out.as_json:
        state.out.json(done)
        return
    _table(state, done.candidates)
    state.out.note(
        f"read by {clean(done.found_by)}" + (f"; {clean(done.note)}" if done.note else "")
    )


@verb(
    learn, "settings", help="Show from which confidence on something is shown, or applied at once."
)
def settings(state: CliState) -> None:
    found = state.api.learning_settings()
    if state.out.as_json:
        state.out.json(found)
        return
    rows: list[list[Any]] = []
    for kind in ("fact", "preference", "procedure", "policy"):
        threshold = getattr(found.thresholds, kind)
        never = (
            kind in ("procedure", "policy")
            or threshold.auto_bps > 10_000
            or not found.thresholds.automatic
        )
        rows.append(
            [kind, f"{threshold.review_bps:,}", "never" if never else f"{threshold.auto_bps:,}"]
        )
    state.out.table(["kind", "shown from (bps)", "applied at once from"], rows)
    on = "after each run" if found.enabled else "only on demand"
    state.out.line(
        f"read {on} by {found.model or 'rules'}, a session at most every"
        f" {found.cooldown_ms // 60_000} minutes,"
    )
    state.out.line(
        f"with at most {found.budget_tokens:,} tokens and {found.most_candidates} candidates each"
        " time"
    )
    state.out.note("change them with palyra config set learning.NAME VALUE")


def _id(state: CliState, given: str) -> str:
    def listed() -> Iterator[str]:
        return (
            each.candidate_id
            for each in state.api.list_candidates(state="all", limit=_PAGE).candidates
        )

    return short_ids.candidate(given, listed)


def _table(state: CliState, found: list[Candidate]) -> None:
    rows = [
        [
            each.candidate_id,
            each.kind,
            each.state.replace("_", " "),
            f"{each.confidence_bps / 100:.0f} %",
            one_line(each.content, 100),
        ]
        for each in found
    ]
    state.out.table(["id", "kind", "state", "sure", "what"], rows)


def _became(candidate: Candidate) -> str:
    effect = candidate.effect
    if effect.skill:
        tests = f", tested by palyra replay --suite {effect.file}" if effect.file else ""
        return f"the skill {effect.skill}{tests}"
    if effect.memory_id:
        return f"memory {effect.memory_id}"
    return f"the policy file {effect.file}" if effect.file else ""


def _say(state: CliState, candidate: Candidate, done: str) -> None:
    if state.out.as_json:
        state.out.json(candidate)
        return
    became = _became(candidate) if candidate.state == "applied" else ""
    state.out.line(
        f"{done}: {one_line(candidate.content, 160)}" + (f"  → {clean(became)}" if became else "")
    )
    if candidate.state == "applied" and candidate.effect.skill:
        state.out.note(
            f"it is quarantined: look at it, then palyra skills enable {candidate.effect.skill}"
        )
