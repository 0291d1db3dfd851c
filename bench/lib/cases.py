"""What is measured: tables, keys, distributions, and the cases they make."""

from collections import namedtuple

from table import ICU, LIBC

SIZES = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 5_000_000]

# Where the rows of a table come from.  "sorted" has every key column rise with
# the row's place in the table; "reversed" is the same table, ordered the other
# way round.
DISTRIBUTIONS = ["random", "prefix", "sorted", "reversed", "distinct366"]

# What is asked of a table: the columns ("*", about 200 bytes, or those sorted by),
# the share of its rows that a LIMIT leaves, the work_mem (None: the session's).
Shape = namedtuple("Shape", "columns share work_mem", defaults=("*", None, None))

SHAPES = {
    "row": Shape(),
    "key": Shape(columns="key"),
    "spill": Shape(work_mem="64MB"),
    "top-1e-5": Shape(share=1e-5),
    "top-1%": Shape(share=0.01),
    "top-20%": Shape(share=0.2),
}

# The first two are measured for all keys and sizes; the others for these keys,
# from these sizes on: what spills, or what a LIMIT leaves out, is little before.
MAIN_SHAPES = ["row", "key"]
OTHER_SHAPES_KEYS = ["bigint", "textC", "numeric", "textLibc", "date-int-text"]
OTHER_SHAPES_ROWS = 1_000_000

# collation: one that the server may not have; the key is then left out.
Key = namedtuple("Key", "name columns descending collation", defaults=(None,))

# (date, int DESC, text "C") has its int fall where the others rise, so that
# the sorted table is sorted by it.
KEYS = [
    Key("int4", ["i"], [False]),
    Key("bigint", ["b"], [False]),
    Key("float8", ["f"], [False]),
    Key("uuid", ["u"], [False]),
    Key("timestamptz", ["ts"], [False]),
    Key("date", ["d"], [False]),
    Key("textC", ["c"], [False]),
    Key("textC-url", ["url"], [False]),
    Key("bytea", ["x"], [False]),
    Key("numeric", ["m"], [False]),
    Key("textICU", ["ti"], [False], ICU),
    Key("textLibc", ["tl"], [False], LIBC),
    Key("date-bigint", ["d", "b"], [False, False]),
    Key("date-int-text", ["d", "n", "c"], [False, True, False]),
]

Case = namedtuple("Case", "rows key distribution shape")


def title(case):
    return f"{case.rows} {case.key.name} {case.distribution} {case.shape}"


def columns(case):
    return "*" if SHAPES[case.shape].columns == "*" else ", ".join(case.key.columns)


def floor_query(case):
    """Reads all rows, without LIMIT, as a sort has to."""
    return f"SELECT {columns(case)} FROM {table(case)}"


def query(case):
    backwards = case.distribution == "reversed"
    order = [
        column + (" DESC" if descending != backwards else "")
        for column, descending in zip(case.key.columns, case.key.descending)
    ]
    share = SHAPES[case.shape].share
    limit = "" if share is None else f" LIMIT {max(1, round(case.rows * share))}"
    return f"{floor_query(case)} ORDER BY {', '.join(order)}{limit}"


def table_kind(distribution):
    return {"prefix": "random", "reversed": "sorted"}.get(distribution, distribution)


def table(case):
    return f"bench_{table_kind(case.distribution)}"


def all_cases(rows, key_names, distributions, shapes):
    """The cases of one size, those that share a table next to each other."""
    for kind in ["random", "sorted", "distinct366"]:
        for distribution in DISTRIBUTIONS:
            if table_kind(distribution) != kind or distribution not in distributions:
                continue
            # the order of fewer rows than this is of no interest
            if rows < 100 and kind != "random":
                continue
            for key in KEYS:
                if key.name not in key_names:
                    continue
                # in the random table, the url is what has a long common prefix
                if kind == "random" and (key.name == "textC-url") != (distribution == "prefix"):
                    continue
                for shape in shapes:
                    if shape in MAIN_SHAPES or key.name in OTHER_SHAPES_KEYS and rows >= OTHER_SHAPES_ROWS:
                        yield Case(rows, key, distribution, shape)


def _hash(seed):
    return f"hashint8extended(g, {seed})"


