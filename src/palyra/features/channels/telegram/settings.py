"""Settings of a Telegram channel, without the library: that is imported when one is made."""

from palyra.core.errors import Unavailable
from palyra.features.channels.contract import Connector, ConnectorKind, ConnectorSettings, Setting

API = "https://api.telegram.org"


def _make(given: ConnectorSettings) -> Connector:
    try:
        from palyra.features.channels.telegram.connector import Telegram
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("telegram", "httpx"):
            raise
        raise Unavailable(
            "python-telegram-bot is not installed: pip install 'palyra[channels]'"
        ) from error
    return Telegram(given)


KIND = ConnectorKind(
    name="telegram",
    title="Telegram",
    make=_make,
    settings=(
        Setting(name="token", words="the bot's token from @BotFather", secret=True),
        Setting(
            name="api",
            server=True,
            words="address of a Bot API server of your own",
            required=False,
            default=API,
        ),
    ),
    permissions=(
        (
            "in groups: Send Messages, Send Files (Send Media), Add Reactions; being an admin is"
            " not needed"
        ),
        (
            "Group Privacy may stay on: the bot then sees commands, replies to it and messages that"
            " mention it"
        ),
    ),
    steps=(
        "Write /newbot to @BotFather in Telegram; give it a name and a username that ends in bot",
        "Store the token that it answers with: palyra vault set telegram-token",
        "Add the channel: palyra channels add telegram NAME --set token=vault:telegram-token",
        (
            "Try it: palyra channels test NAME; then write to the bot, and approve the code that"
            " you get: palyra channels pair CODE"
        ),
        (
            "For groups: @BotFather, /setjoingroups, Enable; then add the bot to the group like a"
            " person"
        ),
        (
            "To let it see every message of a group: @BotFather, /setprivacy, Disable; then remove"
            " the bot and add it again"
        ),
    ),
    docs="reference/channels-telegram.md",
)
