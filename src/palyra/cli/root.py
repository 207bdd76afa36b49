"""All commands by name, and the one place where an error becomes a sentence and an exit code. No
traceback reaches a user.
"""

import os
import sys
import time
import traceback
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

import palyra
from palyra.cli import exit_codes
from palyra.cli.commands import LazyGroup
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.core import disk_errors
from palyra.core.errors import PalyraError

_TABLE = {
    "up": ("serve.commands.up:up", "Start the daemon if it is not running, and chat."),
    "chat": ("cli.chat.command:chat", "Talk with the agent in this folder."),
    "ask": ("cli.ask:ask", "Ask one thing, print the answer."),
    "refs": ("features.references.cli:refs", "What a message names: preview."),
    "approvals": ("cli.approvals:approvals", "Answer what the agent may do."),
    "undo": ("features.time_travel.cli.undo:undo", "Take back changes that the agent made."),
    "rewind": (
        "features.time_travel.cli.rewind:rewind",
        "Take a session back to one of its entries.",
    ),
    "sessions": (
        "features.time_travel.cli.rewind:sessions",
        "List, search and change conversations.",
    ),
    "stop": ("serve.commands.up:stop", "STOP: cancel all runs; --daemon ends the daemon."),
    "status": ("serve.commands.up:status", "What the daemon is and does now."),
    "usage": ("features.budgets.cli:usage", "Tokens and cost, budgets and forecast."),
    "why-tokens": (
        "cli.why_tokens:why_tokens",
        "What the prompts of a run were made of, turn by turn.",
    ),
    "fork": (
        "features.time_travel.cli.fork:fork",
        "Take a run up again from an entry, with another model or policy.",
    ),
    "replay": (
        "serve.commands.replay:replay",
        "Run a recorded run again, offline, and see where it differs.",
    ),
    "journal": ("cli.journal:journal", "Show, verify, export, back up and restore the history."),
    "policy": (
        "serve.commands.policy_tools:policy",
        "What the agent may do: show, check, explain, test, suggest.",
    ),
    "rules": ("cli.rules:rules", "What you laid down for a session: list, add, remove."),
    "notes": (
        "features.project_notes.cli:notes",
        "AGENTS.md and the like: review what the agent may follow.",
    ),
    "channels": (
        "features.channels.cli:channels",
        "Chats: connections, rules, who is admitted, what became of a message.",
    ),
    "acp": ("features.acp.cli:acp", "Be the agent of an editor, over standard input and output."),
    "mcp": (
        "features.mcp.cli:mcp",
        "Other people's tools: list, show, accept, permit, add, remove; serve.",
    ),
    "workers": (
        "features.workers.cli:workers",
        "Machines that run tools: list, enrol, show, drain, revoke.",
    ),
    "worker": ("features.workers.node.cli:worker", "Be such a machine: enrol, run."),
    "skills": (
        "features.skills.cli:skills",
        "What the agent was taught: list, show, install, trust, remove.",
    ),
    "schedule": (
        "features.schedules.cli:schedule",
        "What the agent does at its time: add, list, show, pause, run, next.",
    ),
    "tasks": (
        "features.tasks.cli:tasks",
        "Background work: list, show, retry, cancel, pause, resume.",
    ),
    "browser": ("serve.commands.browser:browser", "The agent's browser: status, install."),
    "memory": (
        "features.memory.cli:memory",
        "What is remembered: list, search, add, correct, forget, review.",
    ),
    "learn": (
        "features.learning.cli:learn",
        "What was learned: list, show, accept, reject, roll back.",
    ),
    "vault": ("features.vault.cli:vault", "Secrets for tools: list, set, rotate, remove."),
    "config": ("serve.commands.config:config", "Show and change settings."),
    "token": ("cli.tokens:token", "Access tokens for programs and other people."),
    "tls": (
        "features.tls.cli:tls",
        "Who can reach the daemon, and its certificates: show, renew, export-ca.",
    ),
    "login": ("cli.tokens:login", "Print a one-time link for the browser."),
    "doctor": ("serve.commands.doctor:doctor", "Look for problems, with a fix for each."),
    "incidents": (
        "features.health.cli:incidents",
        "What went wrong with the daemon, and what was tried.",
    ),
    "notices": ("features.health.cli:notices", "What you were told without asking."),
    "serve": ("serve.commands.up:serve", "Run the daemon in the foreground."),
    "completion": ("cli.completion:completion", "Print a completion script for bash, zsh or fish."),
    "help": ("cli.help:help_", "Say what a command does and takes."),
    "version": ("cli.help:version", "Print the version."),
}

