"""The indexes, and the table for the one with rows in order."""

from collections import namedtuple

import documents
import table
from server import Session
from table import ICU, LIBC, TABLE

INDEX = "built"

# Rows as long as those of TABLE, in the order of o.  Those are written by several sessions at once.
ORDERED_TABLE = "ordered_rows"

# collation, extension: one that the server may not have; the index is then left out.
Index = namedtuple("Index", "key columns table unique collation concurrently extension",
                   defaults=(TABLE, False, None, False, None))

BTREES = [
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
    Index("concurrently", "(b)", concurrently=True),
    Index("concurrently-textC", "(c)", concurrently=True),
]

GIN = [
    Index("gin-array", "USING gin (a)", documents.TABLE),
    Index("gin-tsvector", "USING gin (v)", documents.TABLE),
    Index("gin-jsonb", "USING gin (j jsonb_path_ops)", documents.TABLE),
    Index("gin-trigram", "USING gin (t gin_trgm_ops)", documents.TABLE, extension=documents.EXTENSION),
]

INDEXES = BTREES + GIN

# Those also built with less maintenance_work_mem than they need.
EXTERNAL = ["bigint", "textC"]
EXTERNAL_MEMORY = "64MB"

BYTES_PER_ROW = {TABLE: table.BYTES_PER_ROW, ORDERED_TABLE: table.BYTES_PER_ROW, documents.TABLE: 1000}

# What an entry may take while it is sorted, by either side.
BYTES_PER_ENTRY = 1024

# PostgreSQL takes no worker that gets less.
BYTES_PER_WORKER = 32 << 20


def by_key(key):
    return next(index for index in INDEXES if index.key == key)


def create(index, rows):
    unique, concurrently = "UNIQUE " * index.unique, "CONCURRENTLY " * index.concurrently
    return f"CREATE {unique}INDEX {concurrently}{INDEX} ON {index.table}_{rows} {index.columns}"


def fill(server, rows, keys):
    """Makes the tables of these keys, one after the other: each is written by several sessions."""
    fillers = {TABLE: table.fill, ORDERED_TABLE: fill_ordered, documents.TABLE: documents.fill}
    names = dict.fromkeys(by_key(key).table for key in keys)
    for name in names:
        fillers[name](server, rows)
    return [f"{name}_{rows}" for name in names]


def fill_ordered(server, rows):
    name = f"{ORDERED_TABLE}_{rows}"
    with Session(server) as session:
        session.run(f"CREATE UNLOGGED TABLE {name} WITH (autovacuum_enabled = off) AS "
                    f"SELECT g AS o, repeat('-', 129) AS pad FROM generate_series(1::int8, {rows}) AS g")
        session.run(f"VACUUM (FREEZE, ANALYZE) {name}")
