"""One index build or CLUSTER: its time, and who sorted."""

import re

from server import Failure

CLOCK = "SELECT extract(epoch FROM clock_timestamp())"


def timed(session, sql):
    """Runs a statement and its commit; returns the elapsed seconds of the server, and what it said."""
    answer = session.run(f"{CLOCK}; {sql}; {CLOCK}").split("\n")
    times = [line for line in answer if re.fullmatch(r"\d{9,}\.\d+", line)]
    return float(times[1]) - float(times[0]), "\n".join(line for line in answer if line not in times)


def left_reason(notice):
    """Why gpusort left an index or a table to PostgreSQL; "" if it sorted.  By the NOTICE of gpusort.debug_plan."""
    said = re.search(r"NOTICE: +(?:building index|clustering table|validating index) \"\w+\" (?:with gpusort|without gpusort\s+DETAIL: +(.*)\.)", notice)
    if not said:
        raise Failure(f"gpusort was not asked: {notice or 'it said nothing'}")
    return said.group(1) or ""


def jobs(session):
    """How many sorts gpusortd has begun."""
    return int(session.run("SELECT coalesce(sum(jobs + jobs_done), 0) FROM gpusort_service_status()"))
