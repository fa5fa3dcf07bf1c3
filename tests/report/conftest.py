"""A real browser for the tests of the page."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from jule.images import load_dataset
from jule.report import Report
from tests.report.made import run_of
from tests.report.waiting import TIMEOUT, rest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


@pytest.fixture(scope="module")
def browser():
    """Chromium; tests that need it skip where there is none. One at a time can be driven."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the page is tested in a browser: pip install playwright"
    )
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is here: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=found, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open a page from its file; it must neither complain nor ask anybody for anything."""

    @contextmanager
    def opened(path, *, width=1300, height=900, scheme="light", touch=False, missing=""):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            accept_downloads=True,
            has_touch=touch,
            is_mobile=touch,
        )
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        complaints, asked = [], []
        page.on("console", lambda message: complaints.append(f"{message.text} {message.location}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url[:200]}"))
        page.goto(path.resolve().as_uri())
        page.wait_for_selector(".card", state="attached")
        page.asked = asked
        yield page
        rest(page)  # complaints may come late
        assert [each for each in complaints if not missing or missing not in each] == []
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        context.close()

    return opened


@pytest.fixture
def keep_picture():
    """Keep a screenshot for the eye, in build/screenshots."""

    def keep(page, name):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png")

    return keep


@pytest.fixture(scope="session")
def images():
    return load_dataset("digits").images[:400]


@pytest.fixture(scope="session")
def run(images, tmp_path_factory):
    made = run_of(tmp_path_factory.mktemp("runs") / "run", images, 8)
    Report.of_run(made).write(made)
    return made


@pytest.fixture(scope="session")
def page(run):
    return run.path("report.html")
