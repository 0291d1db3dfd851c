"""Command line options, and their types."""

import argparse
import time


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


def add_warm_memory(parser):
    parser.add_argument("--no-warm-memory", dest="warm_memory", action="store_false",
                        help="leave out what keeps the host's memory management out of the figures")


def add_output(parser, folder):
    parser.add_argument("--name", default=time.strftime("%Y%m%d-%H%M%S"), help="of the files (default the time)")
    parser.add_argument("--out", metavar="FOLDER", default=folder)
    parser.add_argument("--temp", metavar="FOLDER", help="where the throw-away cluster goes")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless all that must be reached is")
