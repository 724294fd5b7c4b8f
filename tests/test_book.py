"""The rendered book, as a reader meets it: from the file system, in a browser, with the network off."""

import contextlib
import csv
import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest
from playwright.sync_api import sync_playwright

from lib.press import claims, pages
from lib.press.bindery import building
from lib.press.environment import ROOT
from lib.press.explorers import EXPLORERS
from lib.press.rendering import extension
from lib.press.verdicts import rows, standing
from lib.press.workbench import browser as installed
from tests.traffic import Traffic

BROWSER = installed.find()
if BROWSER is None and os.environ.get("CI") != "true":
    pytest.skip(f"browser tests are skipped. {installed.NONE_FOUND}", allow_module_level=True)

HTML = ROOT / "_build" / "html"
SCREEN = {"width": 1300, "height": 1000}
DOTS = 0.25  # for each of a screen's: nobody looks at the picture, and drawing it would cost a tenth of these tests
PHONE = {"color_scheme": "light", "has_touch": True, "reduced_motion": "reduce"}  # what moves would only cost time


@pytest.fixture(scope="module")
def book():
    """The book, rendered with warnings as errors."""
    assert BROWSER is not None, installed.NONE_FOUND
    assert building.render() == 0
    return HTML


@pytest.fixture(scope="module")
def chromium(book):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=list(installed.FLAGS))
        browser.readers = {}
        yield browser
        browser.close()


class Reader:
    """Somebody with a tab of their own, who goes from page to page: half of what a new tab for every page would cost."""

    def __init__(self, chromium, **options):
        self.context = chromium.new_context(viewport=SCREEN, device_scale_factor=DOTS, **options)
        self.tab, self.problems, self.options = self.context.new_page(), [], options
        self.tab.on("console", lambda message: self.note(f"console: {message.text}") if message.type == "error" else None)
        self.tab.on("pageerror", lambda error: self.note(f"error: {error}"))
        self.tab.on("request", self.judge)
        self.traffic = Traffic(self.tab)

    def note(self, problem):
        self.problems.append(problem)

    def judge(self, request):
        if not request.url.startswith(("file:", "data:", "blob:", "about:")):
            self.note(f"outside request: {request.url}")

    def leave(self):
        """Forget what the page wrote down, and be as before."""
        if self.options.get("java_script_enabled", True):
            self.tab.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
        self.tab.goto("about:blank")
        self.tab.set_viewport_size(SCREEN)
        self.tab.emulate_media(color_scheme=self.options.get("color_scheme", "light"))


@contextlib.contextmanager
def visit(chromium, path, **options):
    """Open a file and collect what goes wrong: console errors and requests to the outside.

    A page that comes after another one is opened in the same tab by the same reader, one for each set of `options`; after a
    test that fails, a new one comes.
    """
    key = tuple(sorted(options.items()))
    reader = chromium.readers.pop(key, None) or Reader(chromium, **options)
    reader.problems = []
    try:
        reader.traffic.open(path.as_uri())
        yield reader.tab, reader.problems
        reader.leave()
    except BaseException:
        reader.context.close()
        raise
    chromium.readers[key] = reader


def until(tab, condition, arg=None, seconds=30):
    """Wait for what JavaScript's `condition` says: events, frames and layouts come when they come."""
    tab.wait_for_function(condition, arg=arg, timeout=1000 * seconds)


def documents():
    """Every page of the table of contents."""
    toc = (ROOT / "_toc.yml").read_text()
    return re.findall(r"(?:file|root): (book/\S+)", toc)


def test_every_paired_page_is_in_the_table_of_contents():
    assert {f"book/{page.name}" for page in pages.every()} <= set(documents())


PAGES = {f"book/{page.name}": page for page in pages.every()}
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
FIRST = "() => { const i = document.querySelector('article img'); return i.getBoundingClientRect().top + scrollY }"


