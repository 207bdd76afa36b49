"""`palyra channels`: where people reach the agent: connections, rules, who is admitted, and what
became of a message.
"""

from typing import Any

import click
import msgspec

from palyra.cli import daemon_process, formatting, json_shapes
from palyra.cli.commands import verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.channels import ChannelStatus
from palyra.core.errors import Conflict, InvalidInput
from palyra.features.channels.people_cli import channels, checked_name

_COLORS = {
    "connected": "green",
    "connecting": "yellow",
    "lost": "red",
    "failed": "red",
    "off": "dim",
}


@verb(channels, "list", help="List channels with their state.")
def list_(state: CliState) -> None:
    found = state.api.list_channels().channels
    if state.out.as_json:
        state.out.json(json_shapes.channels(found))
        return
    if not found:
        state.out.line("no channel is configured: `palyra channels add` says which kinds there are")
        return
    rows = [
        [
            each.name,
            each.kind,
            "paused" if each.paused else each.connection.state,
            each.connection.account,
            str(sum(each.messages.values())),
            str(sum(each.messages.get(name, 0) for name in ("received", "held", "queued"))),
            str(each.outbox.get("dead", 0)),
        ]
        for each in found
    ]
    state.out.table(
        ["name", "kind", "state", "account", "messages", "open", "dead"],
        rows,
        right=["messages", "open", "dead"],
    )
    for each in found:
        if each.connection.detail:
            state.out.note(f"{each.name}: {one_line(each.connection.detail)}")


@verb(channels, "status", help="Show one channel: its connection, its rules, what is under way.")
@click.argument("name")
def status(state: CliState, name: str) -> None:
    _show(state, state.api.get_channel(checked_name(name)))


def _show(state: CliState, found: ChannelStatus) -> None:
    out = state.out
    if out.as_json:
        out.json(json_shapes.channel(found))
        return
    word = "paused" if found.paused else found.connection.state
    out.line(
        f"{out.style(found.name, 'bold')} ({clean(found.kind)}):"
        f" {out.style(word, _COLORS.get(word, 'yellow'))}"
    )
    about = {
        "detail": found.connection.detail,
        "account": found.connection.account,
        "where": found.connection.place,
        "connected": (
            f"{found.connection.connects} times" if found.connection.connects != 1 else "once"
        ),
        "messages": ", ".join(f"{count} {name}" for name, count in found.messages.items()),
        "to be sent": ", ".join(f"{count} {name}" for name, count in found.outbox.items()),
    }
    for key, value in about.items():
        if value:
            out.line(f"  {key:<12} {one_line(value, 200)}")
    for key, value in msgspec.to_builtins(found.rules).items():
        mark = "  (changed while it runs)" if key in found.changed else ""
        out.line(f"  {key:<26} {one_line(str(value), 120)}{mark}")


@verb(
    channels,
    "add",
    help=(
        "Add a channel to the settings. Without arguments: which kinds there are and what each"
        " needs."
    ),
)
@click.argument("kind", required=False)
@click.argument("name", required=False)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of its kind; secrets as NAME=vault:NAME.",
)
def add(state: CliState, kind: str | None, name: str | None, given: tuple[str, ...]) -> None:
    from palyra.features.channels import registry

    if kind is None:
        found = registry.everything()
        if state.out.as_json:
            state.out.json({"kinds": [each.name for each in found]})
            return
        for each in found:
            state.out.line(
                f"{state.out.style(each.name, 'bold')}: {each.title}; `palyra channels add"
                f" {each.name}` says how"
            )
        if not found:
            state.out.line("there is no kind of channel to add yet")
        return
    chosen = registry.find(kind)
    if name is None:
        _guide(state, chosen)
        return
    if name in state.settings.tables("channels"):
        raise Conflict(
            f"there is a channel {name} already: `palyra config set channels.{name}.…` changes it"
        )
    known = {setting.name for setting in chosen.settings}
    names = {each.partition("=")[0] for each in given}
    missing = [each.name for each in chosen.settings if each.required and each.name not in names]
    if names - known or missing:
        wrong = (
            f"there is no setting {', '.join(sorted(names - known))}"
            if names - known
            else f"--set {missing[0]}=… is missing"
        )
        raise InvalidInput(f"{wrong}: `palyra channels add {kind}` says what it needs")
    daemon_process.make_home(state.home)
    state.settings.set_values({f"channels.{name}.kind": kind, f"channels.{name}.settings": given})
    told = daemon_process.reload_if_running(state)
    how = "it is being connected" if told else "it connects with the daemon"
    text = f"{clean(name)} is in the settings and {how}; try it with `palyra channels test {name}`"
    state.out.result({"name": name, "kind": kind}, text)


def _guide(state: CliState, kind: Any) -> None:
    out = state.out
    if out.as_json:
        out.json(
            {
                "kind": kind.name,
                "settings": list(kind.settings),
                "permissions": kind.permissions,
                "steps": kind.steps,
            }
        )
        return
    out.line(f"{out.style(kind.title, 'bold')}")
    for number, step in enumerate(kind.steps, 1):
        out.line(f"  {number}. {step}")
    if kind.permissions:
        out.line(f"It needs: {', '.join(kind.permissions)}")
    for setting in kind.settings:
        marks = [
            word
            for word, holds in (
                ("secret", setting.secret),
                ("may be left out", not setting.required),
            )
            if holds
        ]
        more = f" ({', '.join(marks)})" if marks else ""
        out.line(f"  --set {setting.name}=…  {setting.words}{more}")
    out.line(f"Then: palyra channels add {kind.name} NAME --set …")


