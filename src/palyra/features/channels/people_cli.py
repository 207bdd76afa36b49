"""Commands of `palyra channels` about people: pairing, who is admitted, undelivered replies."""

import click

from palyra.cli import formatting
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.channels import Person
from palyra.core.errors import InvalidInput

channels = group(
    "channels",
    "Chats: list, add, test, status, pause, resume, trace, preview, rules, pair, people, dead.",
    default="list",
)


@verb(
    channels,
    "pair",
    help=(
        "Who waits to be admitted; with a code or id, admit them (--deny: do not; --revoke: no"
        " longer)."
    ),
)
@click.argument("which", required=False)
@click.option("--deny", is_flag=True, help="Do not admit them.")
@click.option(
    "--for",
    "life",
    default="",
    metavar="TIME",
    help="For so long: 8h, 30d. Without: until it is revoked.",
)
@click.option(
    "--invite",
    default="",
    metavar="CHANNEL",
    help="Make a code that admits the first person who sends it there.",
)
@click.option("--revoke", default="", metavar="CHANNEL/SENDER", help="Take a pairing back.")
def pair(
    state: CliState, which: str | None, deny: bool, life: str, invite: str, revoke: str
) -> None:
    for_ms = formatting.parse_duration(life) if life else 0
    if invite:
        made = state.api.invite(channel=invite, for_ms=for_ms)
        state.out.result(
            made,
            f"give them this code: {made.code}; they write `pair {made.code}` on {clean(invite)}"
            " within ten minutes",
        )
    elif revoke:
        channel, slash, sender = revoke.partition("/")
        if not slash:
            raise InvalidInput("write CHANNEL/SENDER")
        changed = state.api.change_person(channel=channel, sender=sender, verb="revoke")
        state.out.result(changed, f"{clean(sender)} is not paired any more")
    elif which is None:
        _waiting(state)
    else:
        done = state.api.settle_pairing(
            which=which, verb="deny" if deny else "approve", for_ms=for_ms
        )
        who = done.person.sender if done.person else done.pairing.sender if done.pairing else ""
        state.out.result(done, f"{clean(who)} is {'not admitted' if deny else 'paired'}")


def _waiting(state: CliState) -> None:
    found = state.api.list_pairings().pairings
    if state.out.as_json:
        state.out.json({"pairings": found})
        return
    if not found:
        state.out.note("nobody waits to be admitted")
        return
    rows = [
        [
            each.pairing_id,
            each.connector,
            each.kind,
            one_line(each.sender),
            one_line(each.display),
            formatting.when(each.expires_ms),
        ]
        for each in found
    ]
    state.out.table(["pairing", "channel", "kind", "sender", "name", "until"], rows)


@verb(
    channels,
    "people",
    help="Who has written; with CHANNEL/SENDER and --link, whose identity they are.",
)
@click.argument("who", required=False)
@click.option(
    "--link", default=None, metavar="PRINCIPAL", help="A user, as user:owner; empty removes it."
)
def people(state: CliState, who: str | None, link: str | None) -> None:
    if link is not None:
        channel, slash, sender = (who or "").partition("/")
        if not slash:
            raise InvalidInput("write CHANNEL/SENDER")
        changed = state.api.change_person(
            channel=channel, sender=sender, verb="link", principal=link
        )
        state.out.result(
            changed,
            f"{clean(sender)} on {clean(channel)} is {clean(link) if link else 'nobody else'}",
        )
        return
    found = state.api.list_people(channel=who or "").people
    if state.out.as_json:
        state.out.json({"people": found})
        return
    rows = [
        [
            each.connector,
            one_line(each.sender),
            one_line(each.display),
            _standing(each),
            formatting.when(each.seen_ms),
        ]
        for each in found
    ]
    state.out.table(["channel", "sender", "name", "standing", "seen"], rows)


def _standing(person: Person) -> str:
    if person.principal:
        return person.principal
    if person.revoked_ms:
        return "revoked"
    until = f" until {formatting.when(person.paired_until_ms)}" if person.paired_until_ms else ""
    return f"paired{until}" if person.paired_ms else "stranger"


@verb(channels, "dead", help="Replies that could not be delivered; with an id, send one again.")
@click.argument("reply", required=False)
@click.option("--drop", is_flag=True, help="Give it up.")
def dead(state: CliState, reply: str | None, drop: bool) -> None:
    if reply is not None:
        act, done = (
            (state.api.drop_dead_letter, "is given up")
            if drop
            else (state.api.replay_dead_letter, "is sent again")
        )
        told = act(checked_name(reply))
        state.out.result({"replies": told.replies}, f"{clean(reply)} {done}")
        return
    if drop:
        raise click.UsageError("say which: `palyra channels dead` lists them")
    found = state.api.list_dead_letters().replies
    if state.out.as_json:
        state.out.json({"replies": found})
        return
    if not found:
        state.out.note("no dead letters")
        return
    rows = [
        [
            each.reply_id,
            each.connector,
            one_line(each.conversation, 24),
            str(each.attempts),
            one_line(each.error, 60),
        ]
        for each in found
    ]
    state.out.table(
        ["reply", "channel", "conversation", "attempts", "error"], rows, right=["attempts"]
    )


def checked_name(name: str) -> str:
    if not name.replace("-", "").isalnum():
        raise InvalidInput(f"{name[:64]!r} is no name: letters, digits and dashes")
    return name
