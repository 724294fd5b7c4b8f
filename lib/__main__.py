"""The command line: `python -m lib book`, `test`, `run`, …; sets up the environment first."""

import sys


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    from lib import environment

    try:
        environment.ensure(arguments)
    except environment.Missing as problem:
        print(problem, file=sys.stderr)
        return 2
    from lib import commands

    return commands.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
