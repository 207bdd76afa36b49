"""A server's JSON Schema as the judge of arguments. It never fetches anything, and no pattern in it
can make it run for long.
"""

from typing import TYPE_CHECKING, Any

from palyra.core.errors import InvalidInput

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
