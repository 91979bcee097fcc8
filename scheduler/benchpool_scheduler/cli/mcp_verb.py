"""``benchpool mcp``: gives programs with a language model access to the pool."""

from __future__ import annotations

from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, option
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.mcp_server.tools import ALLOW_WRITES


def _mcp(session: Session, options: Options) -> int:
    try:
        from benchpool_scheduler.mcp_server import serving
    except ModuleNotFoundError as missing:
        if missing.name not in ("mcp", "mcp_types"):
            raise
        raise InvalidInput(
            "`benchpool mcp` needs a library that is not installed here: run "
            "`pip install 'benchpool[mcp]'`.",
            code="extra-missing",
        ) from missing
    serving.run(session.found, writes=options["allow_writes"])
    return 0


MCP = Verb(
    ("mcp",),
    "Serve the pool as tools to a program with a language model (MCP, on standard input).",
    _mcp,
    (option(ALLOW_WRITES, is_flag=True, help="Also offer tools that change something."),),
    "The program starts this server. The server has your rights, and the answers of its tools go "
    "to the program and to its model.",
)
