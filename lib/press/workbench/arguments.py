"""Values that several commands take: a whole number, a number of seconds, a port."""

import argparse


def positive(text: str) -> int:
    """A whole number above zero."""
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number above zero, not '{text}'")
    return int(text)


def duration(text: str) -> float:
    """A number of seconds above zero."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 1e9:
        raise argparse.ArgumentTypeError(f"a number of seconds above zero, not '{text}'")
    return seconds


def port(text: str) -> int:
    """A port of this machine: 1 to 65535, or 0 for any that is free."""
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port from 1 to 65535, not '{text}'")
    return int(text)