@pytest.mark.parametrize("document", documents())
def test_page_opens_without_errors_and_without_the_network(chromium, book, document, capsys):
    """And while it is open: it fits a phone and dark mode, has its notebook's verdicts, its answer on the first screens, and
    an explorer that answers.

    Opening a page costs one to two core-seconds, so everything that needs no other start is asked here.
    """
    with visit(chromium, book / f"{document}.html") as (tab, problems):
        if tab.locator(".math").count():
            tab.wait_for_selector("mjx-container", timeout=60000, state="attached")
            until(tab, "document.querySelectorAll('.math:not(:has(mjx-container))').length == 0", seconds=60)
            assert tab.locator("mjx-merror").count() == 0
        pictures = tab.locator("article img").evaluate_all(
            "all => all.map(i => [i.getAttribute('src'), i.getAttribute('alt') || '', i.complete && i.naturalWidth > 0])"
        )
        for source, alt, loaded in pictures:
            assert loaded, f"{source} does not load"
            assert len(alt) > 15 and not alt.startswith(("../", "_images")), f"{source} has no alt text"
        nothing_is_squeezed(tab)
        if document in PAGES:
            verdicts_of_the_notebook_are_on_the_page(tab, PAGES[document])
            for name in explorers_of(PAGES[document]):
                an_explorer_answers(tab, name, capsys)
            the_answer_and_its_figure_are_on_the_first_screens(tab, PAGES[document])
        it_fits_a_narrow_screen_and_dark_mode(tab)
        assert problems == []


def verdicts_of_the_notebook_are_on_the_page(tab, page):
    shown = tab.locator("table.check td.verdict").all_inner_texts()
    measured, mine = claims.measured_in(page.name), claims.of_page(page.name)
    assert len(shown) == len(measured)
    for text, (name, record) in zip(shown, measured.items(), strict=True):  # recorded rows say when and at what cost
        verdict = record["verdict"]
        assert "(recorded" in text if verdict == "recorded" else text == rows.word(mine[name], verdict)
    assert tab.locator(".at-a-glance a.download").count() == 2
    assert {f"#{name}" for name in mine} <= set(tab.locator("a.claim-link").evaluate_all("all => all.map(a => a.hash)"))
    addresses = tab.locator("table.check").evaluate_all("all => all.map(t => t.id)")
    assert addresses == list(measured) and len(set(addresses)) == len(addresses)


def the_answer_and_its_figure_are_on_the_first_screens(tab, page):
    assert "```{answer}" in page.markdown.read_text(encoding="utf-8"), "the page opens with a short answer"
    for width, height, limit in ((1300, 1000, 1000), (390, 844, 1700)):
        tab.set_viewport_size({"width": width, "height": height})
        tab.evaluate(TWO_FRAMES)
        assert tab.evaluate(FIRST) < limit, f"the first figure of {page.name} is too far down at {width} px"


def it_fits_a_narrow_screen_and_dark_mode(tab):
    tab.emulate_media(color_scheme="dark")
    tab.set_viewport_size({"width": 420, "height": 900})
    until(tab, "document.documentElement.dataset.theme == 'dark' && innerWidth <= 420")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 421, "the page scrolls sideways on a phone"
    nothing_is_squeezed(tab)


# Pictures that are shown wider or higher than they were made, by more than two dots; a card's are fitted into it.
SQUEEZED = """all => all.filter(i => i.clientHeight && getComputedStyle(i).objectFit === 'fill').filter(i => {
    const style = getComputedStyle(i), inside = side => parseFloat(style[`padding${side}`]);
    const width = i.clientWidth - inside('Left') - inside('Right'), height = i.clientHeight - inside('Top') - inside('Bottom');
    return Math.abs(width * i.naturalHeight / i.naturalWidth - height) > 2;
}).map(i => i.getAttribute('src'))"""


def nothing_is_squeezed(tab):
    assert tab.locator("article img").evaluate_all(SQUEEZED) == [], "pictures are out of shape"


