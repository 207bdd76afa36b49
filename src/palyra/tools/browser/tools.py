"""The `browser.*` tools: open a page, read it, click, type, look at it.

A call names the page it is about by the mark that an earlier result gave, so a decision knows the
host without knowing the session, and a yes to a click is about the page that the person was shown.
Whatever a page says is untrusted, and the result says so.
"""

from typing import Annotated, Any, ClassVar, cast

import msgspec
from msgspec import Meta

from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.core.labels import Label
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.tools.browser.pool import BrowserPage, Browsers, Visit
from palyra.tools.catalogue import Arguments, TypedTool, declare
from palyra.tools.net import hosts, urls
from palyra.tools.net.urls import Url

_MOST_HOSTS = 16
_MOST_TYPED = 20_000
_LIMITS = Limits(time_ms=75_000, input_bytes=64 << 10, output_bytes=1 << 20)


class OpenArguments(Arguments, frozen=True, kw_only=True):
    url: str
    hosts: Annotated[
        tuple[str, ...], Meta(description="Further hosts it may load from", max_length=_MOST_HOSTS)
    ] = ()


class PageArguments(Arguments, frozen=True, kw_only=True):
    page: str


class ClickArguments(Arguments, frozen=True, kw_only=True):
    ref: Annotated[str, Meta(description="PAGE.N")]


class TypeArguments(Arguments, frozen=True, kw_only=True):
    ref: Annotated[str, Meta(description="PAGE.N")]
    text: Annotated[str, Meta(max_length=_MOST_TYPED)]
    submit: Annotated[bool, Meta(description="Press Enter after it")] = False


class LookArguments(Arguments, frozen=True, kw_only=True):
    at: Annotated[str, Meta(description="PAGE, or PAGE.N to scroll there")]


def tools(browsers: Browsers) -> tuple[TypedTool, ...]:
    """All of them, over the same browsers."""
    return (
        BrowserOpen(browsers),
        BrowserRead(browsers),
        Click(browsers),
        Type(browsers),
        Screenshot(browsers),
    )


class _BrowserTool:
    declared: ClassVar[ToolSpec]
    argument_type: ClassVar[type[Arguments]]

    def __init__(self, browsers: Browsers) -> None:
        self.spec = msgspec.structs.replace(self.declared, tier="C")
        self._browsers = browsers

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        name = self.spec.name
        first = (
            Subject(name, "host", scope.hosts[0])
            if len(scope.hosts) == 1
            else Subject(name, "command", scope.command)
        )
        return (first, Subject(name, "tool"))

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        try:
            return await self._run(arguments, context)
        except PalyraError as error:
            return ToolResult(
                outcome="denied" if isinstance(error, Forbidden) else "error", text=error.message
            )

    async def _run(self, arguments: object, context: CallContext) -> ToolResult:
        raise NotImplementedError

    def _found(self, reference: str) -> tuple[BrowserPage, int]:
        """The page of a reference such as `kx7m.12`, and the number, 0 without one. Raises NotFound
        or InvalidInput.
        """
        mark, dot, digits = reference.strip().strip("[]").partition(".")
        if dot and not (digits.isascii() and digits.isdecimal() and len(digits) <= 4):
            raise InvalidInput(
                f"{hosts.shown(reference)} is no reference: one is written PAGE.N, as in kx7m.12"
            )
        page = self._browsers.find(mark)
        number = int(digits) if dot else 0
        if dot:
            page.item(number)
        return page, number

    def _element(self, reference: str) -> tuple[BrowserPage, int]:
        page, number = self._found(reference)
        if not number:
            raise InvalidInput(f"name what is meant on the page, as in {page.mark}.12")
        return page, number


