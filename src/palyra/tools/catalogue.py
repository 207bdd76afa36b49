"""The tools a model may call, by name, and the one place where a model's arguments become typed
values.

The rule: what reaches a tool is an instance of its own argument type. Harmless spellings of scalars
are put right, everything else that does not fit is refused with a message that a model can act on.

A server's JSON Schema as the judge of arguments. It never fetches anything, and no pattern in it
can make it run for long.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

import msgspec
from msgspec import Struct, inspect

from palyra.core import plans
from palyra.core.argument_roles import ToolUse
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.ports import Tool
from palyra.core.tools import Capability, Effect, Limits, Scope, Subject, ToolResult, ToolSpec
from palyra.core.topics import Topic

if TYPE_CHECKING:
    import jsonschema_rs

_MOST_COMPLAINTS = 4
_MOST_COMPLAINT = 300
_PATTERN_BYTES = 1 << 20
_BACKTRACKS = 10_000


class Checker:
    """Made when a tool is first called: compiling costs more than most calls."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator: jsonschema_rs.Validator | None = None

    def check(self, tool: str, arguments: dict[str, Any]) -> None:
        """Raises InvalidInput that says which argument is wrong."""
        if self._validator is None:
            self._validator = compiled(self._schema)
        complaints: list[str] = []
        for error in self._validator.iter_errors(arguments):
            where = ".".join(str(part) for part in error.instance_path)
            complaints.append(
                (f"argument {where}: " if where else "") + error.message[:_MOST_COMPLAINT]
            )
            if len(complaints) == _MOST_COMPLAINTS:
                break
        if complaints:
            known = self._schema.get("properties")
            takes = (
                f"; it takes {', '.join(map(str, known))}"[:_MOST_COMPLAINT]
                if isinstance(known, dict) and known
                else ""
            )
            raise InvalidInput(f"{tool}: {'; '.join(complaints)}{takes}", tool=tool)


