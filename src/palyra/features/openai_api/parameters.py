"""Parameters that no request type has: refused by name, or without any effect, which the answer's
header says.

The rule: nothing that changes an answer is dropped in silence.
"""

from collections.abc import Iterable
from typing import Final

from palyra.features.openai_api.answer_options import refuse
from palyra.features.openai_api.wire_types import ChatRequest, ResponseRequest

_LOGPROBS: Final = "an agent's answer has no log probabilities: leave {} out"
_SAMPLING: Final = "models here cannot be told {}: leave it out, or set extra_body of the provider"
_REFUSED: Final = {
    "audio": "answers are text: leave {} out",
    "function_call": "functions became tools: use tools and tool_choice",
    "top_logprobs": _LOGPROBS,
    "moderation": "no moderation runs here: leave {} out",
    "max_tool_calls": "calls are limited by the agent's budgets: leave {} out",
    "prompt": "prompts are not stored here: send instructions and input",
    "image": "the agent makes no images: leave {} out",
    "access_programs": "{} means nothing here: leave it out",
    "context_management": "the daemon compacts its sessions by its own settings: leave {} out",
    # Words of other servers for how a model chooses its words.
    **dict.fromkeys(
        (
            "top_k",
            "top_a",
            "min_p",
            "typical_p",
            "tfs",
            "repetition_penalty",
            "repeat_penalty",
            "length_penalty",
            "min_tokens",
            "ignore_eos",
            "best_of",
            "use_beam_search",
            "mirostat",
            "mirostat_tau",
            "mirostat_eta",
            "grammar",
            "guided_json",
            "guided_regex",
            "guided_choice",
            "guided_grammar",
            "structured_outputs",
            "logits_processors",
            "chat_template",
            "chat_template_kwargs",
            "enable_thinking",
            "think",
            "thinking",
            "num_ctx",
            "num_predict",
            "options",
        ),
        _SAMPLING,
    ),
}
_LONGEST_NAME: Final = 64
_MOST: Final = 32


def unused(unread: Iterable[str], body: ChatRequest | ResponseRequest) -> tuple[str, ...]:
    """Return the parameters that have no effect. Raise InvalidInput for one that would have one."""
    found = []
    for name in unread:
        if name in _REFUSED:
            refuse(name, _REFUSED[name].format(name))
        found.append(name)
    if isinstance(body, ResponseRequest):
        for each in body.include or ():
            if "logprobs" in each:
                refuse("include", _LOGPROBS.format(each))
            found.append(f"include:{each}")
        if body.reasoning is not None and (
            body.reasoning.summary or body.reasoning.generate_summary
        ):
            found.append("reasoning.summary")
    return tuple(found)


def header(names: Iterable[str]) -> bytes:
    """Return what the answer says about them, as far as a header can."""
    legal = (name for name in names if name.isascii() and name.isprintable() and "," not in name)
    return ", ".join([name[:_LONGEST_NAME] for name in legal][:_MOST]).encode()
