"""A server in a thread, and requests to it."""

import http.client
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from jule.serve import Desk
from jule.serve.server import listen, prepare


@dataclass
class Reply:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """Requests to a server, without following anything or adding headers."""

    def __init__(self, address):
        self.address = address
        self.parts = urlsplit(address)

    def ask(self, path="", body=None, *, root=None, method=None, **headers):
        """Ask for a path below the token, or below another root."""
        connection = http.client.HTTPConnection("127.0.0.1", self.parts.port, timeout=300)
        target = (self.parts.path if root is None else root) + path
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent.setdefault("content-type", "application/json")
        if isinstance(body, dict):
            body = json.dumps(body)
        connection.putrequest(
            method or ("GET" if body is None else "POST"),
            target,
            skip_host="host" in sent,
            skip_accept_encoding=True,
        )
        content = b"" if body is None else body if isinstance(body, bytes) else body.encode()
        if content:
            sent["content-length"] = str(len(content))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(content)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        reply = Reply(response.status, found, response.read())
        connection.close()
        return reply

    def edit(self, revision, kind, **what):
        return self.ask("edit", {"revision": revision, "edit": kind, **what})


@contextmanager
def running(desk):
    """Serve a run in a thread."""
    with listen() as found:
        server, address = prepare(desk, found)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
        thread.start()
        try:
            yield Client(address)
        finally:
            server.should_exit = True
            thread.join(300)
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def serve():
    """Serve a run: `with serve(run) as client`."""
    pytest.importorskip("uvicorn", reason='the server is tested: pip install "jule[serve]"')

    @contextmanager
    def started(run, source=None):
        with running(Desk(run, source)) as client:
            yield client

    return started
