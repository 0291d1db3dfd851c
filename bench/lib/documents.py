"""The table of the GIN builds, and how it is filled."""

from server import Session
from table import fill_columns

TABLE = "documents"

# With trigrams; the server may not have the extension.
EXTENSION = "pg_trgm"


def _share(seed, power):
    """A number from 0 to 1, the more often near 0 the higher the power."""
    return f"((hashint8extended(g, {seed}) & 4294967295) / 4294967296.0::float8) ^ {power}"


def _list(count, element):
    """An array; an element has its number in n."""
    return f"ARRAY(SELECT {element} FROM generate_series(1, {count}) AS n)"


def _share_of_element(seed, power):
    return _share(seed, power).replace("(g,", "(g * 64 + n,")


_WORD = f"substr(md5(({_share_of_element(2, 4)} * 2e5)::int::text), 1, 8)"

# 20 numbers of a million, 40 words of 200,000, an object with eight keys and values, and a text of 96 bytes
COLUMNS = [
    ("id int8", "g"),
    ("a int[]", _list(20, f"({_share_of_element(1, 3)} * 1e6)::int")),
    ("v tsvector", f"to_tsvector('simple', array_to_string({_list(40, _WORD)}, ' '))"),
    ("j jsonb", "jsonb_build_object('k', g % 1000, 't', substr(md5(g::text), 1, 6), "
                f"'l', to_jsonb({_list(6, f'({_share_of_element(3, 2)} * 1e5)::int')}))"),
    ("t text", "md5(g::text) || ' ' || md5((g * 7)::text) || ' ' || substr(md5((g % 5000)::text), 1, 30)"),
]


def fill(server, rows, name=None, storage="UNLOGGED"):
    """Makes the table of so many rows, and the extension if the server has it."""
    name = name or f"{TABLE}_{rows}"
    fill_columns(server, name, COLUMNS, rows, storage)
    with Session(server) as session:
        if session.run(f"SELECT 1 FROM pg_available_extensions WHERE name = '{EXTENSION}'"):
            session.run(f"CREATE EXTENSION IF NOT EXISTS {EXTENSION}")


def has_extension(session):
    return session.run(f"SELECT 1 FROM pg_extension WHERE extname = '{EXTENSION}'") == "1"
