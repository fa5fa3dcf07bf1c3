"""Waiting for a page without guessing how long it takes on this machine."""

# The page puts off what need not follow the slider by 150 ms; its timers go off in their order.
REST = """new Promise((done) => setTimeout(() => {
  requestAnimationFrame(() => requestAnimationFrame(done));
}, 160))"""
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
TIMEOUT = 60_000  # milliseconds after which a page counts as broken, on the slowest machine


def rest(page):
    """Wait until the page has done and drawn everything that it puts off."""
    page.evaluate(REST)


def draw(page):
    """Wait until the page has drawn what it asked the browser for."""
    page.evaluate(DRAWN)
