"""The commands of a chat. Each is one function over the chat and what was written behind the
name.
"""

from typing import TYPE_CHECKING

from palyra.cli import attachments, compactions, formatting, lookup, short_ids
from palyra.cli.chat.input_line import CompletionChoice
from palyra.cli.chat.loop import Chat, Command
from palyra.cli.chat.status_line import short_count
from palyra.cli.render import entries
from palyra.cli.render.markdown_stream import Prose
from palyra.cli.safe_text import clean, one_line
from palyra.cli.undo_refusal import explained
from palyra.core.conversation import Conversation
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.events import SessionCompacted
from palyra.core.run_progress import CallProgress, ModelTurn

if TYPE_CHECKING:
    from palyra.cli.chat.name_choices import NameChoices

HELP = """\
/help                show this list
/new [title]         a new session in this folder
/session NAME        open another session by name or number; /sessions lists them
/reset               start the conversation over; the history stays
/compact [preview]   compact the older turns now; /uncompact undoes it
/branch [seq]        continue from here, or from an entry, in a new session
/title TEXT          name the session
/undo [call]         undo the last change, or the one of a call; --force overrides
/approvals           show what needs approval
/why [call]          why the last call, or this one, was allowed or denied
/model [name]        list the models, or switch to one in this session
/retry [model]       retry a run that waits for its model, or use another model
/steer TEXT          steer the run that is working
/interrupt TEXT      interrupt the run and make it read this first
/attach [FILE]       attach a file to the next message; alone: remove attachments
/stop                stop the runs of this session
/reasoning [on|off]  show or hide the reasoning
/rule WORDS          add a rule for this session, like “never touch ./secrets”
/rules               list the rules; /rule remove N removes one
/vault NAME          store a secret; you type its value unseen
/usage               tokens and cost of this session
/up                  restart Palyra for this chat, if it has stopped
/quit                leave; also Ctrl-D
!COMMAND             run a command yourself; the agent sees its output
Ctrl-R searches your history, Alt-Enter starts a new line, Tab completes / and @
While a run works, your next message is queued"""


# Where the descriptions begin, and from which width on there is room for them beside the names.
_BESIDE, _ROOM = 21, 60
_ABOUT = {
    line[1:].split()[0]: line[_BESIDE:].partition(";")[0]
    for line in HELP.splitlines()
    if line.startswith("/")
}
# Those that stand beside another one there.
_ABOUT |= {
    "sessions": "list sessions",
    "uncompact": "undo the last /compact",
    "exit": "leave",
}


def _help(chat: Chat, rest: str) -> None:
    width = chat.terminal.out.width
    for line in HELP.splitlines():
        beside = line.startswith(("/", "!"))
        name, about = (line[:_BESIDE], line[_BESIDE:]) if beside else ("", line)
        hang = _BESIDE if width >= _ROOM else 2
        said = Prose(
            chat.terminal.out.style, lambda: width, markdown=False, indent=hang if name else 0
        ).whole(about)
        chat.terminal.line(
            name + said if not name or width >= _ROOM else f"{name.rstrip()}\n  {said}"
        )


def _new(chat: Chat, rest: str) -> None:
    chat.open(
        chat.api.resolve_session(
            workspace=chat.session.workspace, title=rest, session_id=lookup.new_id()
        )
    )


def _session(chat: Chat, rest: str) -> None:
    if not rest:
        raise InvalidInput("which session? its number or name: /sessions lists them")
    chat.open(chat.api.get_session(short_ids.session(chat.api, rest)))


def _sessions(chat: Chat, rest: str) -> None:
    numbers = short_ids.session_numbers(chat.api)
    for each in lookup.sessions(chat.api, limit=20):
        mark = "*" if each.session_id == chat.session.session_id else " "
        active = f" [{each.active}]" if each.active else ""
        number = f"#{numbers.get(each.session_id, 0)}"
        head = f"{mark} {number:>5}  {formatting.ago(each.updated_ms):>12}  "
        room = min(60, chat.terminal.out.width - len(head) - len(active))
        title = one_line(each.title, max(10, room)) or "untitled"
        chat.terminal.line(f"{head}{title}{active}")
    chat.say("/session NUMBER or /session NAME opens one")


