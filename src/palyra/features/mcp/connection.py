"""One configured server, kept connected: started in the background, asked for its tools, started
again when it goes away.

Two rules: a call that may have reached the server is never repeated; a tool that is not word for
word what the operator accepted is never called.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec import Struct

from palyra.core.argument_roles import ToolUse
from palyra.core.errors import Conflict, NotFound, PalyraError, Unavailable
from palyra.core.tools import ToolResult
from palyra.features.mcp import accepted_tools, jsonrpc, results, start_errors
from palyra.features.mcp.acceptances import AcceptanceStore, AcceptedTool
from palyra.features.mcp.accepted_tools import Declared, ListedTools, McpTool, listed
from palyra.features.mcp.http_link import header_value
from palyra.features.mcp.jsonrpc import ErrorAnswer, MaybeDelivered, NotSent, TookTooLong
from palyra.features.mcp.session import Headers, McpSession, Progress, ServerLink
from palyra.features.mcp.settings import Pending, ServerConfig, ServerStatus, State, together

_MOST_ROUNDS = 4

# What was configured, with every reference in it looked up.
Resolve = Callable[[ServerConfig], Awaitable[ServerConfig]]


class RetryPace(Struct, frozen=True):
    """Settings of retries. After a failure the wait doubles up to `most_s`; for a server that
    stayed for `steady_s` it is reset.
    """

    first_s: float = 1.0
    most_s: float = 60.0
    steady_s: float = 60.0
    greeting_s: float = 30.0
    relist_s: float = 1.0
    # How long a call waits for a server that is just being started.
    patience_s: float = 15.0


async def as_it_is(config: ServerConfig) -> ServerConfig:
    return config


class ServerConnection:
    """`resolve` is asked anew for each connection: what a reference stands for may have changed."""

    def __init__(
        self,
        config: ServerConfig,
        accepted: AcceptanceStore,
        open_link: Callable[[ServerConfig], ServerLink],
        *,
        resolve: Resolve = as_it_is,
        pace: RetryPace,
        changed: Callable[[], None],
        log: Callable[[], str],
    ) -> None:
        self._given = config
        self._config = config
        self._resolve = resolve
        self._known = accepted
        self._open_link = open_link
        self._pace = pace
        self._changed = changed
        self._log = log
        self._listed = ListedTools(())
        self._session: McpSession | None = None
        self._server, self._protocol = "", ""
        self._up = asyncio.Event()
        self._news = asyncio.Event()
        self._wake = asyncio.Event()
        self._accepting = asyncio.Lock()
        self._state: State = "starting"
        self._detail = ""
        self._starts = 0
        # Calls in a row that it has not answered in time.
        self._late = 0
        self.tools: tuple[McpTool, ...] = ()
        self.pending: tuple[Pending, ...] = ()

    async def run(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        wait = self._pace.first_s
        try:
            while True:
                began = loop.time()
                self._state = "starting"
                # Before, not after: who asks while it is going away does not wait in vain.
                self._wake.clear()
                why = await self._live()
                wait = self._pace.first_s if loop.time() - began >= self._pace.steady_s else wait
                self._state, self._detail = "waiting", self._config.without_secrets(why)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._wake.wait()
                wait = min(wait * 2, self._pace.most_s)
        finally:
            self._state = "stopped"

    async def _live(self) -> str:
        """One connection from its beginning to its end; why it ended."""
        reason = ""

        def ended(why: str) -> None:
            nonlocal reason
            reason = why
            self._up.clear()
            self._news.set()

        try:
            self._config = await self._resolve(self._given)
        except PalyraError as error:
            return error.message
        session = McpSession(self._open_link(self._config), changed=self._news.set, ended=ended)
        try:
            await session.open(self._pace.greeting_s)
            await self._list(session)
            self._session, self._server = session, self._config.without_secrets(session.server)
            self._protocol = session.version
            self._state, self._detail, self._late = "ready", "", 0
            self._starts += 1
            if not reason:
                self._up.set()
            while not reason:
                await self._news.wait()
                self._news.clear()
                if not reason:
                    await self._list(session)
                    # However often it says so, its tools are not looked at more often than this.
                    await asyncio.sleep(self._pace.relist_s)
        except Unavailable as error:
            return error.message
        finally:
            self._up.clear()
            self._session = None
            await session.close()
        return reason

    async def _list(self, session: McpSession) -> None:
        self._listed = self._told(listed(await session.tools(self._pace.greeting_s)))
        await self._sort_out()

    def _told(self, found: ListedTools) -> ListedTools:
        """Return the listed tools without the secrets that the server was given: whoever may look,
        and every model, reads them.
        """
        hide = self._config.without_secrets
        tools = (
            msgspec.structs.replace(
                each, description=hide(each.description), schema=_mapped(each.schema, hide)
            )
            for each in found.tools
            # By another name it could not be called.
            if hide(each.called) == each.called
        )
        return ListedTools(tuple(tools), tuple(map(hide, found.problems)))

    async def _sort_out(self) -> None:
        """Divide the tools into those that are offered and those that wait for a yes."""
        name = self._config.name

        def accepted() -> list[AcceptedTool | None]:
            return [self._known.get(name, tool.name) for tool in found.tools]

        found = self._listed
        answers = await asyncio.to_thread(accepted)
        if found is not self._listed:
            return  # They changed meanwhile, and somebody else is sorting them.
        pairs = list(zip(found.tools, answers, strict=True))
        same = [
            tool
            for tool, before in pairs
            if before is not None and before.fingerprint == tool.fingerprint
        ]
        self.pending = tuple(
            accepted_tools.pending(name, tool, before) for tool, before in pairs if tool not in same
        )
        uses = {tool.name: before.use for tool, before in pairs if before is not None}
        if [(tool.declared, tool.spec.use) for tool in self.tools] != [
            (tool, uses[tool.name]) for tool in same
        ]:
            self.tools = tuple(McpTool(self._config, tool, self, uses[tool.name]) for tool in same)
            self._changed()

    async def accept(self, tool: str, fingerprint: str, use: ToolUse | None = None) -> None:
        """The operator's yes to what the server says now. With a fingerprint: to exactly that, or
        Conflict. With a use: to what its arguments are for, else to what is proposed.
        """
        declared = next((each for each in self._listed.tools if each.name == tool), None)
        if declared is None:
            raise NotFound(f"the MCP server {self._config.name} has no tool {tool[:64]!r}")
        if fingerprint and fingerprint != declared.fingerprint:
            raise Conflict(
                f"{self._config.source}/{tool} has changed since it was shown; look at it again"
            )
        async with self._accepting:
            if use is None:
                before = await asyncio.to_thread(self._known.get, self._config.name, tool)
                use = accepted_tools.proposed_use(self._config.name, declared, before)
            entry = AcceptedTool(declared.fingerprint, declared.shown(), use)
            await asyncio.to_thread(self._known.put, self._config.name, tool, entry)
        await self._sort_out()

    def status(self) -> ServerStatus:
        return ServerStatus(
            name=self._config.name,
            state=self._state,
            detail=self._detail,
            transport="http" if self._config.url else "stdio",
            server=self._server,
            protocol=self._protocol,
            tools=tuple(tool.spec.name for tool in self.tools),
            pending=self.pending,
            problems=self._listed.problems,
            starts=self._starts,
            log=self._config.without_secrets(self._log()),
            where=self._config.authority or self._config.command,
            tier="" if self._config.url else self._config.tier,
            package=self._config.package,
            fingerprint=together(self.pending),
            late=self._late,
            uses={
                tool.declared.name: tool.spec.use
                for tool in self.tools
                if tool.spec.use is not None
            },
        )

    def crashed(self, error: BaseException) -> None:
        """A fault of ours. The server stays away; the daemon goes on."""
        self._state, self._detail = "failed", f"{type(error).__name__}: {error}"

    async def call(
        self, tool: Declared, arguments: dict[str, Any], progress: Progress
    ) -> ToolResult:
        source = f"{self._config.source}/{tool.name}"
        before = await self._look(called=False)
        try:
            answer = await self._ask(tool, arguments, progress)
        except NotSent as why:
            return self._failed("error", f"{source} was not called: {why.message}")
        except ErrorAnswer as why:
            self._late = 0
            return self._failed("error", f"{source} answered with an error: {why.message}")
        except Unavailable as why:
            sure = tool.effect(trusted=self._config.trusted) == "pure"
            doubt = "" if sure else "; it may have happened nevertheless, and was not repeated"
            late = isinstance(why, TookTooLong)
            self._late += late
            return self._failed(
                "timeout" if late else "error" if sure else "unknown",
                f"{source}: {why.message}{doubt}",
            )
        self._late = 0
        result = results.result(answer)
        if result.outcome == "error" and (hint := start_errors.hint(self._config, result.text)):
            result = msgspec.structs.replace(result, text=f"{result.text}\nnote: {hint}")
        notes = (*(f"before this call, {note}" for note in before), *await self._look(called=True))
        text = "".join(f"note: {note}\n" for note in notes)
        return self._hidden(
            msgspec.structs.replace(result, text=f"{text}{result.text}") if notes else result
        )

    async def _look(self, *, called: bool) -> tuple[str, ...]:
        """Return what is left behind in the server's folder."""
        return await self._session.look(called=called) if self._session is not None else ()

    async def _ask(
        self, tool: Declared, arguments: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        params = {"name": tool.called, "arguments": arguments}
        timeout_s = self._config.timeout_ms / 1000
        for last in (False, True):
            session = await self._ready(progress)
            if not any(each == tool for each in self._listed.tools):
                raise NotSent("the server has changed or removed this tool since it was accepted")
            headers = _mirrored(tool, arguments) if session.version == jsonrpc.MODERN else ()
            try:
                answer = await session.ask(
                    "tools/call", params, timeout_s, progress=progress, headers=headers
                )
            except NotSent:
                # Certainly nothing has happened, so a new connection may try once more.
                if last:
                    raise
                continue
            return await self._without_asking(session, answer, params, progress, headers)
        raise AssertionError("unreachable")

    async def _without_asking(
        self,
        session: McpSession,
        answer: dict[str, Any],
        params: dict[str, Any],
        progress: Progress,
        headers: Headers,
    ) -> dict[str, Any]:
        """The end of a call whose server asks questions on the way: each is left unanswered, and it
        may go on.
        """
        for _ in range(_MOST_ROUNDS):
            more = results.unanswered(answer)
            if not more:
                break
            try:
                timeout_s = self._config.timeout_ms / 1000
                answer = await session.ask(
                    "tools/call", params | more, timeout_s, progress=progress, headers=headers
                )
            except NotSent as why:
                # This was not sent, but what came before it was.
                raise MaybeDelivered(why.message) from why
        return answer

    async def _ready(self, progress: Progress) -> McpSession:
        if not self._up.is_set():
            progress(f"waiting for {self._config.source} to connect")
            self._wake.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.patience_s):
                    await self._up.wait()
        session = self._session
        if session is None or not self._up.is_set():
            raise NotSent(
                f"the server is not connected{f': {self._detail}' if self._detail else ''}"
            )
        return session

    def _hidden(self, result: ToolResult) -> ToolResult:
        """A result that repeats what the server was given in confidence does not pass it on."""
        hide = self._config.without_secrets
        return msgspec.structs.replace(
            result, text=hide(result.text), data=_mapped(result.data, hide)
        )

    def _failed(self, outcome: Literal["error", "timeout", "unknown"], text: str) -> ToolResult:
        return ToolResult(outcome=outcome, text=self._config.without_secrets(text))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it changed."""
    match value:
        case str():
            return change(value)
        case list():
            return [_mapped(each, change) for each in value]
        case dict():
            return {change(key): _mapped(each, change) for key, each in value.items()}
        case _:
            return value


def _mirrored(tool: Declared, arguments: dict[str, Any]) -> Headers:
    """The arguments that a server wants repeated as headers."""
    headers: list[tuple[str, str]] = []
    for name, path in tool.mirrored:
        value: Any = arguments
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, bool):
            headers.append((f"Mcp-Param-{name}", str(value).lower()))
        elif isinstance(value, int | str):
            headers.append((f"Mcp-Param-{name}", header_value(str(value))))
    return tuple(headers)
