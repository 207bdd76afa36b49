"""Settings of a Slack channel. Nothing of the library is imported before somebody configures
one.
"""

from palyra.core.errors import InvalidInput, Unavailable
from palyra.features.channels.contract import Connector, ConnectorKind, ConnectorSettings, Setting
from palyra.features.channels.slack.client import SCOPES

API = "https://slack.com/api"


def _make(given: ConnectorSettings) -> Connector:
    api = (given.settings.get("api") or API).rstrip("/")
    token, app_token = given.settings["token"].strip(), given.settings["app_token"].strip()
    if not api.startswith(("https://", "http://")):
        raise InvalidInput(f"channel {given.name}: api must be an http or https address")
    if not token.startswith("xoxb-"):
        raise InvalidInput(
            f"channel {given.name}: token must be the Bot User OAuth Token, which begins with xoxb-"
        )
    if not app_token.startswith("xapp-"):
        raise InvalidInput(
            f"channel {given.name}: app_token must be the App-Level Token, which begins with xapp-"
        )
    try:
        from palyra.features.channels.slack.connector import Slack
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "slack_sdk":
            raise
        raise Unavailable("slack-sdk is not installed: pip install 'palyra[channels]'") from error
    return Slack(given.name, token, app_token, api, given.now_ms)


KIND = ConnectorKind(
    name="slack",
    title="Slack (Socket Mode)",
    make=_make,
    settings=(
        Setting(
            name="token", words="Bot User OAuth Token, xoxb-… (OAuth & Permissions)", secret=True
        ),
        Setting(
            name="app_token",
            words="App-Level Token, xapp-…, with connections:write (Basic Information)",
            secret=True,
        ),
        Setting(
            name="api",
            server=True,
            words="the address of the Web API, if it is another one",
            required=False,
            default=API,
        ),
    ),
    permissions=(
        "App-Level Token: connections:write",
        f"Bot Token Scopes: {', '.join(SCOPES)}",
        "Subscribe to bot events: message.channels, message.groups, message.im, message.mpim",
        "Interactivity: on",
        "App Home: Messages Tab on, and people may send messages from it",
    ),
    steps=(
        (
            "Open https://api.slack.com/apps, Create New App, From a manifest; the manifest stands"
            " in docs/reference/channels-slack.md"
        ),
        (
            "Basic Information, App-Level Tokens: Generate Token and Scopes, with"
            " connections:write; copy it (xapp-…)"
        ),
        "Install App: install it to your workspace and copy the Bot User OAuth Token (xoxb-…)",
        "Store both: palyra vault set slack-token; palyra vault set slack-app-token",
        (
            "Add the channel: palyra channels add slack NAME --set token=vault:slack-token --set"
            " app_token=vault:slack-app-token"
        ),
        "Invite the bot into the channels where it should listen: /invite @NAME",
    ),
    docs="reference/channels-slack.md",
)
