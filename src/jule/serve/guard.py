"""Let in only requests that know the token and come from the server's own page."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

TOKEN_BYTES = 32
OWN_SITE = ("same-origin", "none")  # none: typed by the user, or a bookmark
# For every response that has none of its own.
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def new_token() -> str:
    """Return a random token for the address of a server.

    Examples
    --------
    >>> len(new_token()), new_token() == new_token()
    (43, False)
    """
    return secrets.token_urlsafe(TOKEN_BYTES)


class Guard:
    """An ASGI application around another one, which sees only what is allowed.

    The address of every request begins with the token. Nobody else knows it, and a browser sends it
    nowhere. A page of another site that finds out the port still has a wrong Origin, and a name
    that resolves to this machine for a moment (DNS rebinding) is a wrong Host.

    Parameters
    ----------
    app
        The application; it gets paths without the token.
    token
        The secret.
    port
        The port of the server.
    """

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app = app
        self.token = token.encode()
        self.hosts = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on a request, or answer it with 403 and nothing else."""
        if scope["type"] != "http":
            return  # there are no web sockets
        path = self._path_within(scope)
        if path is None or not self._is_own(scope["headers"]):
            await send(_with_headers({"type": "http.response.start", "status": 403}))
            await send({"type": "http.response.body", "body": b""})
            return

        async def send_guarded(message: Message) -> None:
            is_start = message["type"] == "http.response.start"
            await send(_with_headers(message) if is_start else message)

        within = {**scope, "path": path, "raw_path": path.encode("utf-8", "surrogateescape")}
        await self.app(within, receive, send_guarded)

    def _path_within(self, scope: Message) -> str | None:
        """Return the path after the token; None without the token."""
        _, given, *rest = f"{scope['path']}/".split("/", 2)
        if not secrets.compare_digest(given.encode("utf-8", "replace"), self.token):
            return None
        return "/" + "".join(rest).removesuffix("/")

    def _is_own(self, sent: list[tuple[bytes, bytes]]) -> bool:
        """Return whether Host, Origin and Sec-Fetch-Site are those of the own page."""
        found: dict[bytes, list[bytes]] = {}
        for name, value in sent:
            found.setdefault(name.lower(), []).append(value)
        hosts = found.get(b"host", [])
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return False
        own = {b"http://" + host for host in hosts}
        sites = {site.encode() for site in OWN_SITE}
        return own.issuperset(found.get(b"origin", [])) and sites.issuperset(
            found.get(b"sec-fetch-site", [])
        )


def _with_headers(start: Message) -> Message:
    """Return the start of a response with the headers that it does not have yet."""
    sent = [(name.lower(), value) for name, value in start.get("headers", [])]
    known = {name for name, _ in sent}
    more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    return {**start, "headers": [*sent, *(one for one in more if one[0] not in known)]}
