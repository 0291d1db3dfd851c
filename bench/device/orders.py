"""The orders, and how to check a result."""

from collections import namedtuple

from table import ICU, LIBC, TABLE

# collation: one that the server may not have; the query is then left out.
Query = namedtuple("Query", "name columns order collation", defaults=(None,))

QUERIES = [
    Query("b", "*", "b"),
    Query("a", "*", "a"),
    Query("f", "*", "f"),
    Query("u", "*", "u"),
    Query("c", "*", "c"),
    Query("d,b", "*", "d, b"),
    Query("d desc,a,c", "*", "d DESC, a, c"),
    Query("d desc,n,c", "*", "d DESC, n, c"),
    Query("icu", "*", "ti", ICU),
    Query("libc", "*", f'ti COLLATE "{LIBC}"', LIBC),
    Query("ts", "*", "ts"),
    Query("b alone", "b", "b"),
]

# Of the two that bars are set for.
BARS = ["b", "d,b"]

# Those sorted with workers.
PARALLEL = ["b", "c", "d desc,n,c"]

SWEEP_SIZES = [10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000]


def by_name(name):
    return next(query for query in QUERIES if query.name == name)


def statement(query, rows, ordered=True):
    return f"SELECT {query.columns} FROM {TABLE}_{rows}" + (f" ORDER BY {query.order}" if ordered else "")


def order_check(query, rows):
    """SQL for the number of rows, how many come before one that is less, and a sum over their contents."""
    return (f"SELECT count(*), count(*) FILTER (WHERE key < before), sum(contents) FROM (SELECT s.{query.order} AS key,"
            f" lag(s.{query.order}) OVER () AS before, hash_record_extended(s, 0) AS contents"
            f" FROM ({statement(query, rows)} OFFSET 0) s) x")


def contents(rows):
    """The expected result of order_check()."""
    return f"SELECT count(*), 0, sum(hash_record_extended(s, 0)) FROM {TABLE}_{rows} s"
