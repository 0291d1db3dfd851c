"""The table measured, the orders asked for, and how the table is filled."""

import os
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from server import Session

TABLE = "device_rows"

# collation: one that the server may not have; the query is then left out.
Query = namedtuple("Query", "name columns order collation", defaults=(None,))

ICU = "en-x-icu"
LIBC = "en_US.utf8"

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

BYTES_PER_ROW = 190


def by_name(name):
    return next(query for query in QUERIES if query.name == name)


def statement(query, rows, ordered=True):
    return f"SELECT {query.columns} FROM {TABLE}_{rows}" + (f" ORDER BY {query.order}" if ordered else "")


def has_collation(session, name):
    return session.run(f"SELECT 1 FROM pg_collation WHERE collname = '{name}'") == "1"


def order_check(query, rows):
    """SQL for the number of rows, how many come before one that is less, and a sum over their contents."""
    return (f"SELECT count(*), count(*) FILTER (WHERE key < before), sum(contents) FROM (SELECT s.{query.order} AS key,"
            f" lag(s.{query.order}) OVER () AS before, hash_record_extended(s, 0) AS contents"
            f" FROM ({statement(query, rows)} OFFSET 0) s) x")


def contents(rows):
    """What order_check() should give."""
    return f"SELECT count(*), 0, sum(hash_record_extended(s, 0)) FROM {TABLE}_{rows} s"


def _hash(seed):
    return f"hashint8extended(g, {seed})"


def _hex(seed):
    return f"lpad(to_hex({_hash(seed)}), 16, '0')"


COLUMNS = [
    ("a int4", f"({_hash(1)} >> 32)::int4"),
    ("b int8", _hash(2)),
    ("f float8", f"{_hash(3)} / 1e6::float8"),
    ("n numeric(14,2)", f"({_hash(4)} >> 24)::numeric / 100"),
    ('c text COLLATE "C"', _hex(5)),
    ('ti text COLLATE "{icu}"', f"translate(substr({_hex(6)}, 1, 12), '0123456789', 'ghijklmnop')"),
    ("u uuid", f"({_hex(7)} || {_hex(8)})::uuid"),
    ("ts timestamptz", f"timestamptz '2000-01-01 00:00+00' + ({_hash(9)} >> 14) * interval '1 microsecond'"),
    ("d date", f"date '2010-01-01' + (({_hash(10)} & 2147483647) % 3000)::int"),
    ("pad text", "repeat('-', 40)"),
]


def fill(server, rows):
    """Makes the table of so many rows, by as many sessions as there are processors."""
    name = f"{TABLE}_{rows}"
    nsessions = min(os.cpu_count(), 16)
    bounds = [rows * i // nsessions for i in range(nsessions + 1)]
    with Session(server) as session:
        icu = ICU if has_collation(session, ICU) else "C"
        columns = ", ".join(column for column, _ in COLUMNS).format(icu=icu)
        session.run(f"CREATE UNLOGGED TABLE {name} ({columns}) WITH (autovacuum_enabled = off)")

    def insert(first, last):
        with Session(server) as session:
            session.run(f"INSERT INTO {name} SELECT {', '.join(value for _, value in COLUMNS)} "
                        f"FROM generate_series({first + 1}::int8, {last}) AS g")

    with ThreadPoolExecutor(nsessions) as pool:
        list(pool.map(insert, bounds, bounds[1:]))
    with Session(server) as session:
        session.run(f"VACUUM (FREEZE, ANALYZE) {name}")


def copy(session, rows, from_rows):
    """Makes a table of the first rows of a larger one, if it is not there."""
    name = f"{TABLE}_{rows}"
    if session.run(f"SELECT to_regclass('{name}') IS NULL") == "t":
        session.run(f"CREATE UNLOGGED TABLE {name} AS SELECT * FROM {TABLE}_{from_rows} LIMIT {rows}")
        session.run(f"VACUUM (FREEZE, ANALYZE) {name}")
