"""Reader of the one TOML file and the environment into a Config, strictly: every problem is
reported at once, by name and line.

A wrong key is an error and never falls back to a default; a value that may be a secret is never
repeated in a message.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec import Struct

from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.serve.config import channels, checks, mcp, schema
from palyra.serve.config.checks import PREFIX, SPECIAL
from palyra.serve.config.schema import NAME, Config, SettingLeaf
from palyra.serve.config.sections import Section

if TYPE_CHECKING:
    from tomlkit.container import Container
    from tomlkit.items import Item

FILE = "config.toml"
# A character that no TOML text holds.
_MARK = "\0"


class ConfigProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`where` is the file, or the environment variable."""

    key: str
    message: str
    where: str
    line: int | None = None
    suggestion: str = ""

    def __str__(self) -> str:
        place = f"{self.where}, line {self.line}" if self.line else self.where
        subject = f"{self.key}: " if self.key and self.key != self.where else ""
        return f"{place}: {subject}{self.message}" + (
            f"; did you mean {self.suggestion}?" if self.suggestion else ""
        )


class Loaded(Struct, frozen=True, kw_only=True):
    """`sources` has the file or the variable of each value that is no default; `notes` are for the
    user to read at start.
    """

    config: Config
    home: Path
    notes: tuple[str, ...]
    sources: dict[str, str]
    text: str = ""


class ShownSetting(Struct, frozen=True, kw_only=True):
    key: str
    value: Any
    source: str


def load(home: Path, env: Mapping[str, str]) -> Loaded:
    """The configuration in force, or ConfigInvalid with every problem there is."""
    reader = _read(home, env)
    config = reader.config()
    if reader.problems or config is None:
        raise invalid(reader.problems)
    sources = {".".join(path): source for path, (_, source) in reader.values.items()}
    return Loaded(
        config=config,
        home=home,
        notes=tuple(checks.notes(home, config, env)),
        sources=sources,
        text=reader.text,
    )


def check(home: Path, env: Mapping[str, str]) -> tuple[ConfigProblem, ...]:
    """Return what is wrong with the configuration; empty: nothing is."""
    reader = _read(home, env)
    reader.config()
    return tuple(reader.problems)


def check_text(path: Path, text: str) -> tuple[ConfigProblem, ...]:
    """Return what would be wrong if this were the file."""
    reader = _Reader(str(path))
    reader.file(text)
    reader.config()
    return tuple(reader.problems)


def show(loaded: Loaded, *, with_lines: bool = True) -> tuple[ShownSetting, ...]:
    """Every effective value with its source. Keys are references, so nothing secret can appear."""
    file, found = str(loaded.home / FILE), lines(loaded.text) if with_lines else {}

    def source(path: tuple[str, ...]) -> str:
        known = loaded.sources.get(".".join(path), "default")
        return f"{file}, line {found[path]}" if known == file and path in found else known

    return tuple(
        ShownSetting(key=".".join(path), value=value, source=source(path))
        for path, value in _leaves(loaded.config, ())
    )


def parse(text: str) -> dict[str, Any]:
    """Return what a TOML text says. Raise ValueError if it is not valid TOML."""
    import tomllib

    return tomllib.loads(text)


def lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line on which each key and each table of a valid TOML text first stands."""
    if not text:
        return {}
    # Only who shows a line pays for the parser that knows where things are.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        paths: list[tuple[str, ...]] = []
        for path, item in list(items(document)):
            # Where the mark of an item is written, there the item stands.
            item.trivia.indent = f"{_MARK}{len(paths)};{item.trivia.indent}"
            paths.append(path)
        pieces = tomlkit.dumps(document).split(_MARK)
    except (TOMLKitError, ValueError):
        return {}
    found: dict[tuple[str, ...], int] = {}
    line = 1 + pieces[0].count("\n")
    for piece in pieces[1:]:
        number, _, rest = piece.partition(";")
        path = paths[int(number)]
        for length in range(1, len(path) + 1):
            found.setdefault(path[:length], line)
        line += rest.count("\n")
    return found


def items(
    container: "Container", path: tuple[str, ...] = ()
) -> "Iterator[tuple[tuple[str, ...], Item]]":
    """Yield each key and table in the order of the text. What is in an array of tables has no path:
    no setting lives there.
    """
    from tomlkit.items import AoT, InlineTable, Table

    for key, item in container.body:
        if key is None:
            continue
        here = (*path, key.key)
        if isinstance(item, AoT):
            yield from ((here, table) for table in item.body)
            continue
        yield here, item
        if isinstance(item, Table | InlineTable):
            yield from items(item.value, here)


def secret(reference: str, env: Mapping[str, str]) -> str:
    """The value behind `env:NAME`, `file:/path` or `keyring:NAME`; behind `vault:NAME` if whoever
    opened the vault put it into `env`, so named.
    """
    scheme, _, target = reference.partition(":")
    if scheme == "vault":
        if reference not in env:
            raise ConfigInvalid(f"the key {target} is in the vault, which only the daemon opens")
        return env[reference]
    if scheme == "keyring":
        # Late: few have a secret there.
        from palyra.system.os_keyring import find_secret

        return find_secret(target)
    if scheme == "env":
        value = env.get(target, "")
        if not value:
            raise ConfigInvalid(
                f"the environment variable {target} is not set; a setting refers to it"
            )
        return value
    try:
        value = Path(target).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"the key file {target} cannot be read: {error}") from error
    if not value:
        raise ConfigInvalid(f"the key file {target} is empty")
    return value


def invalid(problems: list[ConfigProblem] | tuple[ConfigProblem, ...]) -> ConfigInvalid:
    lines = [str(problem) for problem in problems]
    message = (
        lines[0]
        if len(lines) == 1
        else f"{len(lines)} problems in the configuration:\n"
        + "\n".join(f"  {line}" for line in lines)
    )
    return ConfigInvalid(message, problems=msgspec.to_builtins(list(problems)))


def find(path: tuple[str, ...]) -> SettingLeaf | None:
    """The setting at this path; any name will do where the user chooses it."""
    for setting in schema.settings():
        if len(setting.path) == len(path) and all(
            a in (b, NAME) for a, b in zip(setting.path, path, strict=True)
        ):
            return setting
    return None


def from_text(setting: SettingLeaf, text: str) -> Any:
    """A value written as plain text, in an environment variable or on a command line."""
    if setting.accepts == "a list of texts":
        if text.lstrip().startswith("["):
            try:
                return msgspec.convert(parse(f"v = {text}")["v"], setting.type)
            except ValueError as error:
                raise msgspec.ValidationError(str(error)) from error
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return msgspec.convert(text, setting.type, strict=False)


def _read(home: Path, env: Mapping[str, str]) -> "_Reader":
    path = home / FILE
    reader = _Reader(str(path))
    try:
        reader.file(path.read_bytes().decode())
    except FileNotFoundError:
        pass
    except OSError as error:
        reader.problem((), f"the file cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        reader.problem((), "the file is not UTF-8 text")
    reader.environment(env)
    return reader


class _Reader:
    """Collector of good values and problems side by side: one problem never hides another."""

    def __init__(self, path: str) -> None:
        self.values: dict[tuple[str, ...], tuple[Any, str]] = {}
        self.problems: list[ConfigProblem] = []
        self.text = ""
        self._path = path
        # The tables whose names the user chose, as (section, name).
        self._named: dict[tuple[str, str], None] = {}

    def problem(
        self,
        path: tuple[str, ...],
        message: str,
        *,
        suggestion: str = "",
        variable: str = "",
        line: int = 0,
    ) -> None:
        if not variable and not line:
            line = self._line(path)
        self.problems.append(
            ConfigProblem(
                key=".".join(path),
                message=message,
                where=variable or self._path,
                line=line or None,
                suggestion=suggestion,
            )
        )

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        return lines(self.text)

    def _line(self, path: tuple[str, ...]) -> int:
        """Return the line of this key, or of the nearest table around it that is written down; else
        0.
        """
        return next(
            (
                self._lines[path[:size]]
                for size in range(len(path), 0, -1)
                if path[:size] in self._lines
            ),
            0,
        )

    def file(self, text: str) -> None:
        # Only who has a file pays for reading it.
        try:
            data = parse(text)
        except ValueError as error:
            import re

            at = re.search(r"line (\d+)", str(error))
            self.problem(
                (), f"not valid TOML: {error}", line=int(at[1]) if at else text.count("\n") + 1
            )
            return
        self.text = text
        self._walk(Config, data, ())

    def _walk(self, section: type[Section], data: dict[str, Any], path: tuple[str, ...]) -> None:
        fields = {field.name: field for field in msgspec.structs.fields(section)}
        for name, value in data.items():
            here, field = (*path, name), fields.get(name)
            if field is None:
                self.problem(
                    here,
                    "there is no such setting",
                    suggestion=checks.nearest_key(path, name, list(fields)),
                )
            elif inner := schema.section_of(field.type) or schema.members_of(field.type):
                if not isinstance(value, dict):
                    self.problem(here, "must be a table")
                elif schema.section_of(field.type):
                    self._walk(inner, value, here)
                else:
                    self._members(inner, value, here)
            else:
                self._leaf(here, value)

    def _members(self, inner: type[Section], data: dict[str, Any], path: tuple[str, ...]) -> None:
        for name, value in data.items():
            if not isinstance(value, dict):
                self.problem(
                    (*path, name),
                    "must be a table" + (", with a kind" if path[0] == "providers" else ""),
                )
            elif self._good_name(path[0], name):
                self._named[path[0], name] = None
                self._walk(inner, value, (*path, name))

    def _good_name(self, section: str, name: str, variable: str = "") -> bool:
        good = (
            name.isascii()
            and name.replace("-", "").replace("_", "").isalnum()
            and name == name.lower()
        )
        whose = {
            "budgets": "a budget's name",
            "routing": "a routing rule's name",
            "model_options": "a name for model options",
        }.get(section, "a provider's name")
        if section == "mcp":
            good, whose = mcp.good_name(name), "an MCP server's name"
        elif section == "channels":
            good, whose = channels.good_name(name), "a channel's name"
        if not good:
            self.problem(
                (section, name), f"{whose} is small letters, digits and dashes", variable=variable
            )
        return good

    def _leaf(self, path: tuple[str, ...], value: Any) -> None:
        setting = find(path)
        assert setting is not None
        try:
            good = msgspec.convert(value, setting.type)
        except msgspec.ValidationError:
            self._refuse(setting, path, value)
            return
        if message := checks.objection(path, good):
            self.problem(path, message)
            return
        self.values[path] = (good, self._path)

    def environment(self, env: Mapping[str, str]) -> None:
        for variable in sorted(env):
            if not variable.startswith(PREFIX) or variable in SPECIAL:
                continue
            path = tuple(variable[len(PREFIX) :].lower().split("__"))
            if path[0] in ("providers", "mcp", "channels") and len(path) == 3:
                path = (path[0], self._known_as(path[0], path[1]), path[2])
            setting = find(path)
            if setting is None:
                self.problem(
                    (),
                    "there is no such setting",
                    suggestion=checks.nearest_variable(variable),
                    variable=variable,
                )
            elif NAME not in setting.path or self._good_name(path[0], path[1], variable):
                self._override(setting, path, variable, env[variable])

    def _known_as(self, section: str, name: str) -> str:
        # A variable cannot have a dash in its name.
        return next(
            (
                known
                for of, known in self._named
                if of == section and known.replace("-", "_") == name
            ),
            name,
        )

    def _override(
        self, setting: SettingLeaf, path: tuple[str, ...], variable: str, text: str
    ) -> None:
        try:
            value = from_text(setting, text)
        except msgspec.ValidationError:
            self._refuse(setting, path, text, variable)
            return
        if message := checks.objection(path, value):
            self.problem(path, message, variable=variable)
            return
        if NAME in setting.path:
            self._named[path[0], path[1]] = None
        self.values[path] = (value, variable)

    def _refuse(
        self, setting: SettingLeaf, path: tuple[str, ...], value: Any, variable: str = ""
    ) -> None:
        choices = [
            choice for choice in get_args(get_args(setting.type)[0]) if isinstance(choice, str)
        ]
        suggestion = checks.nearest(value, choices) if isinstance(value, str) else ""
        self.problem(
            path,
            f"must be {setting.accepts}",
            suggestion=f'"{suggestion}"' if suggestion else "",
            variable=variable,
        )

    def config(self) -> Config | None:
        """The Config, once everything that depends on more than one value has been looked at."""
        blamed = {problem.key for problem in self.problems}
        providers = [name for section, name in self._named if section == "providers"]
        for name in providers:
            key = ("providers", name, "kind")
            if key not in self.values and ".".join(key) not in blamed:
                accepts = next(
                    each.accepts for each in schema.settings() if each.path[-1] == "kind"
                )
                self.problem(key, f"is missing; set it to {accepts}")
        for section, name in self._named:
            if section == "mcp" and not any(path[:2] == (section, name) for path in self.values):
                self.problem((section, name), "needs a command, or a url")
        if any(("providers", name, "kind") not in self.values for name in providers):
            return None
        config = msgspec.convert(
            schema.tree({path: value for path, (value, _) in self.values.items()}), Config
        )
        for path, message, suggestion in checks.contradictions(config):
            if ".".join(path) not in blamed:
                source = self.values.get(path, ("", ""))[1]
                self.problem(
                    path,
                    message,
                    suggestion=suggestion,
                    variable=source if source.startswith(PREFIX) else "",
                )
        return config


def _leaves(section: Section, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in section.__struct_fields__:
        value, here = getattr(section, field), (*path, field)
        if isinstance(value, Section):
            yield from _leaves(value, here)
        elif isinstance(value, dict):
            for name, member in value.items():
                yield from _leaves(member, (*here, name))
        else:
            yield here, value


def parse_key(key: str) -> tuple[tuple[str, ...], SettingLeaf]:
    """A dotted key as a user writes it, and the setting it names."""
    path = tuple(key.split("."))
    setting = find(path)
    if setting is None or "" in path:
        known = [
            ".".join(each.path).replace(NAME, path[1] if len(path) > 2 else NAME)
            for each in schema.settings()
        ]
        close = checks.nearest(key, known)
        raise InvalidInput(
            f"there is no setting {key!r}" + (f"; did you mean {close}?" if close else ""),
            suggestion=close,
        )
    return path, setting
