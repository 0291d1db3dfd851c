"""What a plan of EXPLAIN (FORMAT JSON) sorts with."""

import measure
from results import GPUSORT

SORTS = (GPUSORT, "Sort", "Incremental Sort")


def _name(node):
    return node.get("Custom Plan Provider", node["Node Type"])


def _nodes(node):
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


def title(node):
    """The nodes of a plan, without sequential scans: A > B of a node and its child, A (B, C) of a node with two."""
    children = [text for text in map(title, node.get("Plans", [])) if text]
    name = _name(node)
    if not children:
        return "" if name == "Seq Scan" else name
    return f"{name} > {children[0]}" if len(children) == 1 else f"{name} ({', '.join(children)})"


def _sort(node):
    reason = node.get("Fallback Reason") or node.get("Device Not Used")
    if reason:
        return f"{_name(node)} {node['Engine']} ({reason})"
    return " ".join(filter(None, [_name(node), node.get("Engine"), node.get("Sort Method")]))


def sorts(node):
    """The sorts of a plan that was executed, their engines and methods."""
    return ", ".join(dict.fromkeys(_sort(node) for node in _nodes(node) if _name(node) in SORTS))


def why_kept(session, sql, node):
    """Why gpusort does not sort in a plan, or not everywhere; "" if it does."""
    names = {_name(node) for node in _nodes(node)}
    if names.isdisjoint(SORTS):
        return "no Sort in the plan"
    if "Sort" in names:
        return measure.why_kept(session, sql)
    return "Incremental Sort" if "Incremental Sort" in names else ""
