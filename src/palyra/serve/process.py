"""Starting the daemon as a process, telling where it is, and stopping it cleanly. What cannot start
says why and leaves nothing.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AsyncExitStack,
    contextmanager,
    nullcontext,
    suppress,
)
from functools import partial
from pathlib import Path

from msgspec.structs import replace

import palyra
from palyra.agent.broadcast import Broadcast
from palyra.agent.runs import Runs
from palyra.agent.sessions import Sessions
from palyra.api import exposure, listen_sockets
from palyra.api.app import App
from palyra.api.auth import Access
from palyra.api.calls import DaemonInfo
from palyra.api.exposure import Listener, ListenerSettings
from palyra.api.guard import Guard
from palyra.api.http_server import HttpServer
from palyra.api.limits import ApiLimits, OpenStreams, Rates
from palyra.api.metrics import Metrics
from palyra.core import errors
from palyra.core.errors import Unavailable
from palyra.core.ids import OWNER
from palyra.features.backups.switch import READY, finish_switch
from palyra.serve import (
    config,
    listeners,
    logs,
    ollama,
    process_files,
    restart,
)
from palyra.serve.config import Loaded
from palyra.serve.config.sections import ServerSection as ServerSettings
from palyra.serve.routes import routes_of
from palyra.serve.wiring import daemon as wiring_daemon
from palyra.serve.wiring import settings
from palyra.serve.wiring.daemon import Daemon
from palyra.store.database import Database
from palyra.store.upkeep import Upkeep
from palyra.system import cpu_affinity
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.serve")

Say = Callable[[str], None]
# Long enough for an answer to leave.
_ANSWERED_S = 0.1
# So long a daemon that ends may finish what it is at.
_ENDING_S = 15.0
# More than there may be connections.
_FILES = 65_536


def serve(
    home: Path,
    *,
    port: int | None = None,
    quic: bool = False,
    env: Mapping[str, str] | None = None,
    say: Say | None = None,
) -> None:
    """Run the daemon until SIGTERM or SIGINT, or PalyraError if it cannot start. `say` gets the
    lines for who started it.
    """
    # Half a second of imports makes mostly garbage-free objects: looking for garbage among them
    # would cost a tenth of it.
    gc.disable()
    environment = os.environ if env is None else env
    process_files.check_home(home)
    if (home / READY).exists():
        # The settings are part of what changes.
        with process_files.locked(home, patience_s=_ENDING_S, say=say or _to_stderr):
            finish_switch(home)
    loaded = config.load(home, environment)
    restart.supervise(loaded)
    server = loaded.config.server
    config.make_private(home)
    _open_more_files()
    if server.one_processor:
        cpu_affinity.keep_together()
    chosen_port = server.http_port if port is None else port
    with (
        _naming_the_disk(home),
        process_files.locked(home, patience_s=_ENDING_S, say=say or _to_stderr),
        process_files.first_start(home) as started,
        listen_sockets.bind(server.host, chosen_port, tls=server.tls.enabled) as listener,
        (
            listen_sockets.bind_udp(server.host, server.quic_port)
            if quic or server.quic
            else nullcontext()
        ) as udp,
        asyncio.Runner(loop_factory=_new_loop) as runner,
    ):
        again = runner.run(
            _serve(loaded, environment, listener, udp, say or _to_stderr, started, quic=quic)
        )
    if again:
        restart.end_to_begin_anew()


@contextmanager
def _naming_the_disk(home: Path) -> Iterator[None]:
    """Raise Unavailable for what is the disk's fault: fsync, for one, does not say which file it
    was about.
    """
    try:
        yield
    except OSError as error:
        if problem := errors.trouble(error, error.filename or home):
            raise Unavailable(problem, path=str(error.filename or home)) from error
        raise


def _open_more_files() -> None:
    """A connection is a file, and who opens many must not keep us from our own. Commands have a
    limit of their own.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _new_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    loop = uvloop.new_event_loop()
    loop.set_default_executor(
        ThreadPoolExecutor(thread_name_prefix="long", initializer=cpu_affinity.roam)
    )
    return loop


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