@verb(channels, "test", help="Ask the platform who we are there; with --to, send a test message.")
@click.argument("name")
@click.option(
    "--to", "conversation", default="", metavar="CONVERSATION", help="Where to send a test message."
)
@click.option("--text", default="", help="What to send.")
def test(state: CliState, name: str, conversation: str, text: str) -> None:
    said = {"text": text} if text else {}
    found = state.api.test_channel(checked_name(name), conversation=conversation, **said)
    sent = f"; a message to {conversation} is under way" if found.reply_id else ""
    where = f" on {found.me.place}" if found.me.place else ""
    state.out.result(
        json_shapes.channel_test(found),
        f"{clean(name)} works: we are {clean(found.me.account)}{clean(where)}{clean(sent)}",
    )


@verb(
    channels,
    "pause",
    help="Take nothing in and send nothing out on a channel; without a name, on all of them.",
)
@click.argument("name", required=False)
def pause(state: CliState, name: str | None) -> None:
    _hold(state, name, paused=True)


@verb(channels, "resume", help="Let a channel, or without a name all of them, go on.")
@click.argument("name", required=False)
def resume(state: CliState, name: str | None) -> None:
    _hold(state, name, paused=False)


def _hold(state: CliState, name: str | None, *, paused: bool) -> None:
    word = "paused" if paused else "at work again"
    if name is None:
        found = state.api.pause_channels(paused=paused).channels
        state.out.result(json_shapes.channels(found), f"all channels are {word}")
        return
    changed = state.api.change_channel(checked_name(name), verb="pause" if paused else "resume")
    if not paused and changed.connection.state == "failed":
        # It was refused and is not tried by itself: a new secret or permission is only seen now.
        changed = state.api.change_channel(checked_name(name), verb="reconnect")
        word = "reconnecting"
    state.out.result(json_shapes.channel(changed), f"{clean(name)} is {word}")


@verb(
    channels,
    "trace",
    help="What happened to a message, step by step; without one, the newest messages.",
)
@click.argument("message", required=False)
@click.option("--channel", default="", help="Only of this channel.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
def trace(state: CliState, message: str | None, channel: str, limit: int) -> None:
    out = state.out
    if message is None:
        listed = state.api.list_channel_messages(channel=channel, limit=limit).messages
        if out.as_json:
            out.json({"messages": listed})
            return
        rows = [
            [
                each.message_id,
                each.connector,
                one_line(each.sender, 24),
                each.state,
                each.reason,
                formatting.when(each.received_ms),
            ]
            for each in listed
        ]
        out.table(["message", "channel", "sender", "state", "reason", "came"], rows)
        return
    found = state.api.trace_message(of=message)
    if out.as_json:
        out.json(found)
        return
    of = found.message
    out.line(
        f"{out.style(of.message_id, 'bold')}  {one_line(of.sender)} on {of.connector} in"
        f" {one_line(of.conversation)}: {of.state}"
    )
    for step in found.steps:
        out.line(f"  {formatting.when(step.time_ms)}  {step.step:<10} {one_line(step.detail, 200)}")
    for reply in found.replies:
        twice = (
            (", possibly twice" if reply.state == "sent" else ", may have arrived")
            if reply.doubtful
            else ""
        )
        out.line(
            f"  {reply.kind} {reply.part + 1}/{reply.parts}: {reply.state}{twice} "
            f" {one_line(reply.body.text, 100)}"
        )


@verb(channels, "preview", help="What would become of a message, and why. Nothing is done.")
@click.argument("name")
@click.argument("text", default="hello")
@click.option("--from", "sender", required=True, metavar="SENDER")
@click.option("--in", "conversation", default="preview", metavar="CONVERSATION")
@click.option("--direct", is_flag=True, help="A direct message.")
@click.option("--everyone", is_flag=True, help="It addresses everyone.")
def preview(
    state: CliState,
    name: str,
    text: str,
    sender: str,
    conversation: str,
    direct: bool,
    everyone: bool,
) -> None:
    found = state.api.preview_channel_message(
        checked_name(name),
        sender=sender,
        text=text,
        conversation=conversation,
        direct=direct,
        everyone=everyone,
    )
    out = state.out
    if out.as_json:
        out.json(found)
        return
    for check in found.decision.checks:
        word = out.style("passed", "green") if check.passed else out.style("refused", "red")
        out.line(f"  {check.reason:<18} {word}  {one_line(check.found)}".rstrip())
    out.line(found.decision.sentence)
    if found.decision.accepted:
        out.line(
            f"{clean(sender)} is {found.standing} and acts as {clean(found.acts_as)}, in session"
            f" {clean(found.session_key)}"
        )


@verb(
    channels,
    "rules",
    help="Change rules of a channel while it runs: NAME RULE=VALUE …; RULE= removes a change.",
)
@click.argument("name")
@click.argument("changes", nargs=-1)
def rules(state: CliState, name: str, changes: tuple[str, ...]) -> None:
    wanted: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise InvalidInput(f"{change}: write RULE=VALUE")
        wanted[key] = _value(key, value)
    known = checked_name(name)
    _show(
        state,
        (
            state.api.change_channel_rules(known, changes=wanted)
            if wanted
            else state.api.get_channel(known)
        ),
    )


def _value(key: str, text: str) -> Any:
    if not text:
        return None
    if key in ("allow", "deny", "names"):
        return [part.strip() for part in text.split(",") if part.strip()]
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else text
