"""Channels: where people reach the agent by chat and mail."""

from palyra.core.services import Services
from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.features.channels.assembly import assembled
    from palyra.features.channels.contract import ChannelSettings
    from palyra.features.channels.lazy import LateChannels

    channels = w.add(LateChannels(lambda: assembled(w)))

    async def apply(settings: Services) -> None:
        wanted = settings.get(ChannelSettings)
        await channels.apply(
            wanted.channels,
            router_on=wanted.router_on,
            notices_to=wanted.notices_to,
            approvals_to=wanted.approvals_to,
        )

    w.after_runs(lambda: apply(w.settings))
    w.on_reload(apply)
    w.on_close(channels.close)
