"""Settings of a Matrix channel and the name of its kind. The library is loaded when somebody has
one.
"""

from palyra.core.errors import Unavailable
from palyra.features.channels.contract import Connector, ConnectorKind, ConnectorSettings, Setting


def _make(given: ConnectorSettings) -> Connector:
    try:
        from palyra.features.channels.matrix.connector import Matrix
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "nio":
            raise
        raise Unavailable("matrix-nio is not installed: pip install 'palyra[channels]'") from error
    return Matrix(given)


KIND = ConnectorKind(
    name="matrix",
    title="Matrix (any homeserver; rooms without encryption)",
    make=_make,
    settings=(
        Setting(
            name="homeserver",
            server=True,
            words="address of the homeserver's client API, as https://matrix.example.org",
        ),
        Setting(name="token", words="access token of the agent's own account", secret=True),
        Setting(
            name="invites",
            words=(
                "whose invitations are followed: anyone, local (accounts of the same server) or"
                " nobody"
            ),
            required=False,
            default="anyone",
        ),
    ),
    permissions=(
        "an ordinary account of its own, not an administrator's",
        "in each room the power to send m.room.message and m.reaction (power level 0 by default)",
        "to be invited; the room must not be encrypted",
    ),
    steps=(
        (
            "Make an account for the agent on your homeserver (in Element: Create account; on your"
            " Synapse: register_new_matrix_user)"
        ),
        (
            "Get an access token for it: log in once with POST /_matrix/client/v3/login"
            " (docs/reference/channels-matrix.md shows how)"
        ),
        "Store it: palyra vault set matrix-token",
        (
            "Add the channel: palyra channels add matrix NAME --set homeserver=https://… --set"
            " token=vault:matrix-token"
        ),
        (
            "Invite the account into a room without encryption, or write to it directly with"
            " encryption switched off"
        ),
    ),
    docs="reference/channels-matrix.md",
)
