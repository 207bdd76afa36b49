"""The words by which servers say that they take no tools, or do not have a model."""

import re
from typing import Final

# A refusal of tools as such. Each names tools and the refusal together, so that a refusal of a
# tool's schema or of the choice among tools is not taken for it.
NO_TOOLS: Final = (
    "does not support tools",
    "do not support tools",
    "doesn't support tools",
    "not support tool use",
    "not support tool call",
    "not support function call",
    "found that support tool use",
    "tools are not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "tool calls are not supported",
    "function calling is not supported",
    "function calling is not enabled",
    "tool calling is not enabled",
    "`tools` is not supported",
    "'tools' is not supported",
    "enable-auto-tool-choice",
    "tool-call-parser",
    "tools param requires --jinja",
    "requires --jinja",
)
# The parameter as such is refused, not something inside it such as a tool's schema.
NO_TOOLS_PARAMETER: Final = re.compile(
    r"(?:unsupported|unknown|unrecognized|unexpected|not supported|not permitted)[^.]{0,60}"
    r"(?:parameter|argument|field|input)s?[^.]{0,40}[\s'\"`:]tools['\"`]?(?![\w\[.'\"`])"
    r'|"loc": \["body", "tools"\]'
)
NO_MODEL: Final = (
    "model_not_found",
    "model not found",
    "no such model",
    "unknown model",
    "invalid model",
    "not a valid model",
    "model does not exist",
    "no models loaded",
    "model_not_available",
    "deploymentnotfound",
)
# Names of models stand between the words, with dots in them.
NO_SUCH_MODEL: Final = re.compile(
    r"\bmodels?\b(?:[^.,;]|\.(?=\S)){0,160}?(?:not found|does not exist|is not available)"
    r"|\bnot_found_error\b.{0,80}\bmodel:"
)
