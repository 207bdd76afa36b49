"""The endpoints that OpenAI's programs know. Their errors have OpenAI's shape."""

from functools import partial
from typing import Any

from palyra.api.calls import SSE
from palyra.api.routes import Gives, Route
from palyra.features.openai_api import (
    chat,
    conversations,
    embeddings,
    models,
    responses,
    stored_responses,
)
from palyra.features.openai_api.errors import OpenAIError, body_of
from palyra.features.openai_api.wire_types import (
    ChatCompletion,
    ChatRequest,
    ConversationRequest,
    EmbeddingList,
    EmbeddingRequest,
    ResponseRequest,
)

# A picture or two along with the words.
_MOST = 24 << 20
_HEADERS = (
    (
        "X-Palyra-Session",
        "the id or key of the session to talk in; a key that is not known yet makes one",
    ),
    ("Idempotency-Key", "the same key with the same request gives the same run"),
)
_route = partial(Route[Any, Any], refuse=body_of, problem=OpenAIError, client=True)

ROUTES: tuple[Route[Any, Any], ...] = (
    _route(
        method="POST",
        path="/v1/chat/completions",
        summary="the agent answers a chat, for programs that know OpenAI's",
        handler=chat.completions,
        scope="operator",
        body=ChatRequest,
        tells_unread=True,
        most=_MOST,
        headers=_HEADERS,
        errors=(404, 409),
        gives=(Gives(200, ChatCompletion), Gives(200, media=SSE)),
    ),
    _route(
        method="POST",
        path="/v1/responses",
        summary="the same as a response that the next one can name",
        handler=responses.create,
        scope="operator",
        body=ResponseRequest,
        tells_unread=True,
        most=_MOST,
        headers=_HEADERS,
        errors=(404, 409),
        gives=(Gives(200, responses.Response), Gives(200, media=SSE)),
    ),
    _route(
        method="GET",
        path="/v1/responses/{response}",
        summary="a response that was given before, as far as it has come",
        handler=stored_responses.get,
        gives=(Gives(200, responses.Response),),
    ),
    _route(
        method="POST",
        path="/v1/responses/{response}/cancel",
        summary="cancel the run that is working on a response",
        handler=stored_responses.cancel,
        scope="operator",
        gives=(Gives(200, responses.Response),),
    ),
    _route(
        method="DELETE",
        path="/v1/responses/{response}",
        summary="put the session of a response away, if it has no other",
        handler=stored_responses.delete,
        scope="operator",
        gives=(Gives(200, stored_responses.Deleted),),
        errors=(409,),
    ),
    _route(
        method="GET",
        path="/v1/responses/{response}/input_items",
        summary="what a response answered",
        handler=stored_responses.input_items,
        query=stored_responses.ItemsQuery,
        gives=(Gives(200, stored_responses.ItemList),),
    ),
    _route(
        method="POST",
        path="/v1/conversations",
        summary="a conversation that responses can name: a session",
        handler=conversations.create,
        scope="operator",
        body=ConversationRequest,
        tells_unread=True,
        gives=(Gives(200, conversations.ApiConversation),),
    ),
    _route(
        method="GET",
        path="/v1/conversations/{conversation}",
        summary="one of them",
        handler=conversations.get,
        gives=(Gives(200, conversations.ApiConversation),),
    ),
    _route(
        method="DELETE",
        path="/v1/conversations/{conversation}",
        summary="archive the session of a conversation",
        handler=conversations.delete,
        scope="operator",
        gives=(Gives(200, conversations.DeletedConversation),),
        errors=(409,),
    ),
    _route(
        method="GET",
        path="/v1/conversations/{conversation}/items",
        summary="what was said in a conversation",
        handler=conversations.items,
        query=stored_responses.ItemsQuery,
        gives=(Gives(200, stored_responses.ItemList),),
    ),
    _route(
        method="GET",
        path="/v1/models",
        summary="models that can be asked for",
        handler=models.listing,
        gives=(Gives(200, models.ModelList),),
    ),
    _route(
        method="GET",
        path="/v1/models/{model}",
        summary="one of them",
        handler=models.get,
        gives=(Gives(200, models.OpenAIModel),),
    ),
    _route(
        method="POST",
        path="/v1/embeddings",
        summary="texts as vectors, by the daemon's own embedding model",
        handler=embeddings.embeddings,
        scope="operator",
        body=EmbeddingRequest,
        tells_unread=True,
        errors=(404,),
        gives=(Gives(200, EmbeddingList),),
    ),
)