async def _serve(
    loaded: Loaded,
    env: Mapping[str, str],
    listener: socket.socket,
    udp: socket.socket | None,
    say: Say,
    started: Callable[[], None],
    *,
    quic: bool,
) -> bool:
    """Serve until told to end. True: this node is to begin anew, because it led those of its
    journal and has handed over.
    """
    port = listener.getsockname()[1]
    redactor = Redactor(os.urandom(32))
    logs.start(loaded.home, loaded.config.log.level, lambda text: redactor.redact(text))
    async with AsyncExitStack() as stack:
        node = None
        if loaded.config.cluster.secret:
            # Late: few share a journal.
            from palyra.serve.cluster import standby

            node, fresh = await standby.until_it_leads(
                loaded, env, listener, _limits(loaded), say, started, stack
            )
            if fresh is None:
                return False
            loaded = fresh
        chosen = config.choose(loaded.config, config.detect(env, await ollama.models()))
        exposed = replace(settings.exposure(loaded.config), quic=udp is not None)
        url = listeners.url_of(exposed.host, port, secure=exposed.tls)
        daemon = await wiring_daemon.start(loaded, chosen, env, lease=node.lease if node else None)
        stack.push_async_callback(daemon.close)
        # From here on the log finds what the journal finds, and calls it the same.
        redactor = daemon.get(Redactor)
        access = Access(daemon.get(Database), daemon.get(Clock), daemon.get(Redactor).redact)
        await access.open()
        stack.push_async_callback(access.close)
        access.local = await process_files.ensure_owner_token(loaded.home, access)
        exposure.check_tokens(exposed, others=access.has_others())
        await exposure.record(daemon.get(Database), exposed)
        limits = _limits(loaded)
        asgi = await http_app(daemon, access, limits, url, env)
        server = HttpServer(asgi, limits)
        live = listeners.LiveListeners(daemon, asgi, server, port, always_quic=quic)
        stack.push_async_callback(live.close)
        tls = await live.begin(daemon.wiring.settings.get(ListenerSettings), udp)
        about = asgi.services.get(DaemonInfo)
        daemon.wiring.reloads.append(lambda fresh: live.use(fresh.get(ListenerSettings)))
        if node is not None:
            await node.lead(asgi, limits, daemon.get(Database))
            stack.push_async_callback(node.close_link)
            node.member.on_drain.connect(partial(node.drain, server.stop))
        started_ms = daemon.get(Clock).now_ms()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)

        def running() -> process_files.DaemonFile:
            return process_files.DaemonFile(
                restart.service_pid(),
                about.url,
                started_ms,
                palyra.__version__,
                live.trust,
                live.grpc,
            )

        def ready() -> None:
            stack.enter_context(process_files.announced(loaded.home, running()))
            live.on_moved.connect(lambda: process_files.say_where(loaded.home, running()))
            started()
            gc.freeze()
            # A run makes thousands of short-lived objects and next to no cycles: look for those
            # less often.
            gc.set_threshold(20_000, 20, 20)
            gc.enable()
            log.info("started at %s", url)
            # What a service says is kept in a log, and a link that logs in has no place there.
            link = "`palyra login` prints a link"
            if "JOURNAL_STREAM" not in env:
                link = f"{url}/login?code={access.login_code(OWNER)}  (once, within ten minutes)"
            for line in _banner(daemon, url, live.grpc, link):
                say(line)

        await server.run_on(listener, ready, tls)
        log.info("stopping")
    return node is not None and node.drained


async def http_app(
    daemon: Daemon,
    access: Access,
    limits: ApiLimits,
    url: str,
    env: Mapping[str, str],
    *,
    quic_port: int = 0,
) -> App:
    """HTTP's view of the daemon."""
    exposed = replace(settings.exposure(daemon.loaded.config), quic=quic_port > 0)
    port = int(url.rpartition(":")[2])
    streams = OpenStreams(limits.streams)
    metrics = Metrics(
        daemon.get(Database),
        daemon.get(Broadcast),
        daemon.get(Runs),
        streams,
        daemon.get(Upkeep),
        daemon.wiring.metrics,
    )
    await metrics.open()
    access.on_revoked.connect(streams.end)
    daemon.services.add(access)
    daemon.services.add(streams)
    daemon.services.add(limits)
    daemon.services.add(metrics)
    daemon.services.add(
        DaemonInfo(
            home=daemon.home,
            journal_path=daemon.journal_path,
            url=url,
            notes=daemon.notes,
            started_ms=daemon.get(Clock).now_ms(),
            version=palyra.__version__,
            exposure=exposed,
            listeners=[Listener("http", url, exposed.tls)],
            reload_config=partial(wiring_daemon.reload_config, daemon, env),
            restart=partial(_restart_soon, port),
        )
    )
    guard = Guard(
        access,
        Rates(limits.requests_per_second),
        exposed,
        (port, quic_port) if quic_port else (port,),
    )
    always = listeners.headers_of_all(exposed, quic_port)
    return App(daemon.services, routes_of(daemon.features), guard, limits, always)


def _restart_soon(port: int) -> None:
    """Become a new process, without a goodbye, once who asked has the answer."""
    asyncio.get_running_loop().call_later(_ANSWERED_S, restart.start_again, port)


def _limits(loaded: Loaded) -> ApiLimits:
    given = loaded.config.limits
    return ApiLimits(
        body_bytes=given.body_bytes,
        headers=given.headers,
        requests_per_second=given.requests_per_second,
        streams=given.streams,
        answer_s=given.answer_s,
        unavailable_s=given.unavailable_s,
    )


def _elsewhere(server: ServerSettings, url: str) -> list[str]:
    """Return how other machines call us, if they can."""
    if exposure.is_loopback(server.host):
        return []
    port, local = url.rpartition(":")[2], exposure.names_of("127.0.0.1", ())
    names = [name for name in exposure.names_of(server.host, server.tls.names) if name not in local]
    return [f"https://{f'[{name}]' if ':' in name else name}:{port}" for name in names]


def _banner(daemon: Daemon, url: str, grpc: str, login: str) -> list[str]:
    workspace = daemon.get(Sessions).default_workspace or "none: sessions say where they work"
    return [
        f"Palyra {palyra.__version__} runs at {url}",
        *(f"  also       {each}" for each in _elsewhere(daemon.loaded.config.server, url)),
        f"  home       {daemon.home}",
        f"  workspace  {workspace}",
        f"  model      {daemon.chosen.default}",
        *([f"  gRPC       {grpc}"] if grpc else ()),
        *(f"  note       {note}" for note in daemon.notes),
        f"  log in     {login}",
        "Ctrl-C stops it; unfinished runs continue when it starts again.",
    ]
