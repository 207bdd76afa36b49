"""What Slack must allow the bot: asked for when it is set up, and looked for when it is tried."""

SCOPES = (
    "chat:write",
    "channels:history",
    "groups:history",
    "im:history",
    "mpim:history",
    "channels:read",
    "groups:read",
    "im:read",
    "mpim:read",
    "users:read",
    "reactions:write",
    "files:read",
    "files:write",
)
