"""JupyterLab's way to the book's files: a page opens readable, and what is saved there goes to its notebook and its .md alike.

Derived from jupytext's contents manager, which serves all other files. A page is opened as `plain` shows it; saved, it gets its
directives back, its .md changes by no more than was edited (`pairing.carried`), and what somebody else changed in the .md
meanwhile is never overwritten. Only JupyterLab imports this module: its packages are a set of their own.
"""

from pathlib import Path

from jupyter_server.services.contents.filecheckpoints import FileCheckpoints
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupytext import TextFileContentsManager
from nbformat import from_dict
from tornado.web import HTTPError

from lib.press import pages
from lib.press.errors import PageError
from lib.press.notebooks import pairing


class Checkpoints(FileCheckpoints):
    """Checkpoints in _build, where no one takes them for pages."""

    def checkpoint_path(self, checkpoint_id: str, path: str) -> str:
        """Where the checkpoint of a file lies."""
        folder = Path(self.root_dir) / "_build" / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        name = Path(path.strip("/").replace("/", "--"))
        return str(folder / f"{name.stem}-{checkpoint_id}{name.suffix}")


class Contents(TextFileContentsManager):
    """jupytext's contents manager, with an eye on the book's pages."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.agreed: dict[str, str] = {}  # page -> digest of what its .md said when Lab last read or wrote it

    def _checkpoints_class_default(self) -> type:
        return Checkpoints

    def page_of(self, path: str) -> pages.Page | None:
        """The page that a path names, by its .md or its .ipynb; None for every other file."""
        root = Path(self.root_dir).resolve()
        file = root / path.strip("/")
        if file.suffix not in (".md", ".ipynb") or not file.is_relative_to(root / "book"):
            return None
        name = file.relative_to(root / "book").with_suffix("").as_posix()
        return next((page for page in pages.every(root) if page.name == name), None)

    def get(self, path: str, content: bool = True, type: str | None = None, format: str | None = None, **more) -> dict:
        """A file; a page's notebook as `pairing.opened` makes it."""
        page = self.page_of(path) if content and type in (None, "notebook") and (type or path.endswith(".ipynb")) else None
        if page is None:
            return super().get(path, content=content, type=type, format=format, **more)
        try:
            notebook, self.agreed[page.name] = pairing.opened(page)
        except PageError as error:
            raise HTTPError(409, str(error), reason=str(error)) from None
        model = LargeFileManager.get(self, path, content=False, **more)
        made = from_dict(notebook)
        self.mark_trusted_cells(made, path)
        return model | {"type": "notebook", "format": "json", "mimetype": None, "content": made}

    def save(self, model: dict, path: str = "") -> dict:
        """Save a file; of a page, both of the pair."""
        page = self.page_of(path) if model.get("type") == "notebook" else None
        if page is None:
            return super().save(model, path)
        made = from_dict(model["content"])
        self.check_and_sign(made, path)
        try:
            self.agreed[page.name] = pairing.saved(page, made, self.agreed.get(page.name))
        except PageError as error:
            raise HTTPError(409, str(error), reason=str(error)) from None
        saved = LargeFileManager.get(self, path, content=False)
        return saved | {"type": "notebook"}