root = LazyGroup(
    "palyra",
    table=_TABLE,
    help="A self-hosted agent: exact, safe and provable. Begin with `palyra up`.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
root.params.append(
    click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        help="Print the version.",
        callback=lambda c, p, v: _version(c, v),
    )
)


def _version(context: click.Context, wanted: bool) -> None:
    if wanted:
        click.echo(f"palyra {palyra.__version__}")
        context.exit()


def run(arguments: list[str]) -> int:
    """Run a command line and give its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # What cannot be encoded is escaped: a C locale must not turn an answer into a failure.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    state = CliState()
    try:
        result: Any = root.main(arguments, prog_name="palyra", standalone_mode=False, obj=state)
        sys.stdout.flush()
        return result if isinstance(result, int) else exit_codes.OK
    except NoArgsIsHelpError as error:
        # A command that was left unfinished asks what there is: that is an answer, not a mistake.
        click.echo(error.message)
        return exit_codes.OK
    except click.UsageError as error:
        # Reading the options ended at the mistake, perhaps before this one.
        state.as_json = state.as_json or "--json" in arguments
        return _usage(state, error)
    except click.ClickException as error:
        return _say(state, "invalid_input", error.format_message(), exit_codes.USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _say(state, "interrupted", "interrupted", exit_codes.INTERRUPTED)
    except BrokenPipeError:
        # The reader left, as `head` does. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    except PalyraError as error:
        return _say(state, error.code, error.message, exit_codes.code_of(error), error.details)
    except OSError as error:
        known = disk_errors.trouble(error, error.filename or state.home) or (
            _unusable(state, error) if error.filename else ""
        )
        return (
            _say(state, "unavailable", known, exit_codes.FAILED) if known else _defect(state, error)
        )
    except Exception as error:  # noqa: BLE001  the last door: a defect is recorded and named, not shown as a traceback
        return _defect(state, error)


def _usage(state: CliState, error: click.UsageError) -> int:
    where = error.ctx.command_path if error.ctx else "palyra"
    said = " ".join(error.format_message().split())
    return _say(state, "invalid_input", f"{said} (see `{where} --help`)", exit_codes.USAGE)


def _unusable(state: CliState, error: OSError) -> str:
    """A file or folder that does not let us is nobody's defect."""
    advice = "check who may write there"
    if str(error.filename).startswith(str(state.home)):
        advice += ", or name another home folder with --home or PALYRA_HOME"
    return f"{error.filename}: {(error.strerror or type(error).__name__).lower()}: {advice}"


def _say(
    state: CliState, code: str, message: str, exit_code: int, details: dict[str, Any] | None = None
) -> int:
    if state.as_json:
        import msgspec

        shown = msgspec.json.encode(
            {"error": {"code": code, "message": message, "details": details or {}}}, enc_hook=str
        )
        click.echo(shown.decode(), err=True)
    else:
        click.echo(f"error: {clean(message)}", err=True)
    return exit_code


def _defect(state: CliState, error: Exception) -> int:
    where = "and could not be recorded"
    try:
        state.log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(
            state.log_path,
            "a",
            encoding="utf-8",
            opener=lambda path, flags: os.open(path, flags, 0o600),
        ) as log:
            log.write(
                time.strftime("%Y-%m-%dT%H:%M:%S%z ") + "".join(traceback.format_exception(error))
            )
        where = f"recorded in {state.log_path}"
    except OSError:
        pass
    message = (
        f"this is a defect in palyra ({type(error).__name__}: {error}), {where}; please report it"
    )
    return _say(state, "internal", message, exit_codes.FAILED)
