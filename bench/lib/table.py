"""The table of the benchmarks with a GPU, and how it is filled."""

import os
from concurrent.futures import ThreadPoolExecutor

from server import Session

TABLE = "device_rows"

ICU = "en-x-icu"
LIBC = "en_US.utf8"

BYTES_PER_ROW = 190


def has_collation(session, name):
    return session.run(f"SELECT 1 FROM pg_collation WHERE collname = '{name}'") == "1"


def _hash(seed):
    return f"hashint8extended(g, {seed})"


def _hex(seed):
    return f"lpad(to_hex({_hash(seed)}), 16, '0')"


# y takes no room: b is aligned.
COLUMNS = [
    ("a int4", f"({_hash(1)} >> 32)::int4"),
    ("y date", f"date '2024-01-01' + (({_hash(11)} & 2147483647) % 366)::int"),
    ("b int8", _hash(2)),
    ("f float8", f"{_hash(3)} / 1e6::float8"),
    ("n numeric(14,2)", f"({_hash(4)} >> 24)::numeric / 100"),
    ('c text COLLATE "C"', _hex(5)),
    ('ti text COLLATE "{icu}"', f"translate(substr({_hex(6)}, 1, 12), '0123456789', 'ghijklmnop')"),
    ("u uuid", f"({_hex(7)} || {_hex(8)})::uuid"),
    ("ts timestamptz", f"timestamptz '2000-01-01 00:00+00' + ({_hash(9)} >> 14) * interval '1 microsecond'"),
    ("d date", f"date '2010-01-01' + (({_hash(10)} & 2147483647) % 3000)::int"),
    ("g int4", f"({_hash(12)} & 2147483647) % 1000000"),
    ("pad text", "repeat('-', 36)"),
]


def fill_columns(server, name, columns, rows, storage="UNLOGGED"):
    """Makes a table of columns and their values for row g, by as many sessions as there are processors."""
    nsessions = min(os.cpu_count(), 16)
    bounds = [rows * i // nsessions for i in range(nsessions + 1)]
    with Session(server) as session:
        session.run(f"CREATE {storage} TABLE {name} ({', '.join(column for column, _ in columns)}) "
                    "WITH (autovacuum_enabled = off)")

    def insert(first, last):
        with Session(server) as session:
            session.run(f"INSERT INTO {name} SELECT {', '.join(value for _, value in columns)} "
                        f"FROM generate_series({first + 1}::int8, {last}) AS g")

    with ThreadPoolExecutor(nsessions) as pool:
        list(pool.map(insert, bounds, bounds[1:]))
    with Session(server) as session:
        session.run(f"VACUUM (FREEZE, ANALYZE) {name}")


def fill(server, rows):
    """Makes the table of so many rows."""
    with Session(server) as session:
        icu = ICU if has_collation(session, ICU) else "C"
    fill_columns(server, f"{TABLE}_{rows}", [(column.format(icu=icu), value) for column, value in COLUMNS], rows)


def copy(session, rows, from_rows):
    """Makes a table of the first rows of a larger one, if it is not there."""
    name = f"{TABLE}_{rows}"
    if session.run(f"SELECT to_regclass('{name}') IS NULL") == "t":
        session.run(f"CREATE UNLOGGED TABLE {name} AS SELECT * FROM {TABLE}_{from_rows} LIMIT {rows}")
        session.run(f"VACUUM (FREEZE, ANALYZE) {name}")
