"""A model that asks what `palyra policy explain` would say before it says what it wants."""

from typing import Any

from palyra.api.admin import Explain, question_of
from palyra.core.ids import OWNER
from palyra.core.messages import ModelRequest
from palyra.core.verdicts import word
from palyra.models.scripted import ScriptedModel
from palyra.policy.store import PolicyStore
from tests.injection.office_runs import OneCallATurn


class Explained(ScriptedModel):
    """Asks what would be decided before it says what it wants."""

    def __init__(self, model: OneCallATurn) -> None:
        super().__init__(model.turn)
        self._model = model
        self.daemon: Any = None
        self.session_id = ""
        self.origin: Any = "interactive"
        self.said: list[tuple[str, str, Any]] = []

    async def stream(self, request: ModelRequest, emit: Any) -> Any:
        turn = self._model.turn(request)
        for each in turn.calls:
            wanted = Explain(
                tool=each.name,
                arguments=each.arguments,
                session_id=self.session_id or request.cache_key,
                origin=self.origin,
            )
            services = self.daemon.services
            question = await question_of(services, OWNER, wanted)
            found = services.get(PolicyStore).explain(question)
            self.said.append((each.name, word(found.verdict), question.values))
        return await super().stream(request, emit)