@pytest.mark.parametrize("document", ["book/intro", "book/scoreboard", "book/neural_race/routing"])
def test_page_opens_in_the_dark_on_a_phone(chromium, book, document):
    with visit(chromium, book / f"{document}.html", color_scheme="dark") as (tab, problems):
        tab.set_viewport_size({"width": 420, "height": 900})
        until(tab, "document.documentElement.dataset.theme == 'dark' && innerWidth <= 420")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 421, "the page scrolls sideways on a phone"
        assert problems == []


def test_the_licence_stands_in_the_footer_and_next_leads_to_the_first_chapter(chromium, book):
    with visit(chromium, book / "book" / "intro.html") as (tab, _):
        footer = tab.locator(".bd-footer-content")
        footer.scroll_into_view_if_needed()
        assert footer.is_visible() and "Code: MIT. Text and figures: CC BY 4.0." in footer.inner_text()
        following = tab.locator("a.right-next").evaluate("link => link.href")
    assert following.endswith("/book/deep_linear/modes.html") or following.endswith("/book/deep_linear/index.html")


def test_search_finds_a_claim(chromium, book):
    with visit(chromium, book / "search.html") as (tab, problems):
        tab.goto((book / "search.html").as_uri() + "?q=sigmoid")
        tab.wait_for_selector("ul.search li a", timeout=20000)
        assert any("modes.html" in link for link in tab.locator("ul.search li a").evaluate_all("all => all.map(a => a.href)"))
        assert problems == []


# --- what a newcomer asks ----------------------------------------------------------------------------------------------


def test_the_main_results_of_every_paper_are_on_the_front_page_one_click_from_their_rows(chromium, book):
    main = {claim.id: claim for claim, _ in standing.every(ROOT / "book") if claim.rank == "main"}
    with visit(chromium, book / "book" / "intro.html") as (tab, problems):
        targets = tab.locator(".paper-card li a").evaluate_all("all => all.map(a => a.href)")
        words = tab.locator(".paper-card li").all_inner_texts()
        assert {target.partition("#")[2] for target in targets} == set(main) and len(targets) == len(main)
        assert all(re.match(r"(✓ holds|◐ in part|✗ does not hold|\? undetermined)", text) for text in words)
        with tab.expect_navigation():
            tab.locator(".paper-card li a").first.click()
        assert tab.locator(f"table.check[id='{tab.evaluate('location.hash').removeprefix('#')}']").count() == 1
        assert problems == []


def test_two_clicks_lead_from_the_front_page_to_the_verdict_on_figure_5_of_the_neural_race(chromium, book):
    with visit(chromium, book / "book" / "intro.html") as (tab, problems):
        with tab.expect_navigation():
            tab.locator(".paper-card h3 a", has_text="Neural Race").click()
        line = tab.locator("table.figure-index tr", has=tab.locator("th", has_text=re.compile("^Figure 5")))
        assert line.count() >= 1
        with tab.expect_navigation():
            line.first.locator("td a .verdict").first.click()
        row = tab.locator(f"table.check[id='{tab.evaluate('location.hash').removeprefix('#')}']")
        assert row.count() == 1 and row.locator("td.verdict").inner_text()
        tab.wait_for_function("() => document.querySelector(location.hash).getBoundingClientRect().top < innerHeight")
        assert problems == []


def test_every_square_and_every_row_of_the_scoreboard_lands_on_its_claim(chromium, book):
    there = {f"book/{page.name}.html": set(claims.measured_in(page.name)) for page in pages.every()}
    with visit(chromium, book / "book" / "scoreboard.html") as (tab, _):
        squares = tab.locator("a.square").evaluate_all("all => all.map(a => a.href)")
        listed = tab.locator("li.card-row .statement > a").evaluate_all("all => all.map(a => a.href)")
    counted = [claim for claim, _ in standing.every(ROOT / "book") if claim.rank != "check"]
    assert len(squares) == len(counted) and len(listed) == len(standing.every(ROOT / "book"))
    for target in squares + listed:
        page, _, name = target.removeprefix(f"{book.as_uri()}/").partition("#")
        assert name in there[page], f"{target} leads to no row"


