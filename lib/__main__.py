"""The command line: `python -m lib book`, `test`, `run`, …; sets up the environment first.

What runs before the environment is set up must also parse on old interpreters, which then get a sentence.
"""

import sys


def main(arguments=None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    from lib.press import environment

    try:
        environment.ensure(arguments)
    except environment.Missing as problem:
        print(problem, file=sys.stderr)
        return 2
    from lib.press.workbench import commands

    return commands.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
