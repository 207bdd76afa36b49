"""`palyra acp`: the agent in an editor that speaks the Agent Client Protocol, over standard input
and output.
"""

import asyncio
import logging
import sys
from typing import Any

from palyra.cli.commands import command
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.core.errors import Unavailable


@command(
    "acp", help="Be the agent of an editor (Agent Client Protocol) on standard input and output."
)
def acp(state: CliState) -> None:
    try:
        from acp.agent.connection import AgentSideConnection
    except ImportError as error:
        raise Unavailable(
            "the package agent-client-protocol is missing: pip install 'palyra[acp]'"
        ) from error
    from palyra.client import Client
    from palyra.client.http import Api
    from palyra.features.acp.agent import EditorAgent, StdioTransport
    from palyra.features.acp.updates import Editor

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="palyra acp: %(message)s")

    async def serve() -> None:
        agent: Any = EditorAgent(
            Editor(lambda: Client.over(Api(lambda: discovery.discover(state.home, state.env))))
        )
        connection = AgentSideConnection(
            agent, StdioTransport(sys.stdin.buffer, sys.stdout.buffer), listening=False
        )
        try:
            await connection.listen()
        finally:
            await connection.close()

    asyncio.run(serve())
