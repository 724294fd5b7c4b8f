"""Explorers: their JavaScript computes what `lib` computes, in a browser, to six digits; their documents are small and whole."""

import json
import math
from importlib import import_module

import numpy as np
import pytest
import torch
from explorers import EXPLORERS, bokeh_parts
from playwright.sync_api import sync_playwright

from lib import biases
from lib.book import pages
from lib.plots import COLOURS
from tests.ext import explorer_twins as twins

SCRIPTS = pages.ROOT / "book" / "_static" / "explorers"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


def module_of(name):
    return import_module(f"explorers.{name}")


CASES = [(name, number) for name, (settings, _) in twins.TWINS.items() for number in range(len(settings))]


@pytest.fixture(scope="module")
def tab(browser, tmp_path_factory):
    """An empty page, opened from the file system, with the numerics of all explorers."""
    own = [f"{name}.js" for name in ("numbers", "networks", *EXPLORERS)]
    page = tmp_path_factory.mktemp("explorers") / "page.html"
    page.write_text("".join(f'<script src="{(SCRIPTS / name).as_uri()}"></script>' for name in own))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=list(FLAGS))
        opened, problems = chromium.new_page(), []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.goto(page.as_uri())
        assert problems == []
        yield opened
        chromium.close()


def compare(name, theirs, ours):
    """Both are numbers, lists, or dicts of such; they agree to 1e-6 of one, or of themselves where they are larger."""
    if isinstance(ours, dict):
        assert set(theirs) >= set(ours), name
        for key in ours:
            compare(f"{name}.{key}", theirs[key], ours[key])
        return
    if ours is None or theirs is None:
        assert theirs is None and ours is None, name
        return
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    assert ours.shape == theirs.shape, name
    assert np.array_equal(np.isnan(ours), np.isnan(theirs)), name
    apart = np.nan_to_num(np.abs(ours - theirs) / np.maximum(1, np.abs(ours)))
    assert apart.max(initial=0) <= 1e-6, f"{name}: {apart.max():.2e} apart"


PLAIN = "value => JSON.stringify(value, (_, v) => ArrayBuffer.isView(v) ? Array.from(v) : Number.isNaN(v) ? 'NaN' : v)"


def computed(tab, name, setting):
    """What the explorer's script computes; typed arrays as lists, numbers that are none as NaN."""
    text = tab.evaluate(f"setting => ({PLAIN})(Explorers['{name}'].compute(setting))", setting)
    return json.loads(text, parse_constant=float) if '"NaN"' not in text else _numbers(json.loads(text))


def _numbers(value):
    if isinstance(value, dict):
        return {key: _numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numbers(inner) for inner in value]
    return math.nan if value == "NaN" else value


@pytest.mark.parametrize(("name", "number"), CASES)
def test_the_script_computes_what_lib_computes(tab, name, number):
    settings, expected = twins.TWINS[name]
    compare(name, computed(tab, name, settings[number]), expected(settings[number]))


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31 + 5])
def test_browser_and_book_draw_the_same_numbers(tab, seed):
    drawn = tab.evaluate(
        f"[Array.from(Explorers.generator({seed}).uniforms(50)), Array.from(Explorers.generator({seed}).normals(51))]"
    )
    assert drawn[0] == twins.uniforms(seed, 50).tolist()
    assert np.allclose(drawn[1], twins.normals(seed, 51), rtol=0, atol=1e-14)
    assert twins.uniforms(seed, 10, skip=40).tolist() == drawn[0][40:]


def test_biases_alone_learn_as_train_biases_does():
    """The explorer's Adam in double precision beside the library's training, which works in single precision."""
    (net, start), goal, steps = twins.frozen(16, 4), twins.target("wave"), 30
    ours, _ = twins.learned(net, start, goal, steps)
    frozen = biases.Frozen(net.w.float(), net.a.float())
    data = biases.PreActivations(frozen, twins.grid().float(), dtype="float32")
    how = {"batch": twins.KINKS_POINTS, "rate": twins.KINKS_RATE, "constant_rate": True, "loss": "squared"}
    theirs = biases.train_biases(frozen, data, goal[:, None].float(), epochs=steps, start=start.float(), **how)
    assert torch.allclose(theirs.bias.double(), ours, atol=1e-4)


@pytest.mark.parametrize("name", EXPLORERS)
def test_an_explorer_is_small_described_and_always_the_same(name):
    module = module_of(name)
    text = bokeh_parts.document(module.layout())
    assert len(text) < 100_000 and "</" not in text and text == bokeh_parts.document(module.layout())
    assert len(module.ABOUT) > 100 and ":" in module.__doc__
    scripts = [name, "numbers", "page", *getattr(module, "SCRIPTS", ())]
    assert len(text) + sum((SCRIPTS / f"{script}.js").stat().st_size for script in scripts) < 300_000
    assert name in twins.TWINS, "it is compared with lib"


def test_colours_keep_their_meaning_in_the_dark():
    both = bokeh_parts.palette()
    assert all(both["light"][name] == colour.lower() for name, colour in COLOURS.items())
    assert set(both["light"]) == set(both["dark"])
    for theme in both.values():
        assert len(set(theme.values())) == len(theme)


@pytest.mark.parametrize("name", EXPLORERS)
def test_on_paper_a_figure_of_its_page_stands_in_an_explorers_place(name):
    (page,) = [page for page in pages.all_pages() if f"{{explorer}} {name}\n" in page.markdown.read_text(encoding="utf-8")]
    assert EXPLORERS[name] in pages.figures(page)