def compiled(schema: dict[str, Any]) -> "jsonschema_rs.Validator":
    """Raises InvalidInput for what is no schema, or refers to something outside of itself."""
    import jsonschema_rs

    # First by an engine that takes linear time; the other one is for look-around, which that one
    # does not have.
    linear = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    fancy = jsonschema_rs.FancyRegexOptions(
        backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES
    )
    problem = ""
    for options in (linear, fancy):
        try:
            return jsonschema_rs.validator_for(
                schema, pattern_options=options, offline=True, validate_formats=False
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            problem = str(error).partition("\n")[0][:_MOST_COMPLAINT]
    raise InvalidInput(f"its schema cannot be used: {problem}")


# Offered only where somebody has spoken of that: naming these anywhere else would be an offer too.
OF_TOPICS: dict[Topic, str] = {"time": "schedule.", "machine": "worker:", "people": "message."}


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of every tool's argument type."""


class TypedTool(Tool, Protocol):
    """A tool that says which type its arguments have."""

    @property
    def argument_type(self) -> type[Arguments]: ...


class OwnParser(Protocol):
    """A tool whose arguments have a shape that no type of ours describes: it judges them itself, by
    a schema from elsewhere.
    """

    def parse(self, arguments: Mapping[str, Any]) -> tuple[Arguments, dict[str, Any]]:
        """Typed and plain arguments. Raises InvalidInput like `parse`."""
        ...


@runtime_checkable
class ComparingTool(Protocol):
    """A tool that can tell before it runs that a call would change nothing."""

    def unchanged(self, arguments: object, workspace: str) -> ToolResult | None:
        """The result of a call that changes nothing; None if it changes something or may fail."""
        ...


class Placeless:
    """A tool that is about no path, host or program: a wider yes can only be about the tool
    itself.
    """

    spec: ClassVar[ToolSpec]

    def scope(self, arguments: object, workspace: str) -> Scope:
        return Scope()

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return (Subject(self.spec.name, "tool"),)


class Catalogue:
    """Tools by name: our own in the order given, then those from elsewhere by group. A model sees
    this order, so it must be stable.

    Our own never change. A group (a server's tools, the installed skills) is replaced as a whole,
    at any time.
    """

    def __init__(self, tools: Sequence[TypedTool], *, beside: Sequence[TypedTool] = ()) -> None:
        """`beside` are offered only while tools from elsewhere are."""
        self._own = tuple(tools)
        self._beside = tuple(beside)
        self._groups: dict[str, tuple[TypedTool, ...]] = {}
        self._tools = _by_name(self._own)
        self._specs = tuple(tool.spec for tool in self._own)

    def renew(self, group: str, tools: Sequence[TypedTool]) -> None:
        """These are the group's tools from now on. Raises ValueError, and changes nothing, if a
        name is taken.
        """
        groups = {**self._groups, group: tuple(tools)}
        others = [tool for _, each in sorted(groups.items()) for tool in each]
        foreign = any(plans.foreign(tool.spec.source) for tool in others)
        everything = (*self._own, *(self._beside if foreign else ()), *others)
        self._tools = _by_name(everything)
        self._groups = groups
        self._specs = tuple(tool.spec for tool in everything)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools offered now; the same tuple as long as nothing changed."""
        return self._specs

    def get(self, name: str) -> TypedTool:
        tool = self._tools.get(name)
        if tool is None:
            unnamed = (*OF_TOPICS.values(), plans.TOOL)
            known = [each for each in self._tools if not each.startswith(unnamed)]
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise NotFound(f"there is no tool {name[:64]!r}: {hint}", tool=name[:64])
        return tool

    def parse(
        self, name: str, arguments: Mapping[str, Any]
    ) -> tuple[TypedTool, Arguments, dict[str, Any]]:
        """The tool, its typed arguments, and the same arguments as plain values with every scalar
        in its right type.
        """
        tool = self.get(name)
        if hasattr(tool, "parse"):
            return tool, *cast("OwnParser", tool).parse(arguments)
        typed = parse(name, tool.argument_type, arguments)
        return tool, typed, msgspec.to_builtins(typed)


def _by_name(tools: Sequence[TypedTool]) -> dict[str, TypedTool]:
    found = {tool.spec.name: tool for tool in tools}
    if len(found) != len(tools):
        names = [tool.spec.name for tool in tools]
        raise ValueError(
            "two tools have the same name:"
            f" {', '.join(sorted({n for n in names if names.count(n) > 1}))}"
        )
    return found


def declare(
    name: str,
    description: str,
    argument_type: type[Arguments],
    *,
    effect: Effect,
    capabilities: tuple[Capability, ...] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    use: ToolUse | None = None,
) -> ToolSpec:
    """A tool's declaration; the schema of its arguments comes from their type."""
    return ToolSpec(
        name=name,
        description=description,
        parameters=schema_of(argument_type),
        effect=effect,
        capabilities=capabilities,
        limits=limits,
        use=use,
    )


def parse(tool: str, argument_type: type[Arguments], arguments: Mapping[str, Any]) -> Arguments:
    """Typed arguments, or InvalidInput that says which argument is wrong and what would be
    right.
    """
    info = _shape(argument_type)
    _refuse_unknown(tool, info, arguments)
    try:
        return msgspec.convert(_spell(arguments, info), argument_type, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"{tool}: {_explain(str(error))}; it takes {_signature(info)}", tool=tool
        ) from None


@cache
def _shape(argument_type: type[Arguments]) -> inspect.StructType:
    info = inspect.type_info(argument_type)
    assert isinstance(info, inspect.StructType)
    return info


def _refuse_unknown(tool: str, info: inspect.StructType, arguments: Mapping[str, Any]) -> None:
    known = [field.encode_name for field in info.fields]
    unknown = [str(key) for key in arguments if key not in known]
    if not unknown:
        return
    missing = [
        field.encode_name
        for field in info.fields
        if field.required and field.encode_name not in arguments
    ]
    complaints = []
    for key in unknown[:4]:
        # A required argument that is missing is the likeliest meaning of a name that does not
        # exist.
        near = (
            get_close_matches(key.lower(), [name for name in known if name not in arguments], n=1)
            or missing[:1]
        )
        complaints.append(
            f"there is no argument {key[:64]!r}" + (f", did you mean {near[0]!r}?" if near else "")
        )
    raise InvalidInput(
        f"{tool}: {'; '.join(complaints)} - it takes {_signature(info)}",
        tool=tool,
        unknown=unknown[:16],
    )


def _spell(value: Any, wanted: inspect.Type) -> Any:
    """Put right what `msgspec.convert` would refuse although it is harmless: null for "left out", a
    number for a text, one object for a list of them.
    """
    if isinstance(wanted, inspect.Metadata):
        return _spell(value, wanted.type)
    if isinstance(wanted, inspect.StructType) and isinstance(value, Mapping):
        fields = {field.encode_name: field for field in wanted.fields}
        return {
            key: _spell(item, fields[key].type) if key in fields else item
            for key, item in value.items()
            if not (
                item is None
                and key in fields
                and not fields[key].required
                and not _nullable(fields[key].type)
            )
        }
    if isinstance(wanted, inspect.ListType | inspect.VarTupleType):
        if isinstance(value, Mapping) and isinstance(wanted.item_type, inspect.StructType):
            value = [value]
        if isinstance(value, list | tuple):
            return [_spell(item, wanted.item_type) for item in value]
    if isinstance(wanted, inspect.StrType) and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(wanted, inspect.IntType | inspect.BoolType) and isinstance(value, str):
        return value.strip()
    return value


def _nullable(wanted: inspect.Type) -> bool:
    if isinstance(wanted, inspect.Metadata):
        return _nullable(wanted.type)
    if isinstance(wanted, inspect.UnionType):
        return any(isinstance(each, inspect.NoneType) for each in wanted.types)
    return isinstance(wanted, inspect.NoneType | inspect.AnyType)


def _explain(message: str) -> str:
    """msgspec's sentence, with the argument's name first and without its notation for paths."""
    problem, _, where = message.partition(" - at `")
    name = where.rstrip("`").removeprefix("$").lstrip(".")
    problem = problem[:1].lower() + problem[1:].replace("`", "")
    if "object missing required field" in problem:
        problem = problem.replace("object missing required field", "missing required argument")
    return f"argument {name}: {problem}" if name else problem


def _signature(info: inspect.StructType) -> str:
    return ", ".join(
        f"{field.encode_name}{'' if field.required else '?'}: {_word(field.type)}"
        for field in info.fields
    )


def _word(wanted: inspect.Type) -> str:
    match wanted:
        case inspect.Metadata():
            return _word(wanted.type)
        case inspect.StrType():
            return "string"
        case inspect.IntType():
            return "integer"
        case inspect.BoolType():
            return "boolean"
        case inspect.LiteralType():
            return " or ".join(repr(value) for value in wanted.values)
        case inspect.ListType() | inspect.VarTupleType():
            return f"list of {_word(wanted.item_type)}"
        case inspect.StructType():
            return f"{{{_signature(wanted)}}}"
        case _:
            return "value"


# A title repeats the type's name. A limit is enforced here and named when it is broken: telling it
# every time costs more tokens than telling it when needed.
_NOT_SHOWN = frozenset(
    {"$defs", "title", "minLength", "maxLength", "minimum", "maximum", "maxItems", "pattern"}
)


def schema_of(argument_type: type[Struct]) -> dict[str, Any]:
    """The JSON Schema of an argument type, small and without references: it is sent with every
    request.
    """
    schema = msgspec.json.schema(argument_type)
    inlined = _inline(schema, schema.get("$defs", {}))
    assert isinstance(inlined, dict)
    return inlined


def _inline(node: Any, defs: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, defs) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline(defs[node["$ref"].rsplit("/", 1)[1]], defs)
    kept = {key: value for key, value in node.items() if key not in _NOT_SHOWN}
    # An empty default says nothing that "not required" does not.
    if "default" in kept and kept["default"] in ("", [], (), {}, None, False):
        del kept["default"]
    if kept.get("required") == []:
        del kept["required"]
    if kept.get("additionalProperties") is False:
        del kept["additionalProperties"]
    return {
        key: (
            {name: _inline(each, defs) for name, each in value.items()}
            if key == "properties"
            else _inline(value, defs)
        )
        for key, value in kept.items()
    }
