"""Arguments of a skill's tool, checked by the JSON Schema in its manifest: no network, no slow
patterns.
"""

from collections.abc import Callable, Mapping
from typing import Any

from palyra.core.errors import InvalidInput

Check = Callable[[Mapping[str, Any]], None]


def checker(tool: str, schema: dict[str, Any]) -> Check:
    """Raises InvalidInput for a schema that is wrong; what it returns raises it for arguments that
    do not fit.
    """
    import jsonschema_rs

    try:
        validator = jsonschema_rs.Draft202012Validator(
            schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidInput(
            f"{tool}: the schema of its arguments is not valid: {str(error)[:200]}"
        ) from None

    def check(arguments: Mapping[str, Any]) -> None:
        for error in validator.iter_errors(dict(arguments)):
            where = ".".join(map(str, error.instance_path))
            raise InvalidInput(
                f"{tool}: {f'argument {where}: ' if where else ''}{error.message[:300]}", tool=tool
            )

    return check
