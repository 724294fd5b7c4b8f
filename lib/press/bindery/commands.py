"""The bindery's commands: `book`, `preview`, `check`, `test`, `new`."""

from lib.press.workbench import arguments


def add(commands) -> None:
    """Add them to the parser of `python -m lib`."""
    book = commands.add_parser("book", help="re-execute stale pages and render what has changed")
    book.set_defaults(action=build)

    live = commands.add_parser("preview", help="show a page in the browser and render it anew on every save")
    live.add_argument("page")
    live.add_argument("--port", type=arguments.port, default=0, help="of 127.0.0.1 (default: any that is free)")
    live.add_argument("--no-browser", action="store_true", help="only serve it")
    live.set_defaults(action=show)

    quick = commands.add_parser("check", help="in 90 seconds: lint, claims, freshness, and the tests of what has changed")
    quick.add_argument("--since", default="HEAD", metavar="COMMIT", help="what to compare with (default: HEAD, the last commit)")
    quick.add_argument("--seconds", type=arguments.duration, default=90.0, help="for everything (default: 90)")
    quick.set_defaults(action=check_changes)

    test = commands.add_parser("test", help="run the whole suite, or the part that pytest's arguments name")
    test.add_argument("pytest", nargs="*", help="arguments for pytest; --record notes how long everything took")

    page = commands.add_parser("new", help="make a new page (of a new paper, too) with claims, preset and a first test")
    page.add_argument("page", metavar="PAPER/PAGE", help="folder and page, in small letters: my_paper/first_figure")
    page.add_argument("--title", help="the paper's title, if the paper is new")
    page.set_defaults(action=make_page)


def build(options) -> int:
    """`python -m lib book`."""
    from lib.press.bindery import building

    return building.build_book(options)


def show(options) -> int:
    """`python -m lib preview`."""
    from lib.press.bindery import preview

    return preview.main(options.page, options.port, not options.no_browser)


def check_changes(options) -> int:
    """`python -m lib check`."""
    from lib.press.bindery import check

    return check.main(options.since, options.seconds)


def make_page(options) -> int:
    """`python -m lib new`."""
    from lib.press.bindery import new

    return new.main(options.page, options.title)