class BrowserOpen(_BrowserTool):
    argument_type = OpenArguments
    declared = declare(
        "browser.open",
        "Open a web page in a browser: gives PAGE and its text, where [N] is what can be clicked or"
        " typed into.",
        OpenArguments,
        effect="pure",
        capabilities=("network", "browser"),
        limits=_LIMITS,
    )

    def scope(self, arguments: object, workspace: str) -> Scope:
        """Raises Refused for what no policy can permit: other schemes, private addresses, names and
        passwords in the address.
        """
        call = cast("OpenArguments", arguments)
        url = self._url(call)
        return Scope(
            program="open",
            command=f"open {url}",
            hosts=tuple(dict.fromkeys((url.authority, *self._others(call)))),
        )

    def preview(self, arguments: object, workspace: str) -> Preview:
        call = cast("OpenArguments", arguments)
        others = self._others(call)
        body = f"may also load from: {', '.join(others)}" if others else "loads from that host only"
        return Preview("request", f"open {self._url(call)} in a browser", body)

    async def _run(self, arguments: object, context: CallContext) -> ToolResult:
        call = cast("OpenArguments", arguments)
        url = self._url(call)
        allowed = frozenset((url.authority, *self._others(call)))
        return _result(await self._browsers.visit(context.session_id, context.run_id, url, allowed))

    def _url(self, call: OpenArguments) -> Url:
        url = urls.parse(call.url)
        self._browsers.resolver.check(url.host, url.port)
        return url

    def _others(self, call: OpenArguments) -> tuple[str, ...]:
        found: list[str] = []
        for text in call.hosts:
            spelt, port = urls.split_port(text.strip(), urls.PORTS["https"])
            host = hosts.parse(spelt)
            self._browsers.resolver.check(host, port)
            found.append(Url("https", host, port, "/").authority)
        return tuple(dict.fromkeys(found))


class _OnPage(_BrowserTool):
    """Tool that acts on an open page: about the host of that page."""

    def scope(self, arguments: object, workspace: str) -> Scope:
        page, what = self._target(arguments)
        return Scope(
            program=self.spec.name.partition(".")[2],
            command=f"{what} on {page.url}",
            hosts=(page.site.authority,),
        )

    def preview(self, arguments: object, workspace: str) -> Preview:
        page, what = self._target(arguments)
        return Preview(
            "request", f"{what} on {page.site.authority}", f"page: {page.url}\ntitle: {page.title}"
        )

    def _target(self, arguments: object) -> tuple[BrowserPage, str]:
        """The page, and what is done there in words."""
        raise NotImplementedError


class BrowserRead(_OnPage):
    argument_type = PageArguments
    declared = declare(
        "browser.read",
        "Read an open page again.",
        PageArguments,
        effect="pure",
        capabilities=("network", "browser"),
        limits=_LIMITS,
    )

    def _target(self, arguments: object) -> tuple[BrowserPage, str]:
        return self._found(cast("PageArguments", arguments).page)[0], "read the page"

    async def _run(self, arguments: object, context: CallContext) -> ToolResult:
        page, _ = self._target(arguments)
        return _result(await self._browsers.act(context.session_id, page, fresh=False, do="read"))


class Click(_OnPage):
    argument_type = ClickArguments
    declared = declare(
        "browser.click",
        "Click.",
        ClickArguments,
        effect="once",
        capabilities=("network", "browser"),
        limits=_LIMITS,
    )

    def _target(self, arguments: object) -> tuple[BrowserPage, str]:
        page, number = self._element(cast("ClickArguments", arguments).ref)
        item = page.item(number)
        leads = f" to {hosts.shown(item.href, 300)}" if item.href else ""
        return page, f'click the {hosts.shown(item.kind)} "{_plain(item.name)}"{leads}'

    async def _run(self, arguments: object, context: CallContext) -> ToolResult:
        page, number = self._element(cast("ClickArguments", arguments).ref)
        return _result(
            await self._browsers.act(
                context.session_id, page, fresh=True, do="click", number=number
            )
        )


