"""The addresses of the server: the page, its pictures, and a small JSON interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jule.corrections.requests import RequestError
from jule.files import parse_json
from jule.locks import LockedError
from jule.report.page import policy
from jule.runs.edits import ChangedRunError, StaleError
from jule.serve.desk import Desk
from jule.serve.guard import Guard

TEXT = "text/plain; charset=utf-8"
MOST_BYTES = 2**24  # of a request: one that moves a million pictures is half as large
Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]
Change = Callable[[dict[str, Any]], dict[str, Any]]


def make_app(desk: Desk, token: str, port: int) -> Guard:
    """Return the ASGI application of a run.

    =============  ====  ==================================================================
    address        by    answer
    =============  ====  ==================================================================
    /              GET   the page
    /sheets/N      GET   a sheet of thumbnails
    /pictures/N    GET   the original of a picture, by its row in labels.csv
    /state         GET   clusters and names now, and their revision
    /clusters      GET   what follows from them: the merge tree, typical pictures, doubts
    /suggestions   GET   clusters that may be the same, and branches that may be strangers
    /contents      POST  images of a cluster, a part at a time, with their thumbnails
    /images        POST  images by their rows, as in /contents
    /parts         POST  what a split would make of a cluster; nothing changes
    /edit          POST  one edit, with the revision that it is based on; then as /state
    /undo, /redo   POST  the same for undoing and redoing
    =============  ====  ==================================================================

    All addresses begin with the token. A stale revision is answered with 409 and the present state,
    an impossible edit with 422, both with a ``problem`` in words.
    """

    def page(_: Request) -> Response:
        try:
            content = desk.page()
        except (ValueError, OSError) as error:
            return _answer(f"jule: {error}".encode("utf-8", "backslashreplace"), TEXT, 500)
        response = _answer(content, "text/html; charset=utf-8")
        allowed = f"{policy(served=True)}; frame-ancestors 'none'"
        response.headers["content-security-policy"] = allowed
        return response

    def sheet(request: Request) -> Response:
        number = request.path_params["number"]
        if number >= len(desk.sheets):
            return _problem(404, "there is no such sheet")
        try:
            return _answer(desk.sheets[number], desk.sheet_type)
        except (ValueError, OSError) as error:
            return _problem(404, f"the thumbnails cannot be read: {error}")

    def picture(request: Request) -> Response:
        number = request.path_params["number"]
        if number >= desk.n_samples:
            return _problem(404, "there is no such picture")
        try:
            return _answer(*desk.originals.get(number))
        except (ValueError, OSError, ImportError) as error:
            return _problem(404, f"the original cannot be shown: {error}")

    routes = [
        Route("/", page),
        Route("/sheets/{number:int}", sheet),
        Route("/pictures/{number:int}", picture),
        *(
            Route(f"/{name}", _looking(desk, look))
            for name, look in (
                ("state", desk.state),
                ("clusters", desk.clusters),
                ("suggestions", desk.suggestions),
            )
        ),
        *(
            Route(f"/{name}", _changing(desk, change), methods=["POST"])
            for name, change in (
                ("edit", desk.edit),
                ("undo", desk.undo),
                ("redo", desk.redo),
                ("contents", desk.contents),
                ("images", desk.images),
                ("parts", desk.parts),
            )
        ),
    ]
    return Guard(Starlette(routes=routes), token, port)


def _looking(desk: Desk, look: Callable[[], dict[str, Any]]) -> Callable[[Request], Response]:
    """Return the endpoint of something that changes nothing."""
    return lambda _: _answered(desk, look)


def _changing(desk: Desk, change: Change) -> Endpoint:
    """Return the endpoint of something that changes the run."""

    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-type") != "application/json":
            return _problem(415, "a change is sent as JSON")
        content = b""
        async for part in request.stream():
            content += part
            if len(content) > MOST_BYTES:
                return _problem(413, "the request is too large")
        return await run_in_threadpool(_try, desk, change, content)

    return endpoint


def _try(desk: Desk, change: Change, content: bytes) -> Response:
    def work() -> dict[str, Any]:
        asked = parse_json(content)
        if not isinstance(asked, dict):
            raise RequestError("a change is a JSON object")
        return change(asked)

    return _answered(desk, work)


def _answered(desk: Desk, work: Callable[[], dict[str, Any]]) -> Response:
    """Return what some work returns, or its problem in words."""
    try:
        return _json(work())
    except StaleError as error:
        return _json({"problem": str(error), "state": desk.state()}, 409)
    except ChangedRunError as error:
        return _problem(410, f"{error} (end jule serve, and start it again)")
    except LockedError as error:
        return _problem(503, str(error))
    except ValueError as error:
        return _problem(422, str(error))
    except OSError as error:
        return _problem(500, f"the run cannot be read or written: {error.strerror or error}")


def _problem(status: int, text: str) -> Response:
    return _json({"problem": text}, status)


def _json(value: dict[str, Any], status: int = 200) -> Response:
    # As ASCII: paths may have characters that are not UTF-8.
    return _answer(json.dumps(value).encode("ascii"), "application/json", status)


def _answer(content: bytes, kind: str, status: int = 200) -> Response:
    return Response(content, status, media_type=kind)
