"""A benchmark on a temporary server, with a time limit."""

import os
import signal
import sys
import time

from report import REACHED
from server import Failure

# What a run may take that began in time, by default.
GRACE_SECONDS = 60


class OutOfTime(Exception):
    pass


class Deadline:
    def __init__(self, minutes, grace_seconds=GRACE_SECONDS):
        self.minutes = minutes
        self.grace_seconds = grace_seconds
        self.start = time.time()

    def elapsed(self):
        return time.time() - self.start

    def check(self):
        """Must be called before each run."""
        if self.elapsed() > self.minutes * 60:
            raise OutOfTime


def run(program, deadline, start_server, measure):
    """Measures on a temporary server, which is always stopped.  Returns the exit status."""
    def overdue(*_):
        raise Failure("a run did not end in time")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(int(deadline.minutes * 60) + deadline.grace_seconds)
    server = None
    status = 0
    try:
        server = start_server()
        measure(server)
    except OutOfTime:
        print(f"stopped after {deadline.minutes} minutes: what follows is of what was measured so far")
    except Failure as failure:
        print(f"{program}: {failure}", file=sys.stderr)
        status = 1
        if server and os.path.exists(server.log):
            print("".join(open(server.log, errors="replace").readlines()[-40:]), file=sys.stderr)
    finally:
        signal.alarm(0)
        if server:
            server.stop()
    return status


def tell(results, path, about):
    """Prints the report that the module results makes of the runs, and writes it.  Are all requirements reached?"""
    runs = results.read(path)
    text = results.markdown(runs, about)
    print(text)
    with open(os.path.splitext(path)[0] + ".md", "w") as file:
        file.write(text)
    return all(line.verdict == REACHED for line in results.asked(runs))
