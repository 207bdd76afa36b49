"""The gRPC door from the inside: TLS with the daemon's certificate, ports, and what becomes of work
whose caller did not wait.
"""

import asyncio
import socket
import ssl
import threading

import grpc
import pytest

from palyra.core.errors import ConfigInvalid, Conflict
from palyra.serve.listeners import grpc_listener
from palyra.v1 import admin_pb2, admin_pb2_grpc, sessions_pb2, sessions_pb2_grpc
from tests.doors.conftest import Served
from tests.doors.doors import Door, Refused
from tests.doors.world import World
from tests.faults import eventually


async def session_over(address: str, world: World, authority: bytes) -> str:
    secret, _ = await world.access.mint("owner", "over tls", "owner", principal="owner")
    credentials = grpc.ssl_channel_credentials(authority)
    # A channel of its own: what it learnt of the certificate before must not help it.
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        call = sessions_pb2_grpc.SessionsStub(channel).FindOrCreate
        made = await call(
            sessions_pb2.SessionsFindOrCreateRequest(),
            metadata=(("authorization", f"Bearer {secret}"),),
            timeout=20,
        )
    return str(made.session_id)


def shown(address: str, authority: bytes) -> bytes:
    """The certificate that a new connection is shown."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cadata=authority.decode())
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, int(port)), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        found = secure.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_it_is_served_with_the_daemons_certificate_also_after_that_was_renewed(
    served: Served,
) -> None:
    async def body(world: World, door: Door) -> None:
        certificates = world.daemon.certificates
        pair = await certificates.serve(["localhost", "127.0.0.1"])
        authority = await certificates.trust()
        async with grpc_listener(world.app, "127.0.0.1", 0, certificates, pair) as address:
            assert len(await session_over(address, world, authority)) == 26
            before = await asyncio.to_thread(shown, address, authority)
            await certificates.renew("owner")
            after = await asyncio.to_thread(shown, address, authority)
            assert before != after
            assert len(await session_over(address, world, authority)) == 26
            async with grpc.aio.insecure_channel(address) as channel:
                plain = sessions_pb2_grpc.SessionsStub(channel).List(
                    sessions_pb2.SessionsListRequest(), timeout=20
                )
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await plain
            assert refused.value.code() == grpc.StatusCode.UNAVAILABLE

    served.run(body, "grpc")


def test_a_port_that_is_taken_names_who_has_it_and_nothing_is_open_beyond_loopback_without_tls(
    served: Served,
) -> None:
    async def body(world: World, door: Door) -> None:
        port = int(world.grpc_address.rpartition(":")[2])
        with pytest.raises(Conflict, match="process") as taken:
            async with grpc_listener(world.app, "127.0.0.1", port, world.daemon.certificates, None):
                pass
        assert "server.grpc_port" in taken.value.message
        with pytest.raises(ConfigInvalid):
            async with grpc_listener(world.app, "0.0.0.0", 0, world.daemon.certificates, None):
                pass

    served.run(body, "grpc")


def test_what_was_begun_is_done_although_the_caller_did_not_wait_for_it(served: Served) -> None:
    """A token that is being revoked while its revoker gives up would otherwise be taken back into
    use.
    """

    async def body(world: World, door: Door) -> None:
        owner, _ = await world.access.mint("owner", "revoker", "owner", principal="owner")
        secret, token = await world.access.mint("owner", "short", "operator", principal="owner")
        doomed = await world.door("grpc", secret=secret)
        await doomed.session()
        gate = threading.Event()
        busy = threading.Event()
        held = world.daemon.db.write(lambda tx: (busy.set(), gate.wait(20)))
        await eventually(busy.is_set, "the store is slow")
        try:
            async with grpc.aio.insecure_channel(world.grpc_address) as channel:
                admin, metadata = (
                    admin_pb2_grpc.AdminStub(channel),
                    (("authorization", f"Bearer {owner}"),),
                )
                call = admin.RevokeToken(
                    admin_pb2.AdminRevokeTokenRequest(token_id=token.token_id),
                    metadata=metadata,
                    timeout=20,
                )
                await eventually(lambda: not world.access.knows(secret), "it is begun")
                call.cancel()
                assert await call.code() == grpc.StatusCode.CANCELLED
                # Behind it on the same connection: when this is answered, the daemon knows of that.
                await admin.Status(admin_pb2.AdminStatusRequest(), metadata=metadata, timeout=20)
        finally:
            gate.set()
        await held
        with pytest.raises(Refused) as refused:
            await doomed.session()
        assert refused.value.code == "unauthenticated"

    served.run(body, "grpc")
