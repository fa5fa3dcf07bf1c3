"""Who is let in: nobody without the token, no other origin, no other name of the machine."""

import numpy as np
import pytest

from tests.report.made import blobs, run_of


@pytest.fixture(scope="module")
def client(serve, tmp_path_factory):
    images = np.round(255 * blobs(30, (6, 6))).astype(np.uint8)
    run = run_of(tmp_path_factory.mktemp("guarded") / "run", images, 3)
    with serve(run) as client:
        yield client


def is_closed(reply):
    return reply.status == 403 and reply.body == b""


def test_the_page_is_served_with_headers_that_keep_it_to_itself(client):
    reply = client.ask()
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    for asked in (reply, client.ask("state"), client.ask("nothing"), client.ask(root="/")):
        assert asked.headers["x-content-type-options"] == "nosniff"
        assert asked.headers["referrer-policy"] == "no-referrer"
        assert asked.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in asked.headers["content-security-policy"]
        assert not [name for name in asked.headers if name.startswith("access-control")]
        assert "server" not in asked.headers


@pytest.mark.parametrize(
    "root",
    ["/", "", "/state", "/wrong/", "/wrong/state", "//", "/%2e%2e/", "/caf%e9/state"],
)
def test_without_the_token_nothing_is_told(client, root):
    assert is_closed(client.ask(root=root or "*"))


def test_a_token_that_is_nearly_right_is_wrong(client):
    token = client.parts.path
    for root in (token[:-2] + "/", token.upper(), token.replace("/", "//", 1), token[:-1] + "x/"):
        assert is_closed(client.ask("state", root=root))
    assert client.ask("state").status == 200


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "[::1]", ""])
def test_another_host_is_refused(client, host):
    assert is_closed(client.ask("state", host=host))
    assert is_closed(client.ask("state", host=f"{host}:{client.parts.port}@example.org"))


def test_the_own_names_are_accepted(client):
    port = client.parts.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert client.ask("state", host=host).status == 200
        assert client.ask("state", host=host, origin=f"http://{host}").status == 200


@pytest.mark.parametrize(
    "origin", ["http://example.org", "null", "https://127.0.0.1", "http://127.0.0.1:1", ""]
)
def test_another_origin_is_refused(client, origin):
    edit = {"revision": 0, "edit": "name", "cluster": 0, "name": "x"}
    assert is_closed(client.ask("edit", edit, origin=origin))
    assert is_closed(client.ask("state", origin=origin))
    assert is_closed(client.ask("edit", method="OPTIONS", origin=origin))
    assert client.ask("state").json["revision"] == 0


def test_a_page_of_another_site_is_refused(client):
    for site in ("cross-site", "same-site"):
        assert is_closed(client.ask("pictures/0", sec_fetch_site=site))
    assert client.ask("pictures/0", sec_fetch_site="same-origin").status == 200


def test_changes_are_json_alone(client):
    edit = '{"revision": 0, "edit": "name", "cluster": 0, "name": "x"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.ask("edit", edit, content_type=kind).status == 415
    assert client.ask("edit").status == 405
    assert client.ask("state").json["revision"] == 0


def test_a_large_request_is_not_read_to_its_end(client):
    assert client.ask("edit", b" " * (2**24 + 1)).status == 413
