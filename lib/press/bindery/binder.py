"""`python -m lib.press.bindery.binder build …`: the command `jupyter-book`, for `building`, which may have it in a fork."""

import gc
import sys
import warnings

if __name__ == "__main__":
    gc.set_threshold(200_000, 20, 100)  # fewer looks for garbage
    sys.modules.setdefault("rfc3987_syntax", None)  # a grammar that JupyterLab brings, see lib/__main__.py
    warnings.simplefilter("ignore")
    from jupyter_book.cli.main import main

    main()
