"""Run the server on this machine until it is stopped."""

from __future__ import annotations

import errno
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from jule.serve.desk import Desk
from jule.serve.guard import new_token

if TYPE_CHECKING:
    import uvicorn

ADDRESS = "127.0.0.1"  # this machine alone
MOST_PORT = 65_535
SECONDS_TO_END = 2  # for requests under way when the server is stopped


def listen(port: int = 0) -> socket.socket:
    """Return a socket on a port of this machine; 0 chooses a free one.

    Examples
    --------
    >>> with listen() as found:
    ...     found.getsockname()[0]
    '127.0.0.1'
    """
    if not 0 <= port <= MOST_PORT:
        raise ValueError(f"a port is a number from 0 to {MOST_PORT}, got {port}")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # where it would let two servers share a port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((ADDRESS, port))
        found.listen()
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise ValueError(
                f"port {port} is in use: choose another one, or leave out --port"
            ) from None
        if error.errno == errno.EACCES:
            raise ValueError(
                f"port {port} needs administrator rights: choose one above 1023"
            ) from None
        raise
    return found


def prepare(desk: Desk, found: socket.socket) -> tuple[uvicorn.Server, str]:
    """Return a server for a run, and its address, which contains the token.

    Parameters
    ----------
    desk
        The run.
    found
        The socket that the server will listen on.
    """
    check_installed()
    import uvicorn

    from jule.serve.app import make_app

    token, port = new_token(), found.getsockname()[1]
    config = uvicorn.Config(
        make_app(desk, token, port),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,  # it would print the token
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    return uvicorn.Server(config), f"http://{ADDRESS}:{port}/{token}/"


def serve(desk: Desk, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page of a run until Ctrl-C.

    An edit that is under way then goes on in its thread: `Desk.finish` waits for it.

    Parameters
    ----------
    desk
        The run.
    port
        The port; 0 chooses a free one.
    ready
        Called with the address once it can be opened.
    """
    with listen(port) as found:
        server, address = prepare(desk, found)
        ready(address)
        # Ctrl-C is raised again by uvicorn after it has ended.
        with suppress(KeyboardInterrupt), _quiet_at_the_end(server):
            server.run(sockets=[found])


@contextmanager
def _quiet_at_the_end(server: uvicorn.Server) -> Iterator[None]:
    """Silence uvicorn's messages about requests that it abandons when it is stopped.

    Nothing is wrong then, and a traceback would look as if an edit were lost.
    """

    def is_wanted(_: logging.LogRecord) -> bool:
        return not server.should_exit

    log = logging.getLogger("uvicorn.error")
    log.addFilter(is_wanted)
    try:
        yield
    finally:
        log.removeFilter(is_wanted)


def check_installed() -> None:
    """Raise ImportError if a package of the server is missing."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(f'the server needs {error.name}: pip install "jule[serve]"') from error
