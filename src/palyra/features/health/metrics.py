"""Incidents in the exposition."""

from collections.abc import Iterable

from palyra.api.metrics import family, labels_of
from palyra.features.health import rows
from palyra.store.database import Tx


class IncidentMetrics:
    def lines(self, tx: Tx) -> Iterable[str]:
        yield from family(
            "palyra_incidents_open", "gauge", "incidents that are not over, by domain"
        )
        for domain, count in rows.open_by_domain(tx).items():
            yield f"palyra_incidents_open{labels_of(domain=domain)} {count}"
