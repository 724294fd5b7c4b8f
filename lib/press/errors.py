"""What a person at the terminal is told when something is wrong."""


class Problem(Exception):
    """Something wrong that one sentence explains; every command prints that sentence and ends with `status`."""

    status = 2


class ClaimError(Problem):
    """A claim that is unknown, ill-formed, checked on the wrong page, or measured as something it cannot be."""


class ParameterError(Problem, ValueError):
    """A parameter that does not exist, has the wrong type, or lies outside its range."""


class PageError(Problem):
    """A page that does not exist, cannot be read or does not run."""


class RunError(Problem):
    """A run that cannot start or did not finish."""