def test_the_scoreboard_can_be_filtered_and_the_filter_is_in_the_address(chromium, book):
    board = book / "book" / "scoreboard.html"
    race = [claim for claim, _ in standing.every(ROOT / "book", ["neural_race"])]
    ours = [claim for claim in race if claim.author == "book"]
    shown = "li.card-row:not([hidden])"
    with visit(chromium, board) as (tab, problems):
        left = f"number => document.querySelectorAll('{shown}').length == number"
        tab.select_option("[name=paper]", "neural_race")
        until(tab, left, len(race))
        tab.select_option("[name=author]", "book")
        until(tab, left, len(ours))
        until(tab, "words => document.querySelector('.board-count').innerText.includes(words)", f"{len(ours)} of")
        assert tab.locator(shown).first.is_visible()
        until(tab, "['paper=neural_race', 'author=book'].every(words => location.search.includes(words))")
        tab.click("button[type=reset]")
        until(tab, "document.querySelectorAll('li.card-row[hidden]').length == 0")
        tab.fill("[name=words]", f"row-{race[0].id}")
        until(tab, left, 1)
        tab.goto(board.as_uri() + "?paper=neural_race&author=book")
        until(tab, left, len(ours))
        assert problems == []
    with visit(chromium, board, java_script_enabled=False) as (tab, _):  # without scripts everything is there, without a filter
        assert tab.locator("form.board-filter").is_hidden() and tab.locator("details.board").count() == len(claims.papers())


def test_a_picture_out_of_shape_is_noticed(chromium, book):
    with visit(chromium, book / "book" / "deep_linear" / "modes.html") as (tab, _):
        tab.add_style_tag(content="article .cell_output img { height: 30px !important }")
        assert tab.locator("article img").evaluate_all(SQUEEZED)


def test_a_row_can_be_cited_and_a_figure_enlarges(chromium, book):
    page = book / "book" / "deep_linear" / "modes.html"
    with visit(chromium, page) as (tab, problems):
        name = tab.locator("table.check").first.get_attribute("id")
        tab.locator("table.check button.cite").first.click()
        assert f"#{name}" in tab.locator("dialog.racing-dialog pre").inner_text()
        tab.keyboard.press("Escape")
        tab.locator("dialog.racing-dialog").wait_for(state="detached")  # the dialog hears of its end a moment later
        tab.locator("article figure:not(.explorer) img").first.click()
        tab.locator("dialog.racing-dialog img.large").wait_for(state="visible")
        assert problems == []


# --- explorers: what they compute is held against lib in tests/press/test_explorers.py ---------------------------------


def explorers_of(page):
    """The explorers that a page shows."""
    return re.findall(r"^```\{explorer\} (\w+)", page.markdown.read_text(encoding="utf-8"), re.M)


def explorer_pages():
    """{explorer: page} of all pages that show one."""
    return {name: page.name for page in pages.every() for name in explorers_of(page)}


# Looks ten times a second until the explorer has stood in the same place three times in a row.
AT_REST = """async () => {
    for (let last = '', same = 0, looks = 0; same < 3 && looks < 100; looks++) {
        const now = JSON.stringify(document.querySelector('figure.explorer').getBoundingClientRect());
        same = now === last ? same + 1 : 0;
        last = now;
        await new Promise(done => setTimeout(done, 100));
    }
}"""


def come_near(tab):
    """Scroll to the explorer and wait until it is alive and at rest."""
    tab.locator("figure.explorer").first.scroll_into_view_if_needed()
    tab.wait_for_selector("figure.explorer-live", timeout=60000)
    tab.evaluate(AT_REST)