def _reset(chat: Chat, rest: str) -> None:
    chat.api.reset_session(chat.session.session_id)


def _compact(chat: Chat, rest: str) -> None:
    if rest not in ("", "preview"):
        raise InvalidInput("/compact, or /compact preview")
    made = chat.api.compact_session(chat.session.session_id, preview=rest == "preview")
    if not made.applied:
        # What was done is on the tape, and so on the screen.
        for line in compactions.told(made, summary=True):
            chat.terminal.line(line)


def _uncompact(chat: Chat, rest: str) -> None:
    if rest and not rest.isdecimal():
        raise InvalidInput("/uncompact takes the number of an entry, or nothing")
    compactions.undo(chat.api, chat.session.session_id, int(rest) if rest else None)


def _branch(chat: Chat, rest: str) -> None:
    if rest and not rest.isdecimal():
        raise InvalidInput("/branch takes the number of an entry, or nothing")
    chat.open(chat.api.branch_session(chat.session.session_id, at=int(rest) if rest else None))


def _title(chat: Chat, rest: str) -> None:
    if not rest:
        raise InvalidInput("which title?")
    chat.say(
        "the title is now:"
        f" {clean(chat.api.change_session(chat.session.session_id, title=rest).title)}"
    )


def _undo(chat: Chat, rest: str) -> None:
    force = rest.endswith("--force")
    call_id = rest.removesuffix("--force").strip().upper()
    try:
        # What was undone is on the tape, and so on the screen.
        chat.api.undo(chat.session.session_id, call_id=call_id, force=force)
    except Conflict as error:
        raise explained(error, "/undo --force") from error
    except NotFound as error:
        raise NotFound(
            f"{error.message}; `palyra undo` in a shell also knows this folder's other sessions"
        ) from error


def _approvals(chat: Chat, rest: str) -> None:
    if not chat.screen.pending:
        chat.say("nothing needs approval in this session")
    chat.cards.ask_again()


def _model(chat: Chat, rest: str) -> None:
    known = chat.api.list_models().models
    if rest:
        if rest.isdecimal() and not 1 <= int(rest) <= len(known):
            raise InvalidInput(f"there are {len(known)} models: /model lists them")
        wanted = known[int(rest) - 1].name if rest.isdecimal() else rest
        chat.use_model("" if rest == "default" else wanted)
        if chat.screen.waiting_run:
            chat.api.retry(chat.screen.waiting_run, model=chat.screen.model)
        chat.say(f"Model: {clean(chat.screen.model)}")
        return
    for number, each in enumerate(known, 1):
        mark = "*" if each.name == chat.screen.model else " "
        about = [f"{formatting.count(each.context_tokens)} tokens"]
        about += ["failing"] if each.healthy is False else []
        chat.terminal.line(f"{mark}{number:>3}  {clean(each.name)}  {' · '.join(about)}")
    chat.say("Switch with /model NUMBER or /model NAME; /model default uses the default")


def _retry(chat: Chat, rest: str) -> None:
    if not chat.screen.waiting_run:
        raise InvalidInput("no run of this session waits for a model")
    chat.api.retry(chat.screen.waiting_run, model=rest)


def _steer(chat: Chat, rest: str) -> None:
    if not rest:
        raise InvalidInput("steer it where? /steer TEXT")
    chat.send(rest, "steer")


def _interrupt(chat: Chat, rest: str) -> None:
    if not rest:
        raise InvalidInput("say what it should read first: /interrupt TEXT")
    chat.send(rest, "interrupt")


def _attach(chat: Chat, rest: str) -> None:
    if not rest:
        chat.say(
            f"{len(chat.attached)} files will not be sent"
            if chat.attached
            else "which file? /attach FILE"
        )
        chat.attached = []
        return
    kept = attachments.send(chat.api, chat.session.session_id, rest)
    chat.attached.append(attachments.attaching(kept))
    chat.say(f"{attachments.said(kept)}; it goes with what you say next")


def _stop(chat: Chat, rest: str) -> None:
    if not chat.screen.working:
        chat.say("nothing is running in this session")
    chat.stop()


