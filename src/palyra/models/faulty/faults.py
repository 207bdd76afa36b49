"""All faults by name."""

from palyra.models.faulty.answer_faults import ANSWERS, CALLS
from palyra.models.faulty.behaviour import Fault
from palyra.models.faulty.server_faults import CONNECTIONS, REFUSALS

FAULTS: dict[str, Fault] = {**REFUSALS, **CONNECTIONS, **ANSWERS, **CALLS}