# Milliseconds from a key to the frame that shows it, then those of the updates that follow, of a dozen if there are so many.
PRESSED = """async name => {
    const models = Explorers.models(name), slider = Object.values(models).find(m => m.type === 'Slider' && !m.disabled);
    Explorers.timings[name] = [];
    const begin = performance.now();
    slider.value = slider.value + slider.step;
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
    const first = performance.now() - begin;
    for (let looks = 0; looks < 75 && Explorers.timings[name].length < 12; looks++)
        await new Promise(done => setTimeout(done, 20));
    return [first, ...Explorers.timings[name]];
}"""
# Elements behind the borders that Bokeh puts around its widgets, and what they are called.
INSIDE = """(root, wanted) => {
    const found = [];
    const walk = node => { for (const child of node.children) {
        if (child.matches(wanted)) found.push([child.getAttribute('aria-label') || '', child]);
        walk(child);
        if (child.shadowRoot) walk(child.shadowRoot);
    } };
    walk(root);
    return found;
}"""


def inside(tab, wanted, then):
    """What JavaScript `then` makes of the [name, element] pairs of all elements `wanted` of the explorer."""
    return tab.evaluate(f"() => ({INSIDE})(document.querySelector('figure.explorer'), '{wanted}'){then}")


def test_there_are_seven_explorers_each_on_a_page_of_its_own():
    assert set(explorer_pages()) == set(EXPLORERS) and len(set(explorer_pages().values())) == len(EXPLORERS) >= 7


