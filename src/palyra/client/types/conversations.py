"""Written by scripts/clients.py from the route table: types of the verbs about conversations."""

from typing import Literal

from msgspec import Struct

from palyra.client.types.openai import ItemList

__all__ = ["ApiConversation", "DeletedConversation", "ItemList"]


class ApiConversation(Struct, frozen=True, kw_only=True):
    id: str
    created_at: int
    metadata: dict[str, str] = {}
    object: Literal["conversation"] = "conversation"


class DeletedConversation(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: bool = True
