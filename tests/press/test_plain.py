"""The book's directives as plain Markdown, and back."""

import re

import pytest

from lib.press import claims, pages
from lib.press.notebooks import plain

PAGES = pages.every()
RAW = re.compile(r"(?<!`)\{[a-z:]+\}`[^`]*`|^(?:```+|:::+)\{[a-z:-]+\}", re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_readable_and_comes_back_to_the_letter(page):
    notebook = pages.stored(page) or dict(pages.source(page))
    made = plain.notebook(page, notebook)
    for old, new in zip(notebook["cells"], made["cells"], strict=True):
        if old["cell_type"] == "markdown":
            assert plain.undress(new["source"]) == pages.text(old)
            shown = re.sub(r"<!--.*?-->", "", new["source"], flags=re.S)
            assert not RAW.findall(shown)
        else:
            assert old == new
    assert plain.natural(made) == {**notebook, "cells": made["cells"]}


def context(page="deep_linear/modes"):
    found = pages.find(page)
    return plain.Context(found, pages.stored(found))


def shown(text, page="deep_linear/modes"):
    return re.sub(r"<!--.*?-->", "", plain.dress(text, context(page)), flags=re.S).strip()


def test_directives_say_what_the_book_says():
    listed = shown("```{claims}\n```")
    assert listed.count("\n1. ") == len(claims.of_page("deep_linear/modes")) - 1
    assert "**reproduced**" in listed and "**slip in print**" in listed
    assert "| `hidden` | `50` | hidden units |" in shown("```{parameters}\n```")
    assert shown("```{glance}\n:paper: A paper {cite}`jarvis2025slowly`\n```").startswith(
        "> **Paper** A paper (Jarvis et al., 2025) · **Checks**"
    )
    assert "recorded" in shown("```{recorded}\n```", "neural_race/routing")
    answer = shown("````{answer} fig-modes-strengths\nIn {glue:text}`modes-seeds` networks, *yes*.\n````")
    assert re.fullmatch(r"> \*\*The short answer \(Figure \d shows it\)\.\*\* In 20 networks, \*yes\*\.", answer)
    assert shown("```{warning}\nTake care.\n\nReally.\n```") == "> **Warning.** Take care.\n>\n> Really."
    assert shown("```{explorer}\n```") == "*(The book shows its explorer here.)*"
    assert shown("```{math}\na = b\n```") == "$$\na = b\n$$"


def test_roles_say_what_the_book_says():
    assert shown("{glue:text}`modes-seeds` networks, Eq. {eq}`eq-modes-sigmoid`") == "20 networks, Eq. (3)"
    assert (
        shown("{doc}`the race <../neural_race/routing>`, {doc}`modes`") == "the race, How does a linear network learn in stages?"
    )
    assert shown("the `{recorded}` box and `{claims}`") == "the `{recorded}` box and `{claims}`"
    assert shown("{cite:t}`saxe2014exact`, {cite}`nobody2000`") == "Saxe et al., 2014, (nobody2000)"
    assert shown("$$\na\n$$ (eq-modes-svd)") == "$$\na\n$$ (1)"


def test_what_is_typed_beside_a_directive_stays():
    text = "Before.\n\n```{claims}\n```\n\nAfter {glue:text}`modes-seeds`."
    dressed = plain.dress(text, context())
    edited = dressed.replace("Before.", "Long before.").replace("<!-- /book -->", "<!-- /book --> right behind")
    assert plain.undress(edited) == "Long before.\n\n```{claims}\n```\n\nright behind\n\nAfter {glue:text}`modes-seeds`."
    assert plain.undress(dressed.replace("<!-- book:", "right before<!-- book:")).startswith(
        "Before.\n\nright before\n\n```{claims}"
    )
    assert plain.undress(dressed.replace("**reproduced**", "**refuted**")) == text  # what is generated is not for editing
