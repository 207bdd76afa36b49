"""Causes over HTTP."""

from typing import Annotated, Any

from msgspec import Meta

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.features.why.model import WhyAnswer
from palyra.features.why.service import CauseFinder


class WhyQuery(Input, frozen=True, kw_only=True):
    """`about`: SESSION:NUMBER, a position in the journal, an absolute path, or the id of a call,
    an approval, a message to a chat or a run. `limit`: so many changes of a file, newest first.
    """

    about: Annotated[str, Meta(min_length=1, max_length=4_096)]
    limit: Annotated[int, Meta(ge=1, le=50)] = 1


async def why(call: ApiCall[WhyQuery, Nothing]) -> HttpResponse:
    query = call.query
    return ok(
        await call.services.get(CauseFinder).why(
            call.principal,
            query.about,
            limit=query.limit,
            everything=call.token.scope == "owner",
        )
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/journal/why",
        summary="the causes of an entry, a file, a message or a cost, as a tree",
        handler=why,
        query=WhyQuery,
        gives=(Gives(200, WhyAnswer),),
        errors=(403, 404, 409),
    ),
)
