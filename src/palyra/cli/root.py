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
from palyra.core import errors
from palyra.core.errors import PalyraError

_TABLE = {
    "setup": ("features.setup.cli:setup", "Find a model and use it, without editing a file."),
    "up": ("serve.commands.up:up", "Start Palyra and chat."),
    "chat": ("cli.chat.command:chat", "Chat with the agent in this folder."),
    "ask": ("cli.ask:ask", "Ask one question and print the answer."),
    "refs": (
        "features.references.cli:refs",
        "Preview the files and pages that a message references.",
    ),
    "approvals": ("cli.approvals:approvals", "List and answer what needs approval."),
    "undo": ("features.time_travel.cli.undo:undo", "Undo changes that the agent made."),
    "rewind": (
        "features.time_travel.cli.rewind:rewind",
        "Rewind a session to one of its entries.",
    ),
    "sessions": (
        "features.time_travel.cli.rewind:sessions",
        "List, search and change sessions.",
    ),
    "runs": ("cli.runs:runs", "Show, retry or cancel a run."),
    "stop": ("serve.commands.up:stop", "Cancel all runs; --daemon stops the daemon."),
    "status": ("serve.commands.up:status", "Show the daemon, its model and what is running."),
    "usage": ("features.budgets.cli:usage", "Tokens and cost, budgets and forecast."),
    "why": (
        "features.why.cli:why",
        "What led to an entry, a file, a message or a cost.",
    ),
    "why-tokens": (
        "cli.sessions:why_tokens",
        "Show what the prompts of a run were made of.",
    ),
    "fork": (
        "features.time_travel.cli.fork:fork",
        "Run again from an entry, with another model or policy.",
    ),
    "replay": (
        "serve.commands.replay:replay",
        "Replay a recorded run offline and compare.",
    ),
    "journal": (
        "features.proof.cli:journal",
        "Show, verify, export and back up the history.",
    ),
    "backup": (
        "serve.commands.backup:backup",
        "Backups of the home: now, list, check.",
    ),
    "restore": (
        "serve.commands.backup:restore",
        "Put a backup in the place of the home; --check only tries it.",
    ),
    "witness": (
        "features.proof.witness_cli:witness",
        "Cosign the journals of other machines.",
    ),
    "policy": (
        "serve.commands.policy_tools:policy",
        "Show, check, explain, test and suggest policies.",
    ),
    "security": (
        "features.security_score.cli:security",
        "How safe and how quiet your last month was.",
    ),
    "nodes": ("features.nodes.cli:nodes", "Nodes that share the journal, and which leads."),
    "node": ("features.nodes.cli:node", "Hand over from one node to another."),
    "rules": ("cli.rules:rules", "Rules for one session: list, add, remove."),
    "notes": (
        "features.project_notes.cli:notes",
        "Review AGENTS.md and other project notes.",
    ),
    "channels": (
        "features.channels.cli:channels",
        "Chat platforms: connect, pair people, trace messages.",
    ),
    "acp": ("features.acp.cli:acp", "Run as an agent for your editor (ACP)."),
    "mcp": (
        "features.mcp.cli:mcp",
        "MCP servers: add, accept, permit, remove; or serve as one.",
    ),
    "workers": (
        "features.workers.cli:workers",
        "Machines that run tools: list, enrol, revoke.",
    ),
    "worker": ("features.workers.node.cli:worker", "Run as a worker: enrol, run."),
    "skills": (
        "features.skills.cli:skills",
        "Skills: list, install, trust, remove.",
    ),
    "schedule": (
        "features.schedules.cli:schedule",
        "Scheduled runs: add, list, pause, run now.",
    ),
    "tasks": (
        "features.tasks.cli:tasks",
        "Background tasks: list, retry, cancel, pause.",
    ),
    "browser": ("serve.commands.browser:browser", "The agent's browser: status, install."),
    "memory": (
        "features.memory.cli:memory",
        "What the agent remembers: list, search, add, forget.",
    ),
    "learn": (
        "features.learning.cli:learn",
        "Review what the agent learned: accept, reject, roll back.",
    ),
    "vault": ("features.vault.cli:vault", "Secrets for tools: list, set, rotate, remove."),
    "models": ("features.setup.cli:models", "Models: list, test, add, default, remove."),
    "config": ("serve.commands.config:config", "Show and change settings."),
    "token": ("cli.tokens:token", "Access tokens for programs and other people."),
    "tls": (
        "features.tls.cli:tls",
        "Certificates and who can reach the daemon.",
    ),
    "login": ("cli.tokens:login", "Print a one-time link to the console."),
    "doctor": ("serve.commands.doctor:doctor", "Find problems, with a fix for each."),
    "incidents": (
        "features.health.cli:incidents",
        "What went wrong with the daemon, and what was tried.",
    ),
    "notices": ("features.health.cli:notices", "Notices that Palyra sent you."),
    "upgrade": (
        "serve.commands.upgrade:upgrade",
        "Upgrade the home to this version; --rehearse tries it on a copy.",
    ),
    "rollback": (
        "serve.commands.upgrade:rollback",
        "Go back to the state before the last upgrade.",
    ),
    "migrate": (
        "serve.commands.migrate:migrate",
        "Move the journal to a PostgreSQL server, or back into a file.",
    ),
    "service": (
        "serve.commands.service:service",
        "Start Palyra with the system: install, uninstall, status.",
    ),
    "serve": ("serve.commands.up:serve", "Run the daemon in the foreground."),
    "completion": ("cli.completion:completion", "Print a completion script for bash, zsh or fish."),
    "help": ("cli.help:help_", "Show help for a command."),
    "version": ("cli.help:version", "Print the version."),
}

root = LazyGroup(
    "palyra",
    table=_TABLE,
    help="A self-hosted agent you can verify. Start with: palyra up",
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
        known = errors.trouble(error, error.filename or state.home) or (
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
