"""Types of command line options."""

import argparse


def count(text):
    """A number, 10k and 5m among them."""
    number = int(float(text.lower().replace("k", "e3").replace("m", "e6")))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not at least 1")
    return number


def counts(text):
    """Numbers, in ascending order."""
    return sorted({count(item) for item in text.split(",")})


def names(allowed, separator=","):
    """A list of some of these."""
    def parse(text):
        chosen = text.split(separator)
        for name in chosen:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {f'{separator} '.join(allowed)}")
        return chosen
    return parse
