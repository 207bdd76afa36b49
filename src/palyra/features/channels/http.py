"""Channels over HTTP: what they are and do, who may write there, what became of a message, and the
door for platforms that call.
"""

from typing import Any

from palyra.api.calls import (
    ApiCall,
    DaemonInfo,
    HttpResponse,
    Nothing,
    Upload,
    ok,
)
from palyra.api.routes import Gives, Route, Takes, json_of
from palyra.core.errors import InvalidInput
from palyra.features.channels.http_types import (
    ChangeChannel,
    ChangePerson,
    ChangeRules,
    ChannelList,
    ConnectorKindList,
    DeadLetters,
    Invite,
    KindInfo,
    MessagePage,
    MessagesQuery,
    Of,
    OfChannel,
    PairingList,
    Pause,
    People,
    PreviewMessage,
    RouteApproval,
    Settled,
    SettlePairing,
    TestChannel,
    Tested,
)
from palyra.features.channels.lazy import LateChannels
from palyra.features.channels.model import Inbound, InboundFile, Sender
from palyra.features.channels.rows.people import Person
from palyra.features.channels.views import (
    ChannelStatus,
    ChatPlace,
    Invitation,
    RoutingPreview,
    Trace,
)
from palyra.features.setup.model import NewChannel, Setup
from palyra.store.approvals import Approval

_ONE = "/v1/channels/{channel}"
_MOST_HOOKED = 4 << 20


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(ChannelList(await call.services.get(LateChannels).now.listing()))


