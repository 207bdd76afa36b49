"""Replies of the demo model that need no file: who it is, what it can do, what it cannot."""

import ast
import operator
from collections.abc import Callable
from typing import Any

import msgspec

from palyra.models.demo import intents
from palyra.models.demo.intents import (
    Arithmetic,
    Delegate,
    NoTool,
    Talk,
    TypedCommand,
    Unknown,
    UseTool,
)
from palyra.models.demo.open_requests import OpenRequest
from palyra.models.demo.parser import EXAMPLES
from palyra.models.demo.read_answers import failure

_ME = (
    "I am the **demo model** built into Palyra: a set of rules that works offline and costs"
    " nothing. I am not a language model. The tools, the approvals and the history around me are"
    " real."
)
_REAL = (
    "For a real model, set `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` and restart the daemon, start"
    " Ollama, or add a `[providers.NAME]` section to `config.toml`."
)
_MOST_DIGITS = 10**12
_MOST_POWER = 64

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def talk(asked: Talk, desk: OpenRequest) -> str:
    match asked.about:
        case "greeting":
            return f"Hello! {_ME}\n\n{_try()}\n\n{_REAL}"
        case "who":
            return f"{_ME}\n\n{_REAL}"
        case "help":
            tools = (
                intents.listed([f"`{name}`" for name in desk.tools])
                if desk.tools
                else "no tools here"
            )
            return (
                f"{_ME}\n\n{_try()}\n\nI can call {tools}; to call one directly, type `use fs.list"
                f' {{"path": "."}}`.\n\n{_REAL}'
            )
        case "thanks":
            return "You are welcome."


def unknown(asked: Unknown, desk: OpenRequest) -> str:
    said = intents.code(intents.clip(asked.text, 80)) if asked.text.strip() else "that"
    return f"I do not understand {said}. {_ME}\n\n{_try()}\n\n{_REAL}"


def no_tool(asked: NoTool, desk: OpenRequest) -> str:
    return f"I cannot {asked.wish}: the demo model has no rule for it. {asked.instead}".strip()


def undo(desk: OpenRequest) -> str:
    made = changes(desk)
    last = (
        f" The last change was: {intents.clip(made[-1], 160)}."
        if made
        else " In this conversation I have changed nothing yet."
    )
    how = (
        "type `/undo`, or `palyra undo` in a shell, and the daemon puts the files back as they were"
        " before my last change."
    )
    return f"I cannot undo, but you can: {how}{last}"


def what_changed(desk: OpenRequest) -> str:
    made = changes(desk)
    undone = [note for note in desk.notes if "undid" in note]
    if not made:
        return "I have changed nothing in this conversation."
    text = f"This is what I changed in this conversation:\n\n{intents.bullets(made)}"
    if undone:
        text += f"\n\nSince then:\n\n{intents.bullets(undone)}"
    return f"{text}\n\n`/undo`, or `palyra undo` in a shell, undoes the last one."


def changes(desk: OpenRequest) -> list[str]:
    """Return what the calls that change files reported, oldest first."""
    made = [
        result
        for result in desk.earlier
        if result.tool in ("fs.write", "fs.patch") and not result.failed
    ]
    lines = [
        line
        for result in made
        for line in result.text.splitlines()
        if line.strip() and not line.startswith("note:")
    ]
    return [
        line if (times := lines.count(line)) == 1 else f"{line} ({times} times)"
        for line in dict.fromkeys(lines)
    ]


def use_tool(asked: UseTool, desk: OpenRequest) -> str:
    try:
        arguments = msgspec.json.decode(asked.arguments, type=dict[str, Any])
    except msgspec.DecodeError as error:
        return f"The arguments are not a JSON object: {error}."
    result = desk.call(asked.tool, **arguments)
    if result.failed:
        return failure(result, desk)
    return f"`{asked.tool}` answered:\n\n{intents.fence(intents.clip(result.text, 4_000))}"


def shell_command(asked: TypedCommand, desk: OpenRequest) -> str:
    result = desk.call("shell.run", command=asked.command)
    if result.failed and result.denied:
        return failure(result, desk)
    return intents.fence(intents.clip(result.text, 4_000))


def delegate(asked: Delegate, desk: OpenRequest) -> str:
    result = desk.call("agent.spawn", task=asked.task)
    if result.failed:
        return failure(result, desk)
    return (
        f"A helper worked on {intents.code(intents.clip(asked.task, 80))} in a session of its"
        f" own, and says:\n\n{result.text}"
    )


def arithmetic(asked: Arithmetic, desk: OpenRequest) -> str:
    written = asked.expression.replace("×", "*").replace("÷", "/").replace("^", "**")
    try:
        value = _value(ast.parse(written.strip(), mode="eval").body)
    except (ArithmeticError, ValueError, SyntaxError, RecursionError, MemoryError):
        return f"I cannot work out {intents.code(asked.expression)}."
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
    return f"{intents.code(asked.expression)} is **{shown}**."


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as value) if abs(value) <= _MOST_DIGITS:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            first, second = _value(left), _value(right)
            if isinstance(op, ast.Pow) and abs(second) > _MOST_POWER:
                raise ValueError("the power is too large")
            result = _OPERATORS[type(op)](first, second)
            if isinstance(result, int | float) and abs(result) <= _MOST_DIGITS**5:
                return result
    raise ValueError("not a sum")


def _try() -> str:
    return f"Try one of these:\n\n{intents.bullets([f'`{example}`' for example in EXAMPLES])}"