def _reasoning(chat: Chat, rest: str) -> None:
    if rest not in ("", "on", "off"):
        raise InvalidInput("/reasoning on, or /reasoning off")
    chat.screen.unfolded = rest == "on" if rest else not chat.screen.unfolded
    chat.say(f"reasoning is {'shown' if chat.screen.unfolded else 'hidden'} from now on")


def _usage(chat: Chat, rest: str) -> None:
    total = chat.api.usage(by="session", session_id=chat.session.session_id).total
    cost = (
        formatting.money(total.cost_microusd)
        if total.cost_microusd
        else "no price is known"
        if total.unpriced
        else "no cost"
    )
    said = (
        f"{formatting.counted(total.calls, 'model call', 'model calls')} ·"
        f" {short_count(total.input_tokens)} tokens in"
        f" ({short_count(total.cached_tokens)} cached) ·"
        f" {short_count(total.output_tokens)} out · {cost}"
    )
    chat.screen.lines(entries.wrapped(chat.terminal.out.style, said, chat.terminal.out.width))


def _vault(chat: Chat, rest: str) -> None:
    from palyra.cli import confirm

    if not rest or " " in rest:
        # Whoever wrote the value behind the name must not find it in the history later.
        chat.forget_line()
        raise InvalidInput(
            "/vault NAME, and nothing else: the value is asked for, so that it is neither shown nor"
            " kept"
        )
    with chat.terminal.lent():
        try:
            value = confirm.ask(rest)
        except (EOFError, KeyboardInterrupt):
            value = ""
    if not value:
        chat.say("nothing is stored")
        return
    stored = clean(confirm.label(chat.api.put_secret(name=rest, value=value)))
    chat.say(f"{stored} is stored: tools are given vault:{clean(rest)}")


def _rule(chat: Chat, rest: str) -> None:
    from palyra.cli import rules

    verb, _, which = rest.partition(" ")
    if not rest:
        raise InvalidInput(
            "which rule? /rule WORDS adds one, /rules lists them, /rule remove N removes one"
        )
    if verb == "remove" and which.strip().isdecimal():
        found = chat.api.list_rules(chat.session.session_id).rules
        number = int(which)
        if not 1 <= number <= len(found):
            raise NotFound(f"there is no rule {number}: /rules lists them")
        chat.api.remove_rule(chat.session.session_id, rule_id=found[number - 1].rule_id)
        chat.say(f"removed: {clean(found[number - 1].words)}")
        return
    try:
        made = chat.api.add_rule(chat.session.session_id, words=rest)
    except InvalidInput as error:
        forms = rules.forms_of(error)
        chat.say(
            clean(
                error.message.partition("; a rule is one of these")[0] if forms else error.message
            ),
            "yellow",
        )
        if forms:
            chat.say("a rule is one of these; a name with spaces is put in double quotes:")
            chat.screen.lines([f"  {clean(form)}" for form in forms])
        return
    chat.say(f"from now on: {clean(made.words)}. {clean(made.means)}")


def _rules(chat: Chat, rest: str) -> None:

    found = chat.api.list_rules(chat.session.session_id).rules
    if not found:
        chat.say("no rules: the policies alone decide; /rule WORDS adds one")
    for number, rule in enumerate(found, 1):
        chat.terminal.line(f"{number}  {clean(rule.words)}")
        chat.say(f"   {clean(rule.means)}")


def _why(chat: Chat, rest: str) -> None:
    for line in why_lines(chat, rest.upper()):
        chat.terminal.line(line)


def why_lines(chat: Chat, call_id: str) -> list[str]:
    """Return how a call was decided and what it did, from the tape."""
    conversation = Conversation(chat.session.session_id)
    for entry in lookup.entries(chat.api, chat.session.session_id):
        event = entries.read(entry)
        # Calls that were condensed away were decided all the same.
        if event is not None and not isinstance(event, SessionCompacted):
            conversation.apply(entry.seq, entry.run_id, entry.time_ms, event)
    calls = [
        call for turn in conversation.turns if isinstance(turn, ModelTurn) for call in turn.calls
    ]
    chosen = [call for call in calls if not call_id or call.call.id == call_id][-1:]
    if not chosen:
        raise NotFound(
            "there is no such call in this session"
            if call_id
            else "no tool was called in this session yet"
        )
    return _call_lines(chosen[0], chat.terminal.out.style, chat.terminal.out.width)


