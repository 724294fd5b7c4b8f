"""The press: everything that makes a book out of pages, and nothing of the science.

`claims` and verdicts, `parameters` and `pages` with their freshness, the `environment` that they need,
`offline`, `plots`. What is wrong is a sentence: `errors` are its kinds, `files` and `schema` check what is read and written,
`terminal` prints it. Rooms of its own: `verdicts` (rows, intervals, what counts, other seeds), `workbench` (runs, sweeps,
commands), `clusters` (where sweeps run), `notebooks` (pages in Jupyter), `reports` (runs to look at), `bindery`
(building, preview, checks, new pages), `trials` (planted errors), `bench` (fast beside plain), `explorers` (figures that
compute in the reader's browser) and `rendering` (Sphinx directives, reference).

    from lib.press import claims, pages, parameters
    for page in pages.every()[:3]:
        checked = claims.of_page(page.name)
        print(page.name, len(checked), "claims,", len(parameters.of_page(page.markdown)), "parameters")
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "errors": (),
        "terminal": (),
        "files": (),
        "schema": (),
        "claims": (),
        "pages": (),
        "parameters": (),
        "environment": (),
        "offline": (),
        "plots": (),
        "verdicts": (),
        "workbench": (),
        "clusters": (),
        "notebooks": (),
        "reports": (),
        "bindery": (),
        "trials": (),
        "bench": (),
        "explorers": (),
        "rendering": (),
    },
)
