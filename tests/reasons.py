"""`python -m reasons [PAGE …]` in a repository: why these pages (or all) are stale, as JSON; see `conftest.py`."""

import json
import sys

from lib.press import pages

chosen = [pages.find(name) for name in sys.argv[1:]] or pages.every()
print(json.dumps({page.name: pages.stale(page) for page in chosen}))
