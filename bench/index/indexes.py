"""The indexes, and the table for the one with rows in order."""

from collections import namedtuple

from server import Session
from table import ICU, LIBC, TABLE

INDEX = "built"

# Rows as long as those of TABLE, in the order of o.  Those are written by several sessions at once.
ORDERED_TABLE = "ordered_rows"

# collation: one that the server may not have; the index is then left out.
Index = namedtuple("Index", "key columns table unique collation", defaults=(TABLE, False, None))

INDEXES = [
    Index("bigint", "(b)"),
    Index("in-order", "(o)", ORDERED_TABLE),
    Index("date366", "(y)"),
    Index("date", "(d)"),
    Index("textC", "(c)"),
    Index("uuid", "(u)"),
    Index("numeric", "(n)"),
    Index("textICU", "(ti)", collation=ICU),
    Index("textLibc", f'(ti COLLATE "{LIBC}")', collation=LIBC),
    Index("date-bigint", "(d, b)"),
    Index("unique", "(b)", unique=True),
    Index("include", "(c) INCLUDE (b)"),
]

# Those also built with less maintenance_work_mem than they need.
EXTERNAL = ["bigint", "textC"]
EXTERNAL_MEMORY = "64MB"

# What an entry may take while it is sorted, by either side.
BYTES_PER_ENTRY = 1024

# PostgreSQL takes no worker that gets less.
BYTES_PER_WORKER = 32 << 20


def by_key(key):
    return next(index for index in INDEXES if index.key == key)


def create(index, rows):
    return f"CREATE {'UNIQUE ' if index.unique else ''}INDEX {INDEX} ON {index.table}_{rows} {index.columns}"


def fill_ordered(server, rows):
    name = f"{ORDERED_TABLE}_{rows}"
    with Session(server) as session:
        session.run(f"CREATE UNLOGGED TABLE {name} WITH (autovacuum_enabled = off) AS "
                    f"SELECT g AS o, repeat('-', 129) AS pad FROM generate_series(1::int8, {rows}) AS g")
        session.run(f"VACUUM (FREEZE, ANALYZE) {name}")
