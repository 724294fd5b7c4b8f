"""The rendered book, as a reader meets it: from the file system, in a browser, with the network off."""

import contextlib
import os
import re
import subprocess
import sys

import pytest
from playwright.sync_api import sync_playwright

from lib.press import claims, pages
from lib.press.environment import ROOT
from lib.press.rendering import extension
from lib.press.rendering import generated as directives
from lib.press.workbench import browser as installed
from lib.press.workbench import commands

BROWSER = installed.find()
if BROWSER is None and os.environ.get("CI") != "true":
    pytest.skip(f"browser tests are skipped. {installed.NONE_FOUND}", allow_module_level=True)

HTML = ROOT / "_build" / "html"


@pytest.fixture(scope="module")
def book():
    """The book, rendered with warnings as errors."""
    assert BROWSER is not None, installed.NONE_FOUND
    assert commands.render() == 0
    return HTML


@pytest.fixture(scope="module")
def chromium(book):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=list(installed.FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def visit(chromium, path, **options):
    """Open a file in a fresh context and collect what goes wrong: console errors and requests to the outside."""
    context = chromium.new_context(viewport={"width": 1300, "height": 1000}, **options)
    tab, problems = context.new_page(), []
    tab.on("console", lambda message: problems.append(f"console: {message.text}") if message.type == "error" else None)
    tab.on("pageerror", lambda error: problems.append(f"error: {error}"))

    def judge(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            problems.append(f"outside request: {request.url}")

    tab.on("request", judge)
    tab.goto(path.as_uri())
    tab.wait_for_load_state("networkidle")
    yield tab, problems
    context.close()


def documents():
    """Every page of the table of contents."""
    toc = (ROOT / "_toc.yml").read_text()
    return re.findall(r"(?:file|root): (book/\S+)", toc)


def test_every_paired_page_is_in_the_table_of_contents():
    assert {f"book/{page.name}" for page in pages.every()} <= set(documents())


@pytest.mark.parametrize("document", documents())
def test_page_opens_without_errors_and_without_the_network(chromium, book, document):
    with visit(chromium, book / f"{document}.html") as (tab, problems):
        if tab.locator(".math").count():
            tab.wait_for_selector("mjx-container", timeout=20000, state="attached")
            tab.wait_for_function("document.querySelectorAll('.math:not(:has(mjx-container))').length == 0", timeout=20000)
            assert tab.locator("mjx-merror").count() == 0
        pictures = tab.locator("article img").evaluate_all(
            "all => all.map(i => [i.getAttribute('src'), i.getAttribute('alt') || '', i.complete && i.naturalWidth > 0])"
        )
        for source, alt, loaded in pictures:
            assert loaded, f"{source} does not load"
            assert len(alt) > 15 and not alt.startswith(("../", "_images")), f"{source} has no alt text"
        assert problems == []


@pytest.mark.parametrize("document", documents())
def test_page_fits_a_narrow_screen_and_dark_mode(chromium, book, document):
    with visit(chromium, book / f"{document}.html", color_scheme="dark") as (tab, problems):
        tab.set_viewport_size({"width": 420, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 421, "the page scrolls sideways on a phone"
        assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
        assert problems == []


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_verdicts_of_the_notebook_are_on_the_page(chromium, book, page):
    with visit(chromium, book / "book" / f"{page.name}.html") as (tab, _):
        shown = tab.locator("table.check td.verdict").all_inner_texts()
        measured = [record["verdict"] for record in claims.measured_in(page.name).values()]
        assert len(shown) == len(measured)
        for text, verdict in zip(shown, measured, strict=True):  # recorded rows say when and at what cost
            assert "(recorded" in text if verdict == "recorded" else text == verdict
        assert tab.locator(".at-a-glance a.download").count() == 2
        listed = tab.locator("section > ol > li .verdict").count()
        assert listed >= len(claims.of_page(page.name))


def test_search_finds_a_claim(chromium, book):
    with visit(chromium, book / "search.html") as (tab, problems):
        tab.goto((book / "search.html").as_uri() + "?q=sigmoid")
        tab.wait_for_selector("ul.search li a", timeout=20000)
        assert any("modes.html" in link for link in tab.locator("ul.search li a").evaluate_all("all => all.map(a => a.href)"))
        assert problems == []


def test_front_page_shows_every_claim_as_a_square_that_leads_somewhere(chromium, book):
    total = sum(len(claims.load(paper)) for paper in claims.papers())
    with visit(chromium, book / "book" / "intro.html") as (tab, _):
        targets = tab.locator("a.square").evaluate_all("all => all.map(a => a.href)")
    assert len(targets) == total
    for target in set(targets):
        assert (ROOT / target.removeprefix("file://")).exists()


def test_scoreboard_has_a_row_for_every_claim(chromium, book):
    with visit(chromium, book / "book" / "scoreboard.html") as (tab, _):
        assert tab.locator(".scoreboard tbody tr").count() == sum(directives.score(claims.papers(), ROOT / "book").values())


def test_no_dead_link_and_no_launch_button_without_an_address(book):
    for path in (book / "book").glob("**/*.html"):
        text = path.read_text(encoding="utf-8")
        assert "colab.research" not in text and "mybinder" not in text
        for target in re.findall(r'<a [^>]*href="([^"#?:]+)(?:#[^"]*)?"', text):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_launch_buttons_appear_with_an_address():
    class Config:
        exclude_patterns: list = []
        html_theme_options = {"repository_url": "https://example.org/someone/racing"}

    class App:
        srcdir = str(ROOT)

    extension.configure(App, Config)
    assert Config.html_theme_options["launch_buttons"]["colab_url"] and Config.html_theme_options["use_repository_button"]


def test_the_browser_test_notices_a_page_that_asks_the_network(chromium, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.2:9/x.png' alt='x'><script>undefinedFunction()</script>")
    with visit(chromium, bad) as (_, problems):
        tab_problems = list(problems)
    assert any("outside request" in problem for problem in tab_problems)
    assert any("undefinedFunction" in problem for problem in tab_problems)


def test_a_warning_fails_the_build(tmp_path):
    """The options of `render` turn a broken reference into a failure."""
    (tmp_path / "index.md").write_text("# A\n\n{doc}`nowhere`\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (tmp_path / "_config.yml").write_text("title: A\nexecute: {execute_notebooks: 'off'}\n")
    command = [os.path.join(os.path.dirname(sys.executable), "jupyter-book"), "build", str(tmp_path), *commands.STRICT]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode != 0