def _call_lines(call: CallProgress, style: entries.Style, width: int) -> list[str]:
    lines: list[str] = []

    def tell(text: str) -> None:
        lines.extend(entries.wrapped(style, text, width))

    arguments = call.proposed.arguments if call.proposed else call.call.arguments
    about = " ".join(filter(None, (clean(call.call.tool), formatting.about(arguments))))
    tell(f"{about}  (call {call.call.id})")
    if call.decided:
        by = (
            f" by {', '.join(call.decided.policies)}"
            if call.decided.policies
            else f" by {call.decided.by}"
        )
        tell(f"  decided: {call.decided.verdict}{clean(by)}: {one_line(call.decided.reason, 300)}")
    if call.asked:
        # Mostly the words of the decision: said once.
        why = (
            f", {one_line(call.asked.why, 300)}"
            if not call.decided or call.asked.why != call.decided.reason
            else ""
        )
        tell(f"  asked: risk {call.asked.risk}{why}")
    if call.answered:
        reason = f": {one_line(call.answered.reason, 300)}" if call.answered.reason else ""
        where = one_line(call.answered.surface.removeprefix("api:")) or "the daemon"
        tell(f"  answered: {call.answered.decision} ({call.answered.scope}, {where}){reason}")
        if call.answered.arguments is not None:
            tell("  the arguments were edited before the yes:")
            lines += entries.edited_lines(style, arguments, call.answered.arguments)
    if call.finished:
        tell(
            f"  {call.finished.outcome} after {formatting.duration(call.finished.duration_ms)}:"
            f" {one_line(call.finished.text, 200)}"
        )
    if call.finished and call.finished.attestation:
        seal = call.finished.attestation
        tell(
            f"  executed by {clean(seal.executor)}, tier {seal.tier}, policy version"
            f" {clean(seal.policy_version[:16])}"
        )
    if call.undone:
        tell("  undone since")
    return lines


def _up(chat: Chat, rest: str) -> None:
    chat.start_daemon()


def _quit(chat: Chat, rest: str) -> None:
    chat.over = True


COMMANDS: dict[str, Command] = {
    "help": _help,
    "new": _new,
    "session": _session,
    "sessions": _sessions,
    "reset": _reset,
    "compact": _compact,
    "uncompact": _uncompact,
    "branch": _branch,
    "title": _title,
    "undo": _undo,
    "approvals": _approvals,
    "why": _why,
    "model": _model,
    "retry": _retry,
    "steer": _steer,
    "interrupt": _interrupt,
    "attach": _attach,
    "stop": _stop,
    "reasoning": _reasoning,
    "rule": _rule,
    "rules": _rules,
    "vault": _vault,
    "usage": _usage,
    "up": _up,
    "quit": _quit,
    "exit": _quit,
}


_REFERENCES = {
    "file": "the text of a file",
    "folder": "the text files below a folder",
    "diff": "changes that are not staged",
    "staged": "changes that are staged",
    "url": "a web page, document or API answer",
    "memory": "what is remembered about something",
    "run": "an earlier run of yours",
}


def complete(
    text: str, workspace: str, names: "NameChoices | None" = None
) -> list[CompletionChoice]:
    """Return what a line could become: a command, with a name behind it, or a message with the
    reference that is being written.
    """
    head, space, rest = text.partition(" ")
    if names is not None and space and head in ("/session", "/model"):
        return names.choices(head[1:], rest)
    if text.startswith("/"):
        return [
            CompletionChoice(f"/{name}", _ABOUT.get(name, ""))
            for name in COMMANDS
            if f"/{name}".startswith(text)
        ]
    found = attachments.complete(text, workspace)
    return [
        CompletionChoice(each, _REFERENCES.get(each.rpartition("@")[2].removesuffix(":"), ""))
        for each in found
    ]
