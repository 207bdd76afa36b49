"""`palyra runs`: one run, and what can be done while it waits for its provider."""

import time

import click

from palyra.cli import short_ids
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client.types.sessions import RunRow
from palyra.core import wait_words

runs = group("runs", "Runs: show one, try again now, cancel.")


@verb(runs, "show", help="Show how a run stands, and what it waits for.")
@click.argument("run_id")
def show(state: CliState, run_id: str) -> None:
    run = state.api.get_run(short_ids.run(state.api, run_id))
    state.out.result(run, said(run))


@verb(runs, "retry", help="Try again now, or with another model, for a run that waits.")
@click.argument("run_id")
@click.option("--model", default="", metavar="NAME", help="Ask this model, as provider/model.")
def retry(state: CliState, run_id: str, model: str) -> None:
    run = state.api.retry(short_ids.run(state.api, run_id), model=model)
    state.out.result(run, said(run))


@verb(runs, "cancel", help="End a run, in whatever state it is.")
@click.argument("run_id")
def cancel(state: CliState, run_id: str) -> None:
    reason = "cancelled on the command line"
    run = state.api.cancel(short_ids.run(state.api, run_id), reason=reason)
    state.out.result(run, said(run))


def said(run: RunRow) -> str:
    """`01J…: waiting. Model overloaded; next try in 40 s. Gives up in 14 min.`"""
    wait = run.wait
    if wait is None:
        reason = f" ({clean(run.reason)})" if run.reason else ""
        return f"{run.run_id}: {run.state}{reason}"
    now_ms = int(time.time() * 1000)
    sentence = wait_words.sentence(wait.cause, wait.next_try_ms, now_ms)
    return (
        f"{run.run_id}: waiting for {clean(wait.provider)}/{clean(wait.model)}. {sentence}"
        f" Gives up in {wait_words.span(wait.deadline_ms - now_ms)}."
    )
