"""Settings of a Discord channel. Nothing of the library is imported before somebody configures
one.
"""

from palyra.core.errors import InvalidInput, Unavailable
from palyra.features.channels.contract import Connector, ConnectorKind, ConnectorSettings, Setting

API = "https://discord.com/api/v10"


def _make(given: ConnectorSettings) -> Connector:
    api = (given.settings.get("api") or API).rstrip("/")
    if not api.startswith(("https://", "http://")):
        raise InvalidInput(f"channel {given.name}: api must be an http or https address")
    if not given.settings["token"].strip():
        raise InvalidInput(f"channel {given.name}: the token is empty")
    try:
        from palyra.features.channels.discord.connector import Discord
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "discord":
            raise
        raise Unavailable("discord.py is not installed: pip install 'palyra[channels]'") from error
    return Discord(given.name, given.settings["token"].strip(), api, given.now_ms)


KIND = ConnectorKind(
    name="discord",
    title="Discord",
    make=_make,
    settings=(
        Setting(
            name="token", words="the bot's token (Developer Portal, Bot, Reset Token)", secret=True
        ),
        Setting(
            name="api",
            server=True,
            words="the address of the API, if it is a proxy of your own",
            required=False,
            default=API,
        ),
    ),
    permissions=(
        "Privileged Gateway Intents: Message Content Intent",
        "Scope: bot",
        "View Channels",
        "Send Messages",
        "Send Messages in Threads",
        "Read Message History",
        "Attach Files",
        "Add Reactions",
    ),
    steps=(
        "Open https://discord.com/developers/applications, New Application, and give it a name",
        "Bot: switch on Message Content Intent, then Reset Token and copy the token",
        "Store it: palyra vault set discord-token",
        (
            "OAuth2, URL Generator: scope bot, then the permissions that are named here; open the"
            " link it makes and choose your server"
        ),
        "Add the channel: palyra channels add discord NAME --set token=vault:discord-token",
    ),
    docs="reference/channels-discord.md",
)
