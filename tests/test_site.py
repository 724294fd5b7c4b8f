"""The rendered book, as a reader meets it: from the file system, in a browser, with the network off."""

import contextlib
import os
import re
import shutil
import time
from types import SimpleNamespace

import pytest
from playwright.sync_api import sync_playwright

from lib import claims
from lib.book import build, pages, verdicts

pytestmark = pytest.mark.slow
ROOT, BOOK, HTML = pages.ROOT, pages.ROOT / "book", pages.ROOT / "_build" / "html"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
if BROWSER is None and os.environ.get("CI") != "true":
    pytest.skip("no Chromium was found: install it, or set CHROMIUM to its path", allow_module_level=True)

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SCREEN, PHONE = {"width": 1300, "height": 1000}, {"width": 390, "height": 844}
TOUCH = {"has_touch": True, "reduced_motion": "reduce"}
DOTS = 0.25  # for each of a screen's: nobody looks at the picture, and drawing it would cost a tenth of these tests
PAGES = {f"book/{page.name}": page for page in pages.all_pages()}
DOCUMENTS = re.findall(r"(?:file|root): (book/\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
TEXTS = {document: page.markdown.read_text(encoding="utf-8") for document, page in PAGES.items()}
EXPLORERS = {name: document for document, text in TEXTS.items() for name in re.findall(r"^```\{explorer\} (\w+)", text, re.M)}


@pytest.fixture(scope="session")
def book():
    """The book, rendered with warnings as errors."""
    build.render()
    return HTML


@pytest.fixture(scope="module")
def chromium(book):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


TABS = {}  # options -> a tab that was used without trouble: half of what a new one for every page would cost


def new_tab(chromium, options):
    """A tab, and what is known about it: problems, requests that are under way, when the last one ended."""
    tab = chromium.new_context(device_scale_factor=DOTS, **options).new_page()
    tab.set_default_timeout(120_000)  # a busy machine is no error of the book
    known = SimpleNamespace(problems=[], waiting=set(), last=0.0)

    def begun(request):
        known.waiting.add(request)
        if not request.url.startswith(("file:", "data:", "blob:", "about:")):
            known.problems.append(f"outside request: {request.url}")

    def ended(request):
        known.waiting.discard(request)
        known.last = time.monotonic()

    tab.on("console", lambda message: known.problems.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: known.problems.append(f"error: {error}"))
    for event, answer in (("request", begun), ("requestfinished", ended), ("requestfailed", ended)):
        tab.on(event, answer)
    return tab, known


@contextlib.contextmanager
def visit(chromium, path, **options):
    """Open a file in a tab. In the end, console errors and requests beyond the file system fail the test."""
    tab, known = TABS.pop(str(options), None) or new_tab(chromium, options)
    known.problems.clear()
    tab.set_viewport_size(SCREEN)
    tab.emulate_media(color_scheme="light")
    tab.goto(path.as_uri())
    while known.waiting or time.monotonic() < known.last + 0.3:  # 'networkidle' does not always come
        tab.wait_for_timeout(50)
    yield tab
    problems = list(known.problems)
    if options.get("java_script_enabled", True):
        tab.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
    tab.goto("about:blank")
    known.waiting.clear()
    TABS[str(options)] = tab, known
    assert not problems, "\n".join(problems)


def until(tab, condition, arg=None):
    """Wait for what JavaScript's `condition` says: events, frames and layouts come when they come."""
    tab.wait_for_function(condition, arg=arg)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_page(chromium, book, document):
    """Opening a page costs one to two core-seconds, so everything that needs no other start is asked here."""
    with visit(chromium, book / f"{document}.html") as tab:
        if tab.locator(".math").count():
            until(tab, "document.querySelectorAll('.math:not(:has(mjx-container))').length == 0")
            assert tab.locator("mjx-merror").count() == 0
        pictures_load_have_words_and_keep_their_shape(tab)
        if document in PAGES:
            verdicts_of_the_notebook_are_on_the_page(tab, PAGES[document])
            the_answer_and_its_figure_come_first(tab, PAGES[document])
        for name in (name for name, shown in EXPLORERS.items() if shown == document):
            explorer_answers(tab, name)
        it_fits_a_phone_in_the_dark(tab)


# Pictures that are shown wider or higher than they were made, by more than two dots; a card's are fitted into it.
SQUEEZED = """all => all.filter(i => i.clientHeight && getComputedStyle(i).objectFit === 'fill').filter(i => {
    const style = getComputedStyle(i), inside = side => parseFloat(style[`padding${side}`]);
    const width = i.clientWidth - inside('Left') - inside('Right'), height = i.clientHeight - inside('Top') - inside('Bottom');
    return Math.abs(width * i.naturalHeight / i.naturalWidth - height) > 2;
}).map(i => i.getAttribute('src'))"""
PICTURES = "all => all.map(i => [i.getAttribute('src'), i.getAttribute('alt') || '', i.complete && i.naturalWidth > 0])"
FIRST_FIGURE = """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
    done(document.querySelector('article img').getBoundingClientRect().top + scrollY))))"""


def pictures_load_have_words_and_keep_their_shape(tab):
    for source, alt, loaded in tab.locator("article img").evaluate_all(PICTURES):
        assert loaded, f"{source} does not load"
        assert len(alt) > 15 and not alt.startswith(("../", "_images")), f"{source} has no alt text"
    assert tab.locator("article img").evaluate_all(SQUEEZED) == [], "pictures are out of shape"


def verdicts_of_the_notebook_are_on_the_page(tab, page):
    shown = tab.locator("table.check td.verdict").all_inner_texts()
    measured, mine = claims.measured_in(page.name), claims.of_page(page.name)
    for text, (name, record) in zip(shown, measured.items(), strict=True):  # recorded rows say when and at what cost
        assert text.split(" (")[0] == claims.word(mine[name], verdicts.verdict(mine[name], record))
        assert "(recorded" in text or record["verdict"] != "recorded"
    assert tab.locator("table.check").evaluate_all("all => all.map(t => t.id)") == list(measured)
    assert {f"#{name}" for name in mine} <= set(tab.locator("a.claim-link").evaluate_all("all => all.map(a => a.hash)"))
    assert tab.locator(".at-a-glance a.download").count() == 2


def the_answer_and_its_figure_come_first(tab, page):
    assert "```{answer}" in TEXTS[f"book/{page.name}"], "the page opens with a short answer"
    for screen, limit in ((SCREEN, 1000), (PHONE, 1800)):
        tab.set_viewport_size(screen)
        assert tab.evaluate(FIRST_FIGURE) < limit, f"the first figure is too far down at {screen['width']} px"
    tab.set_viewport_size(SCREEN)


def it_fits_a_phone_in_the_dark(tab):
    tab.emulate_media(color_scheme="dark")
    tab.set_viewport_size(PHONE)
    until(tab, f"document.documentElement.dataset.theme == 'dark' && innerWidth <= {PHONE['width']}")
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"] + 1, "the page scrolls sideways on a phone"
    assert tab.locator("article img").evaluate_all(SQUEEZED) == [], "pictures are out of shape on a phone"


def test_these_tests_can_fail(chromium, book, tmp_path):
    """A page that asks the network and has an error, and a picture out of shape."""
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.2:9/x.png' alt='x'><script>undefinedFunction()</script>")
    with pytest.raises(AssertionError, match=r"(?s)outside request.*undefinedFunction"), visit(chromium, bad):
        pass
    with visit(chromium, book / "book" / "deep_linear" / "modes.html") as tab:
        tab.add_style_tag(content="article .cell_output img { height: 30px !important }")
        assert tab.locator("article img").evaluate_all(SQUEEZED)


def arrive(tab, link):
    """Click on a link to a row: the row is there, once, and on the screen."""
    with tab.expect_navigation():
        link.click()
    name = tab.evaluate("location.hash").removeprefix("#")
    assert tab.locator(f"table.check[id='{name}'] td.verdict").count() == 1
    until(tab, "() => document.querySelector(location.hash).getBoundingClientRect().top < innerHeight")


def test_the_front_page_leads_to_every_main_result_and_on_to_the_book(chromium, book):
    main = [claim.id for claim, _ in verdicts.rows(BOOK) if claim.rank == "main"]
    with visit(chromium, book / "book" / "intro.html") as tab:
        targets = tab.locator(".paper-card li a.claim-link").evaluate_all("all => all.map(a => a.href.split('#')[1])")
        assert sorted(targets) == sorted(main)
        words = tab.locator(".paper-card li").all_inner_texts()
        assert all(re.match(r"(✓ holds|◐ in part|✗ does not hold|\? undetermined)", text) for text in words)
        assert "Code: MIT. Text and figures: CC BY 4.0." in tab.locator(".bd-footer-content").inner_text()
        assert "/book/deep_linear/" in tab.locator("a.right-next").evaluate("link => link.href")
        pictures = tab.locator(".paper-card .paper-figure img").evaluate_all("all => all.map(one => one.naturalWidth)")
        assert len(pictures) == tab.locator(".paper-card").count() >= 5 and min(pictures) > 100
        arrive(tab, tab.locator(".paper-card li a.claim-link").first)


def test_the_front_page_leads_to_figure_5_of_the_neural_race_and_to_the_verdict_on_it(chromium, book):
    with visit(chromium, book / "book" / "intro.html") as tab:
        with tab.expect_navigation():
            tab.locator(".paper-card > p a", has_text="Neural Race").click()
        line = tab.locator("table.figure-index tr", has=tab.locator("th", has_text=re.compile(r"^Fig\. 5"))).first
        with tab.expect_navigation():
            line.locator("td").first.locator("a").first.click()
        assert tab.locator(tab.evaluate("location.hash") + " img").count() == 1
        until(tab, "() => document.querySelector(location.hash).getBoundingClientRect().top < innerHeight")
        tab.go_back()
        line.locator("summary").click()
        arrive(tab, line.locator("details li a").first)


def test_search_finds_a_page(chromium, book):
    with visit(chromium, book / "search.html") as tab:
        tab.goto((book / "search.html").as_uri() + "?q=sigmoid")
        tab.wait_for_selector("ul.search li a")
        assert any("modes.html" in link for link in tab.locator("ul.search li a").evaluate_all("all => all.map(a => a.href)"))


def test_the_scoreboard_can_be_filtered_and_the_filter_is_in_the_address(chromium, book):
    board, left = book / "book" / "scoreboard.html", "n => document.querySelectorAll('li.card-row:not([hidden])').length == n"
    race = [claim for claim, _ in verdicts.rows(BOOK, ["neural_race"])]
    ours = [claim for claim in race if verdicts.group(claim) == "finding"]
    with visit(chromium, board) as tab:
        every_square_and_every_card_lands_on_its_row(tab, book)
        tab.select_option("[name=paper]", "neural_race")
        until(tab, left, len(race))
        tab.select_option("[name=kind]", "finding")
        until(tab, left, len(ours))
        until(tab, "words => document.querySelector('.board-count').innerText.includes(words)", f"{len(ours)} claim")
        assert tab.locator("li.card-row:not([hidden])").first.is_visible()
        until(tab, "['paper=neural_race', 'kind=finding'].every(words => location.search.includes(words))")
        tab.click("button[type=reset]")
        until(tab, "document.querySelectorAll('li.card-row[hidden]').length == 0")
        tab.fill("[name=words]", f"row-{race[0].id}")
        until(tab, left, 1)
        tab.goto(board.as_uri() + "?paper=neural_race&kind=finding")
        until(tab, left, len(ours))


def every_square_and_every_card_lands_on_its_row(tab, book):
    there = {f"{document}.html": set(claims.measured_in(page.name)) for document, page in PAGES.items()}
    squares = tab.locator("a.square").evaluate_all("all => all.map(a => a.href)")
    cards = tab.locator("li.card-row .statement > a").evaluate_all("all => all.map(a => a.href)")
    ranks = [claim.rank for claim, _ in verdicts.rows(BOOK)]
    assert len(cards) == len(ranks) and len(squares) == len(ranks) - ranks.count("check")
    for target in squares + cards:
        page, _, name = target.removeprefix(f"{book.as_uri()}/").partition("#")
        assert name in there[page], f"{target} leads to no row"


def test_without_scripts_everything_is_there(chromium, book):
    """The scoreboard without a filter, and instead of an explorer a picture with a caption."""
    with visit(chromium, book / "book" / "scoreboard.html", java_script_enabled=False) as tab:
        assert tab.locator("form.board-filter").is_hidden() and tab.locator("details.board").count() == len(claims.papers())
    with visit(chromium, book / f"{EXPLORERS['routing']}.html", java_script_enabled=False) as tab:
        figure = tab.locator("figure.explorer")
        assert figure.locator(".explorer-static img").is_visible() and len(figure.locator("figcaption").inner_text()) > 60
        assert figure.locator(".explorer-stage").is_hidden() and figure.locator(".explorer-says").is_hidden()


def test_a_row_can_be_cited_and_a_figure_enlarges(chromium, book):
    with visit(chromium, book / "book" / "deep_linear" / "modes.html") as tab:
        name = tab.locator("table.check").first.get_attribute("id")
        tab.locator("table.check button.cite").first.click()
        assert f"#{name}" in tab.locator("dialog.racing-dialog pre").inner_text()
        tab.keyboard.press("Escape")
        tab.locator("dialog.racing-dialog").wait_for(state="detached")  # the dialog hears of its end a moment later
        tab.locator("article figure:not(.explorer) img").first.click()
        tab.locator("dialog.racing-dialog img.large").wait_for(state="visible")


def test_no_dead_link_and_no_launch_button_without_an_address(book):
    for path in (book / "book").glob("**/*.html"):
        text = path.read_text(encoding="utf-8")
        assert "colab.research" not in text and "mybinder" not in text
        for target in re.findall(r'<a [^>]*href="([^"#?:]+)(?:#[^"]*)?"', text):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


# Explorers: what they compute is held against lib in tests/ext/test_explorers.py.
SLIDERS, PLOTS = "figure.explorer .noUi-handle", "figure.explorer [role=img]"


def come_near(tab):
    """Scroll to the explorer and wait until it is alive and has stood in the same place for 0.3 seconds."""
    figure, places = tab.locator("figure.explorer"), []
    figure.scroll_into_view_if_needed()
    tab.wait_for_selector("figure.explorer-live")
    while len(places) < 4 or any(place != places[-1] for place in places[-4:]):
        tab.wait_for_timeout(100)
        places.append(figure.bounding_box())


def in_first_plot(tab, right, down):
    """A point of the explorer's first plot, by fractions of its width and height."""
    box = tab.locator(PLOTS).first.bounding_box()
    return box["x"] + right * box["width"], box["y"] + down * box["height"]


def explorer_answers(tab, name):
    """It stands on its page, has names for those who cannot see it, answers to keys, and follows the theme's switch."""
    come_near(tab)
    assert tab.locator(".explorer-static").is_hidden() and len(tab.locator(".explorer-says").inner_text()) > 40
    for wanted in (SLIDERS, PLOTS):
        labels = tab.locator(wanted).evaluate_all("all => all.map(one => one.getAttribute('aria-label') || '')")
        assert labels and all(len(label) > 2 for label in labels), "sliders and plots have names for those who cannot see them"
    until(tab, f"() => !Explorers.running('{name}')")
    said = tab.locator(".explorer-says").inner_text()
    tab.locator(SLIDERS).first.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowLeft")
    until(tab, "before => document.querySelector('.explorer-says').textContent !== before", said)
    models = f"[...Object.values(Explorers.models('{name}'))[0].document.all_models]"
    colours = f"() => {models}.flatMap(m => m.axis_label_text_color || [])"
    light = tab.evaluate(colours)
    tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    until(tab, f"light => light.length && ({colours})().every(colour => !light.includes(colour))", light)
    tab.evaluate("document.documentElement.dataset.theme = 'light'")


def test_all_pages_are_in_the_table_of_contents_and_seven_have_an_explorer_whose_library_the_others_do_not_load(book):
    assert set(PAGES) <= set(DOCUMENTS)
    assert len(EXPLORERS) == len(set(EXPLORERS.values())) >= 7
    for document in DOCUMENTS:
        text = (book / f"{document}.html").read_text(encoding="utf-8")
        assert text.count("bokeh.min.js") == (document in EXPLORERS.values()), document


def test_a_route_is_chosen_by_click_touch_and_keys_and_a_curve_is_drawn(chromium, book):
    trained = "Explorers.models('routing').cells.data.mark.filter(mark => mark === '').length"
    with visit(chromium, book / f"{EXPLORERS['routing']}.html") as tab:
        come_near(tab)
        before = tab.evaluate(trained)
        tab.mouse.click(*in_first_plot(tab, 0.55, 0.12))  # a cell of the upper row that is not trained
        until(tab, f"number => {trained} === number", before + 1)
        tab.locator(PLOTS).first.focus()
        for key in ("ArrowDown", "Space"):
            tab.keyboard.press(key)
        until(tab, f"number => {trained} === number", before)
    with visit(chromium, book / f"{EXPLORERS['routing']}.html", **TOUCH) as tab:
        tab.set_viewport_size(PHONE)
        come_near(tab)
        tab.locator(PLOTS).first.evaluate("plot => plot.scrollIntoView({block: 'center'})")
        tab.touchscreen.tap(*in_first_plot(tab, 0.55, 0.12))
        until(tab, f"number => {trained} === number", before + 1)
    with visit(chromium, book / f"{EXPLORERS['kinks']}.html", **TOUCH) as tab:
        come_near(tab)
        assert not tab.evaluate("Explorers.running('kinks')"), "nothing moves for readers who do not want it"
        tab.mouse.move(*in_first_plot(tab, 0.4, 0.4))
        tab.mouse.down()
        tab.mouse.move(*in_first_plot(tab, 0.8, 0.4), steps=8)
        tab.mouse.up()
        drawn = "Array.from(Explorers.models('kinks').target.data.y).slice(40, 60)"  # a straight line, drawn over the wave
        until(tab, f"() => Math.max(...{drawn}) - Math.min(...{drawn}) < 1e-6 && 0 < {drawn}[0] && {drawn}[0] < 1")