def _letters(hex):
    """Letters for digits, some of them capitals, so that a language's order differs from that of bytes."""
    return f"translate({hex}, '0123456789', 'GhIjKlMnOp')"


_TIME = "timestamptz '2021-01-01 00:00:00+00'"
_MICROSECOND = "interval '1 microsecond'"
_DATE = "date '2024-01-01'"
_SITE = "'https://www.example.org/articles/'"


def _definitions(rows):
    """Column, and its value in the random, sorted and distinct366 table.

    g is the row's number, v one of 366 values; risen is 16 hex digits that
    rise with g and use the whole range, under any collation.
    """
    risen = f"lpad(to_hex(g * {2 ** 62 // rows}::bigint), 16, '0')"
    return [
        ("i int4",
         f"({_hash(1)} >> 32)::int4", "g", "v * 5000011"),
        ("b bigint",
         _hash(2), "g::bigint * 1000003", "v * 1000000000000037"),
        ("f float8",
         f"{_hash(3)} / 1e10::float8", "g * 0.37::float8", "v * 1.7e5::float8"),
        ("u uuid",
         "md5('u' || g)::uuid", f"({risen} || substr(md5('u' || g), 1, 16))::uuid",
         "md5('u' || v)::uuid"),
        ("ts timestamptz",
         f"{_TIME} + ({_hash(4)} & ((1::bigint << 47) - 1)) * {_MICROSECOND}",
         f"{_TIME} + g * 1000001::bigint * {_MICROSECOND}", f"{_TIME} + v * 86400000000 * {_MICROSECOND}"),
        ("d date",
         f"{_DATE} + (({_hash(5)} & 2147483647) % 366)::int", f"{_DATE} + (g * 366::bigint / {rows + 1})::int",
         f"{_DATE} + v::int"),
        ("n int4",
         f"({_hash(6)} >> 32)::int4", "-g", "v * 3000017"),
        ('c text COLLATE "C"',
         "substr(md5('c' || g), 1, 16)", risen, "substr(md5('c' || v), 1, 16)"),
        ('url text COLLATE "C"',
         f"{_SITE} || ({_hash(7)} & 4294967295)", f"{_SITE} || lpad(g::text, 10, '0')", f"{_SITE} || v"),
        ("x bytea",
         "decode(md5('x' || g), 'hex')", "decode(lpad(to_hex(g), 32, '0'), 'hex')", "decode(md5('x' || v), 'hex')"),
        ("m numeric(14,2)",
         f"({_hash(8)} >> 24)::numeric / 100", "g * 1.37", "v * 1000003.07"),
        (f'ti text COLLATE "{ICU}"',
         _letters("substr(md5('t' || g), 1, 12)"), f"substr({risen}, 1, 12)", _letters("substr(md5('t' || v), 1, 12)")),
        (f'tl text COLLATE "{LIBC}"',
         _letters("substr(md5('l' || g), 1, 12)"), f"substr({risen}, 1, 12)", _letters("substr(md5('l' || v), 1, 12)")),
        ("pad text",) + ("repeat('-', 13)",) * 3,
    ]


def create_table(kind, rows, missing=()):
    """The SQL that makes a table: the same in every run, all visible, with statistics, and cached.

    missing: collations that the server does not have, and that no key needs.
    """
    source = ["random", "sorted", "distinct366"].index(kind) + 1
    name = f"bench_{kind}"
    columns = _definitions(rows)
    declarations = ", ".join(column[0] for column in columns)
    for collation in missing:
        declarations = declarations.replace(f'"{collation}"', '"C"')
    return f"""
        DROP TABLE IF EXISTS {name};
        CREATE UNLOGGED TABLE {name} ({declarations});
        INSERT INTO {name} SELECT {", ".join(column[source] for column in columns)}
        FROM (SELECT g::int4 AS g, ({_hash(9)} & 2147483647) % 366 AS v
              FROM generate_series(1::bigint, {rows}) AS g) AS s;
        VACUUM (FREEZE, ANALYZE) {name};
        SELECT count(pad) FROM {name};
    """


def table_bytes(rows):
    """The approximate size of a table, for the configuration of the server."""
    return 232 * rows
