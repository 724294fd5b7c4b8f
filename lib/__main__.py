"""The command line: `python -m lib book`, `test`, `run`, ...; sets up the environment first.

What runs before the environment is set up must also parse on old interpreters, which then get a sentence: this file
even on Python 2.
"""

import sys

NEEDED = (3, 11)


def main(arguments=None):
    """The status of a command, with which the process ends."""
    if sys.version_info < NEEDED:  # whoever starts this may have an older one
        this = sys.version.split()[0]
        sys.stderr.write("Python 3.11 or newer is needed, this is %s: run `python3.11 -m lib ...`.\n" % this)  # noqa: UP031
        return 2
    from lib.press import terminal

    return terminal.guarded(lambda: start(sys.argv[1:] if arguments is None else arguments))


def start(arguments):
    """Set up what is needed, then hand over to the commands."""
    from lib.press import environment

    environment.ensure(arguments)
    # JupyterLab brings this grammar of addresses, which takes 1.2 seconds to load wherever notebooks are read; nobody asks it.
    sys.modules.setdefault("rfc3987_syntax", None)
    from lib.press.workbench import commands

    return commands.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
