"""`python -m lib bench` on the command line."""

import sys


def add(commands) -> None:
    """Add the command and its options to the parser's `commands`."""
    bench = commands.add_parser("bench", help="time the fast paths beside plain programs for the same numbers, on this machine")
    bench.add_argument("case", nargs="*", help="routing, biases, … (default: all)")
    bench.add_argument("--authors", metavar="FOLDER", help="time the papers' own programs too, checked out in FOLDER")
    bench.add_argument("--authors-python", default=sys.executable, metavar="PYTHON", help="an interpreter with what they need")
    bench.add_argument("--record", action="store_true", help="keep the result with the book")
    bench.set_defaults(action=perform)


def perform(options) -> int:
    """Measure, show, and with --record keep."""
    from lib.press.bench import running

    return running.main(options.case, options.authors, options.authors_python, options.record)