def an_explorer_answers(tab, name, capsys):
    """It stands on its page, has names for those who cannot see it, and answers to keys and to what they move."""
    scripts = tab.locator("script[src]").evaluate_all("all => all.map(s => s.src.split('?')[0])")
    assert len(scripts) == len(set(scripts)) and sum("bokeh" in script for script in scripts) == 2
    come_near(tab)
    assert tab.locator(".explorer-static").is_hidden() and len(tab.locator(".explorer-says").inner_text()) > 40
    handles = inside(tab, ".noUi-handle", ".map(one => one[0])")
    assert handles and all(len(label) > 2 for label in handles), "sliders have names for those who cannot see them"
    plots = inside(tab, "[role=img]", ".map(one => one[0])")
    assert plots and all(len(label) > 10 for label in plots)
    tab.wait_for_function(f"() => !Explorers.running('{name}')", timeout=60000)
    said = tab.locator(".explorer-says").inner_text()
    inside(tab, ".noUi-handle", "[0][1].focus()")
    for _ in range(3):
        tab.keyboard.press("ArrowLeft")
    tab.wait_for_function("before => document.querySelector('.explorer-says').textContent !== before", arg=said, timeout=20000)
    first, *frames = tab.evaluate(PRESSED, name)
    assert frames
    with capsys.disabled():
        middle = sorted(frames)[len(frames) // 2]
        print(f"\nExplorer {name}: first answer after {first:.0f} ms; frames {middle:.0f} ms, at most {max(frames):.0f}")


@pytest.mark.parametrize("name", EXPLORERS)
def test_an_explorer_follows_the_themes_switch_and_fits_a_phone(chromium, book, name):
    page = book / "book" / f"{explorer_pages()[name]}.html"
    colours = (
        f"() => [...Object.values(Explorers.models('{name}'))[0].document.all_models].flatMap(m => m.axis_label_text_color || [])"
    )
    with visit(chromium, page, **PHONE) as (tab, problems):
        tab.set_viewport_size({"width": 420, "height": 850})
        come_near(tab)
        light = tab.evaluate(colours)
        assert light
        tab.evaluate("document.documentElement.dataset.theme = 'dark'")
        until(tab, f"light => ({colours})().every(colour => !light.includes(colour))", light)
        tab.evaluate("document.documentElement.dataset.theme = 'light'")
        until(tab, f"light => JSON.stringify(({colours})()) === JSON.stringify(light)", light)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 421
        assert problems == []


@pytest.mark.parametrize("name", EXPLORERS)
def test_without_scripts_a_picture_with_a_caption_stands_there(chromium, book, name):
    with visit(chromium, book / "book" / f"{explorer_pages()[name]}.html", java_script_enabled=False) as (tab, _):
        figure = tab.locator("figure.explorer")
        assert figure.locator(".explorer-static img").is_visible() and len(figure.locator("figcaption").inner_text()) > 60
        assert figure.locator(".explorer-stage").is_hidden() and figure.locator(".explorer-says").is_hidden()


def test_only_pages_with_an_explorer_load_its_library(book):
    shown = set(explorer_pages().values())
    for document in documents():
        text = (book / f"{document}.html").read_text(encoding="utf-8")
        assert ("bokeh.min.js" in text) == (document.removeprefix("book/") in shown), document


def test_a_route_is_chosen_by_a_click_by_touch_and_by_keys_and_a_curve_is_drawn(chromium, book):
    place = "[0].slice(1).map(one => one.getBoundingClientRect()).flatMap(box => [box.x, box.y, box.width, box.height])"
    trained = "() => Explorers.models('routing').cells.data.mark.filter(mark => mark === '').length"
    with visit(chromium, book / "book" / f"{explorer_pages()['routing']}.html") as (tab, problems):
        come_near(tab)
        until(tab, f"() => ({trained})() === 18")
        x, y, width, height = inside(tab, "[role=img]", place)
        tab.mouse.click(x + 0.55 * width, y + 0.12 * height)  # a cell of the upper row that is not trained
        until(tab, f"() => ({trained})() === 19")
        inside(tab, "[role=img]", "[0][1].focus()")
        tab.keyboard.press("ArrowDown")
        tab.keyboard.press("Space")
        until(tab, f"() => ({trained})() === 18")
        assert problems == []
    with visit(chromium, book / "book" / f"{explorer_pages()['routing']}.html", **PHONE) as (tab, problems):
        tab.set_viewport_size({"width": 420, "height": 850})
        come_near(tab)
        inside(tab, "[role=img]", "[0][1].scrollIntoView({block: 'center'})")
        x, y, width, height = inside(tab, "[role=img]", place)
        tab.touchscreen.tap(x + 0.55 * width, y + 0.12 * height)
        until(tab, f"() => ({trained})() === 19")
        assert problems == []
    with visit(chromium, book / "book" / f"{explorer_pages()['kinks']}.html", reduced_motion="reduce") as (tab, problems):
        come_near(tab)
        assert not tab.evaluate("Explorers.running('kinks')"), "nothing moves for readers who do not want it"
        x, y, width, height = inside(tab, "[role=img]", place)
        tab.mouse.move(x + 0.4 * width, y + 0.4 * height)
        tab.mouse.down()
        tab.mouse.move(x + 0.8 * width, y + 0.4 * height, steps=8)
        tab.mouse.up()
        drawn = "Array.from(Explorers.models('kinks').target.data.y).slice(40, 60)"  # a straight line, drawn over the wave
        until(tab, f"() => Math.max(...{drawn}) - Math.min(...{drawn}) < 1e-6 && 0 < {drawn}[0] && {drawn}[0] < 1")
        assert problems == []


def test_verdicts_can_be_taken_away(book):
    table = json.loads((book / "book" / "verdicts.json").read_text(encoding="utf-8"))
    schema = json.loads((book / "book" / "verdicts.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(table, schema)
    assert [row["id"] for row in table] and {row["id"] for row in table} == {
        claim.id for claim, _ in standing.every(ROOT / "book")
    }
    with open(book / "book" / "verdicts.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["verdict"] for line in lines] == [row["verdict"] for row in table]
    reviews = re.search(r'ld\+json">(.*?)</script>', (book / "book/neural_race/index.html").read_text(encoding="utf-8"))[1]
    main = [
        claim for claim, _ in standing.every(ROOT / "book", ["neural_race"]) if claim.rank == "main" and claim.author == "paper"
    ]
    assert {review["@type"] for review in json.loads(reviews)} == {"ClaimReview"} and len(json.loads(reviews)) == len(main)


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
    command = [os.path.join(os.path.dirname(sys.executable), "jupyter-book"), "build", str(tmp_path), *building.STRICT]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode != 0