class Type(_OnPage):
    argument_type = TypeArguments
    declared = declare(
        "browser.type",
        "Fill in a field, or choose an option by its text.",
        TypeArguments,
        effect="once",
        capabilities=("network", "browser"),
        limits=_LIMITS,
    )

    def _target(self, arguments: object) -> tuple[BrowserPage, str]:
        call = cast("TypeArguments", arguments)
        page, number = self._element(call.ref)
        item = page.item(number)
        after = " and press Enter" if call.submit else ""
        return (
            page,
            (
                f'type "{_plain(call.text)}" into the {hosts.shown(item.kind)}'
                f' "{_plain(item.name)}"{after}'
            ),
        )

    def preview(self, arguments: object, workspace: str) -> Preview:
        shown = super().preview(arguments, workspace)
        return Preview(
            shown.kind, shown.title, f"{shown.body}\ntext: {cast('TypeArguments', arguments).text}"
        )

    async def _run(self, arguments: object, context: CallContext) -> ToolResult:
        call = cast("TypeArguments", arguments)
        page, number = self._element(call.ref)
        command = {"do": "type", "number": number, "text": call.text, "submit": call.submit}
        return _result(await self._browsers.act(context.session_id, page, fresh=True, **command))


class Screenshot(_OnPage):
    argument_type = LookArguments
    declared = declare(
        "browser.screenshot",
        "See an open page as an image.",
        LookArguments,
        effect="pure",
        capabilities=("network", "browser"),
        limits=_LIMITS,
    )

    def _target(self, arguments: object) -> tuple[BrowserPage, str]:
        return self._found(cast("LookArguments", arguments).at)[0], "take a picture of the page"

    async def _run(self, arguments: object, context: CallContext) -> ToolResult:
        page, number = self._found(cast("LookArguments", arguments).at)
        visit = await self._browsers.act(
            context.session_id, page, fresh=bool(number), do="screenshot", number=number
        )
        return _result(visit)


def _plain(text: str) -> str:
    """Return a page's text on one line and without characters that could make it look like
    something else.
    """
    return "".join(char for char in text if char.isprintable())[:120]


def _result(visit: Visit) -> ToolResult:
    seen, site = visit.seen, visit.site
    address = f"{site.scheme}://{site.authority}"
    label = Label(integrity="untrusted", sources=(address,))
    data: dict[str, Any] = {
        "url": seen.url[: urls.LONGEST],
        "title": seen.title[:200],
        "blocked": sorted(visit.blocked),
    }
    tail = [*(f"Note: {_plain(note)}" for note in seen.notes[:8]), *_blocked(visit)]
    refused = visit.blocked.get(f"{site.host}:{site.port}")
    if seen.error or refused:
        why = refused or seen.error
        text = f"{hosts.shown(seen.url or address, 300)}: {why}"
        return ToolResult(outcome="error", text="\n".join([text, *tail]), data=data, label=label)
    if seen.image:
        text = f"{_plain(seen.title)} <{hosts.shown(seen.url, 500)}>, as an image."
        image = f"data:image/jpeg;base64,{seen.image}"
        return ToolResult(
            outcome="ok", text="\n".join([text, *tail]), data=data, images=(image,), label=label
        )
    assert visit.page is not None
    mark = visit.page.mark
    data |= {"page": mark, "status": seen.status}
    status = f", status {seen.status}" if seen.status >= 400 else ""
    head = (
        f"PAGE {mark}: {_plain(seen.title) or 'no title'} <{hosts.shown(seen.url, 500)}>{status};"
        f" [N] is {mark}.N"
    )
    if seen.cut:
        tail.append("Note: the page is longer; only its beginning is here")
    return ToolResult(
        outcome="ok", text="\n".join([head, *tail, "", seen.text]), data=data, label=label
    )


def _blocked(visit: Visit) -> list[str]:
    """Note what the page wanted from elsewhere and did not get."""
    if not visit.blocked:
        return []
    named = ", ".join(host.removesuffix(":443") for host in sorted(visit.blocked))
    return [
        f"Blocked: {named}. If the page needs one of them, open it again with that host in `hosts`."
    ]
