"""What a browser's tab asks for: a page has been opened when it asks for nothing more."""

import time


class Traffic:
    """Follows the requests of one of playwright's tabs.

    Chromium's own word for the end of them, 'networkidle', never comes for a third of the book's pages in a headless shell.
    """

    def __init__(self, tab):
        self.tab, self.under_way, self.last = tab, set(), 0.0
        tab.on("request", self.begun)
        tab.on("requestfinished", self.ended)
        tab.on("requestfailed", self.ended)

    def begun(self, request):
        self.under_way.add(request)

    def ended(self, request):
        self.under_way.discard(request)
        self.last = time.monotonic()

    def open(self, address, quiet=0.3):
        """Go to an address and wait until nothing has been asked for during `quiet` seconds."""
        self.under_way.clear()
        self.tab.goto(address)
        while self.under_way or time.monotonic() < self.last + quiet:
            self.tab.wait_for_timeout(50)
