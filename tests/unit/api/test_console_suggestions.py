"""What the start page of the console suggests works with the built-in model."""

import re
from pathlib import Path

from palyra.models.demo.intents import NoTool, Unknown
from palyra.models.demo.parser import understand

PAGE = Path(__file__).parents[3] / "console" / "src" / "chat" / "page.tsx"


def test_the_demo_model_understands_every_suggestion_that_it_is_offered() -> None:
    source = PAGE.read_text()
    found = [
        text
        for name in ("SUGGESTIONS", "FOR_DEMO")
        for text in re.findall(
            r'"([^"]+)"',
            re.search(rf"const {name}\b.*", source)[0],  # type: ignore[index]
        )
    ]
    assert len(found) == 4
    for text in found:
        intents = understand(text)
        assert intents, text
        assert not any(isinstance(each, NoTool | Unknown) for each in intents), text