async def kinds(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    from palyra.features.channels import registry as kinds_

    found = [
        KindInfo(
            name=each.name,
            title=each.title,
            settings=each.settings,
            permissions=each.permissions,
            steps=each.steps,
            docs=each.docs,
        )
        for each in kinds_.everything()
    ]
    return ok(ConnectorKindList(found))


async def messages(call: ApiCall[MessagesQuery, Nothing]) -> HttpResponse:
    query = call.query
    found = await call.services.get(LateChannels).now.messages(
        channel=query.channel, state=query.state, before=query.before, limit=query.limit
    )
    return ok(MessagePage(found, found[-1].number if len(found) == query.limit else 0))


async def trace(call: ApiCall[Of, Nothing]) -> HttpResponse:
    return ok(await call.services.get(LateChannels).now.trace(call.query.of))


async def dead(call: ApiCall[OfChannel, Nothing]) -> HttpResponse:
    return ok(DeadLetters(await call.services.get(LateChannels).now.dead(call.query.channel)))


async def replay(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        DeadLetters(
            await call.services.get(LateChannels).now.replay(call.principal, call.path["reply_id"])
        )
    )


async def drop(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        DeadLetters(
            await call.services.get(LateChannels).now.drop(call.principal, call.path["reply_id"])
        )
    )


async def pairings(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(PairingList(await call.services.get(LateChannels).now.desk.pending()))


async def settle(call: ApiCall[Nothing, SettlePairing]) -> HttpResponse:
    desk, body = call.services.get(LateChannels).now.desk, call.body
    if body.verb == "approve":
        return ok(
            Settled(person=await desk.approve(call.principal, body.which, for_ms=body.for_ms))
        )
    return ok(Settled(pairing=await desk.deny(call.principal, body.which)))


async def invite(call: ApiCall[Nothing, Invite]) -> HttpResponse:
    return ok(
        await call.services.get(LateChannels).now.desk.invite(
            call.principal, call.body.channel, for_ms=call.body.for_ms
        ),
        201,
    )


async def people(call: ApiCall[OfChannel, Nothing]) -> HttpResponse:
    return ok(People(await call.services.get(LateChannels).now.desk.people(call.query.channel)))


async def change_person(call: ApiCall[Nothing, ChangePerson]) -> HttpResponse:
    desk, body = call.services.get(LateChannels).now.desk, call.body
    if body.verb == "revoke":
        return ok(await desk.revoke(call.principal, body.channel, body.sender))
    return ok(await desk.link(call.principal, body.channel, body.sender, body.principal))


async def route_approval(call: ApiCall[Nothing, RouteApproval]) -> HttpResponse:
    body = call.body
    if bool(body.channel) != bool(body.conversation):
        raise InvalidInput("a conversation is named with its channel: give both")
    place = ChatPlace(body.channel, body.conversation) if body.channel else None
    asking = call.services.get(LateChannels).now.asking
    return ok(
        await asking.route(
            call.principal, call.path["approval_id"], principal=body.principal, place=place
        )
    )


async def router(call: ApiCall[Nothing, Pause]) -> HttpResponse:
    await call.services.get(LateChannels).now.pause(call.principal, "", paused=call.body.paused)
    return ok(ChannelList(await call.services.get(LateChannels).now.listing()))


async def save(call: ApiCall[Nothing, NewChannel]) -> HttpResponse:
    await call.services.get(Setup).save_channel(call.principal, call.body)
    await call.services.get(DaemonInfo).reload_config()
    return ok(await call.services.get(LateChannels).now.status(call.body.name), 201)


async def remove(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    await call.services.get(Setup).remove_channel(call.principal, call.path["channel"])
    await call.services.get(DaemonInfo).reload_config()
    return ok(ChannelList(await call.services.get(LateChannels).now.listing()))


async def status(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(LateChannels).now.status(call.path["channel"]))


async def change(call: ApiCall[Nothing, ChangeChannel]) -> HttpResponse:
    channels, name = call.services.get(LateChannels).now, call.path["channel"]
    if call.body.verb == "reconnect":
        return ok(await channels.reconnect(call.principal, name))
    return ok(await channels.pause(call.principal, name, paused=call.body.verb == "pause"))


async def change_rules(call: ApiCall[Nothing, ChangeRules]) -> HttpResponse:
    return ok(
        await call.services.get(LateChannels).now.change_rules(
            call.principal, call.path["channel"], call.body.changes
        )
    )


async def preview(call: ApiCall[Nothing, PreviewMessage]) -> HttpResponse:
    body = call.body
    message = Inbound(
        native_id="preview",
        conversation=body.conversation,
        thread=body.thread,
        sender=Sender(body.sender, verified=body.verified),
        text=body.text,
        is_direct=body.direct,
        mentions_everyone=body.everyone,
        files=tuple(InboundFile("", b"") for _ in range(body.files)),
    )
    return ok(await call.services.get(LateChannels).now.preview(call.path["channel"], message))


async def test(call: ApiCall[Nothing, TestChannel]) -> HttpResponse:
    channels, name, body = call.services.get(LateChannels).now, call.path["channel"], call.body
    me = await channels.test(name)
    reply_id = (
        await channels.say(call.principal, ChatPlace(name, body.conversation), body.text)
        if body.conversation
        else ""
    )
    return ok(Tested(me, reply_id))


async def hook(call: ApiCall[Nothing, Upload]) -> HttpResponse:
    headers = {
        key.decode("latin-1").lower(): value.decode("latin-1")
        for key, value in call.headers.items()
    }
    answered = await call.services.get(LateChannels).now.hook(
        call.path["channel"], headers, call.body.data
    )
    return HttpResponse(answered.status, answered.body, answered.media_type.encode("latin-1"))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/channels",
        summary="channels: their connections, rules and counts",
        handler=listing,
        gives=json_of(ChannelList),
    ),
    Route(
        method="POST",
        path="/v1/channels",
        summary="add a channel, or change its settings; secrets go into the vault",
        handler=save,
        scope="owner",
        body=NewChannel,
        gives=json_of(ChannelStatus, 201),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path=_ONE,
        summary="remove a channel; what was said there stays",
        handler=remove,
        scope="owner",
        gives=json_of(ChannelList),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/channels/kinds",
        summary="kinds of channels and what each needs",
        handler=kinds,
        gives=json_of(ConnectorKindList),
    ),
    Route(
        method="GET",
        path="/v1/channels/messages",
        summary="messages that came in, newest first",
        handler=messages,
        scope="owner",
        query=MessagesQuery,
        gives=json_of(MessagePage),
    ),
    Route(
        method="GET",
        path="/v1/channels/trace",
        summary="what happened to a message, step by step",
        handler=trace,
        scope="owner",
        query=Of,
        gives=json_of(Trace),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/channels/dead",
        summary="replies that could not be delivered",
        handler=dead,
        scope="owner",
        query=OfChannel,
        gives=json_of(DeadLetters),
    ),
    Route(
        method="POST",
        path="/v1/channels/dead/{reply_id}/replay",
        summary="send such a reply again",
        handler=replay,
        scope="owner",
        body=Nothing,
        gives=json_of(DeadLetters),
    ),
    Route(
        method="POST",
        path="/v1/channels/dead/{reply_id}/drop",
        summary="give such a reply up",
        handler=drop,
        scope="owner",
        body=Nothing,
        gives=json_of(DeadLetters),
    ),
    Route(
        method="GET",
        path="/v1/channels/pairings",
        summary="who waits to be admitted",
        handler=pairings,
        scope="owner",
        gives=json_of(PairingList),
    ),
    Route(
        method="POST",
        path="/v1/channels/pairings",
        summary="admit somebody, or do not",
        handler=settle,
        scope="owner",
        body=SettlePairing,
        gives=json_of(Settled),
        errors=(404, 409),
    ),
    Route(
        method="POST",
        path="/v1/channels/invitations",
        summary="a code that admits the first person who sends it",
        handler=invite,
        scope="owner",
        body=Invite,
        gives=json_of(Invitation, 201),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/channels/people",
        summary="who has written, who is paired, whose identity they are",
        handler=people,
        scope="owner",
        query=OfChannel,
        gives=json_of(People),
    ),
    Route(
        method="POST",
        path="/v1/channels/people",
        summary="take a pairing back, or link an identity to a user",
        handler=change_person,
        scope="owner",
        body=ChangePerson,
        gives=json_of(Person),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/channels/approvals/{approval_id}/route",
        summary="hand an approval on to somebody else",
        handler=route_approval,
        scope="operator",
        body=RouteApproval,
        gives=json_of(Approval),
    ),
    Route(
        method="POST",
        path="/v1/channels/router",
        summary="refuse everything on all channels, or go on",
        handler=router,
        scope="owner",
        body=Pause,
        gives=json_of(ChannelList),
    ),
    Route(
        method="GET", path=_ONE, summary="one channel", handler=status, gives=json_of(ChannelStatus)
    ),
    Route(
        method="POST",
        path=_ONE,
        summary="pause, resume or reconnect a channel",
        handler=change,
        scope="owner",
        body=ChangeChannel,
        gives=json_of(ChannelStatus),
        errors=(409,),
    ),
    Route(
        method="PATCH",
        path=f"{_ONE}/rules",
        summary="change rules, from now on",
        handler=change_rules,
        scope="owner",
        body=ChangeRules,
        gives=json_of(ChannelStatus),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/preview",
        summary="what would become of a message, doing nothing",
        handler=preview,
        body=PreviewMessage,
        gives=json_of(RoutingPreview),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/test",
        summary="ask the platform who we are; send a test message",
        handler=test,
        scope="owner",
        body=TestChannel,
        gives=json_of(Tested),
        errors=(503,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/hook",
        summary="the door for a platform that calls; its connector checks who it is",
        handler=hook,
        scope=None,
        takes=Takes(b"*/*", _MOST_HOOKED),
        gives=(Gives(200, media=b"*/*"),),
        errors=(401, 409),
    ),
)
