"""Random tables: types, numbers of rows, distributions of values.

The server makes the values from hashes of row numbers, so a seed makes the same
table anywhere.  In the expression of a type, {v} is a bigint in which all bits vary;
the numbers that are hashed determine how often a value occurs.
"""

from collections import namedtuple

# kind: which expressions orders.py makes of such a column.
Type = namedtuple("Type", "name expression kind")

_MICROSECONDS = "* interval '1 microsecond'"
_WORD = "translate(substr(md5(({v})::text), 1, {length}), '0123456789', 'aAbB éÉ-_ß')"
_MIXED_WORD = "translate(substr(md5(({v})::text), 1, {length}), '0123456789', 'cChH1ж日😀ö\u0301')"

SCALARS = [
    Type("boolean", "({v}) & 1 = 0", "other"),
    Type('"char"', '((({v}) & 255) - 128)::int::"char"', "other"),
    Type("smallint", "((({v}) & 65535) - 32768)::smallint", "number"),
    Type("integer", "(({v}) >> 32)::integer", "number"),
    Type("bigint", "({v})", "number"),
    Type("real", "((({v}) >> 20) / 1e3)::real", "number"),
    Type("double precision", "({v}) / 1e6::double precision", "number"),
    Type("numeric", "({v}) * (ARRAY[1, 1e-5, 1e-30, 1e20, 0.10])[1 + (({v}) & 3)]", "number"),
    Type("numeric(14,2)", "(({v}) >> 30)::numeric / 100", "number"),
    Type("money", "((({v}) >> 8)::numeric / 100)::money", "other"),
    Type("oid", "(({v}) & 4294967295)::oid", "other"),
    Type("xid8", "(({v}) & 9223372036854775807)::text::xid8", "other"),
    Type("pg_lsn", "'0/0'::pg_lsn + (({v}) & 9223372036854775807)::numeric", "other"),
    Type("tid", "format('(%s,%s)', (({v}) >> 32) & 4294967295, ({v}) & 65535)::tid", "other"),
    Type("oidvector", "concat_ws(' ', ({v}) & 3, nullif((({v}) >> 8) & 3, 0), (({v}) >> 16) & 4294967295)::oidvector", "other"),
    Type("date", "date '2000-01-01' + (({v}) % 1000000)::int", "other"),
    Type("time", f"time '00:00' + (({{v}}) & 68719476735) {_MICROSECONDS}", "other"),
    Type("timetz", f"((time '00:00' + (({{v}}) & 68719476735) {_MICROSECONDS})::text"
         " || (ARRAY['+00', '-07', '+05:30', '+13'])[1 + (({v}) >> 40 & 3)])::timetz", "other"),
    Type("timestamp", f"timestamp '2000-01-01' + (({{v}}) >> 10) {_MICROSECONDS}", "other"),
    Type("timestamptz", f"timestamptz '2000-01-01 00:00+00' + (({{v}}) >> 10) {_MICROSECONDS}", "other"),
    Type("interval", f"(({{v}}) >> 10) {_MICROSECONDS} + (({{v}}) & 15) * interval '1 month'", "other"),
    Type("uuid", "md5(({v})::text)::uuid", "other"),
    Type("inet", "set_masklen(inet '10.0.0.0' + (({v}) & 16777215), 8 + (({v}) >> 32 & 15)::int * 8 / 5)", "other"),
    Type("cidr", "network(set_masklen(inet '10.0.0.0' + (({v}) & 16777215), 8 + (({v}) >> 32 & 15)::int * 8 / 5))::cidr",
         "other"),
    Type("macaddr", "lpad(to_hex(({v}) & 281474976710655), 12, '0')::macaddr", "other"),
    Type("macaddr8", "lpad(to_hex({v}), 16, '0')::macaddr8", "other"),
    Type("bit(40)", "(({v}) >> 24)::bit(40)", "other"),
    Type("bit varying", "substring(({v})::bit(64)::bit varying, 1, (({v}) & 63)::int)", "other"),
    Type("bytea", "substr(decode(md5(({v})::text), 'hex'), 1, (({v}) & 15)::int)", "bytes"),
    Type("jsonb", "CASE ({v}) & 7 WHEN 0 THEN to_jsonb({v}) WHEN 1 THEN to_jsonb(" + _MIXED_WORD.replace("{length}", "(({v}) >> 8 & 15)::int") + ")"
         " WHEN 2 THEN to_jsonb(({v}) * (ARRAY[1, 1e-5, 1e-30, 1e200, 0.10])[1 + (({v}) >> 8 & 3)])"
         " WHEN 3 THEN jsonb_build_array(({v}) >> 8 & 7, NULL, jsonb_build_object('x', ({v}) >> 11 & 3))"
         " WHEN 4 THEN jsonb_build_object('k', ({v}) >> 8 & 255, repeat('k', (({v}) >> 16 & 1023)::int), '[]'::jsonb)"
         " WHEN 5 THEN jsonb_build_object('A', ({v}) >> 8 & 1 = 0, 'b', jsonb_build_object(to_hex(({v}) >> 9 & 15), ({v}) & 1023))"
         """ ELSE (ARRAY['null', 'false', '""', '[]', '{}', '[[]]', '[{}]', '[null]', '{"a": {}}'])[1 + mod(({v}) & 9223372036854775807, 9)]::jsonb END""", "other"),
    # few distinct long values, some of them equal but not stored alike
    Type("numeric", "(repeat('7', 600) || (({v}) & 3) || (ARRAY['', '.0', '.00'])[1 + mod(({v}) >> 2 & 255, 3)])::numeric", "other"),
    Type("jsonb", "jsonb_build_array(repeat('long ', 100), (ARRAY[1, 1.0, 2])[1 + mod(({v}) & 255, 3)])", "other"),
    Type("text", "repeat('Long é ', 60 + (({v}) & 1)::int) || (ARRAY['', 'a', 'A'])[1 + mod(({v}) >> 1 & 255, 3)]", "text"),
    Type("tsvector", "to_tsvector('simple', concat_ws(' ', 'w' || (({v}) & 7), 'x' || (({v}) >> 8 & 255)))", "other"),
    Type("tsquery", "to_tsquery('simple', 'w' || (({v}) & 7) || (ARRAY[' & ', ' | ', ' <-> '])[1 + (({v}) >> 8 & 1)] || 'x')",
         "other"),
    # of check.sql: types whose comparison functions gpusort does not know, and whose order it cannot guess
    Type("gs_distance", "(({v}) >> 45)::int::gs_distance", "other"),
    Type("gs_reversed", "(" + _WORD.replace("{length}", "(({v}) & 31)::int") + ")::gs_reversed", "other"),
    Type("gs_color", "(enum_range(NULL::gs_color))[1 + mod(({v}) & 9223372036854775807, 5)]", "other"),
    Type("gs_positive", "(1 + (({v}) & 1073741823))::int::gs_positive", "number"),
    Type("gs_price", "((({v}) >> 30)::numeric / 100)::gs_price", "number"),
    Type("gs_word", _WORD.replace("{length}", "1 + (({v}) & 15)::int") + "::gs_word", "other"),
]

ARRAYS = [
    Type(f"{element}[]", f"(ARRAY[{value}, {other}, NULL, {value}])[1:(({{v}}) >> 3 & 3)::int + 1]", "other")
    for element, value, other in [
        ("integer", "({v}) >> 50", "({v}) >> 60"),
        ("bigint", "({v})", "0"),
        ("numeric", "({v}) * 0.001", "1.50"),
        ("double precision", "({v}) / 1e3", "'-0'"),
        ("text", "to_hex({v})", "''"),
        ("gs_color", "(enum_range(NULL::gs_color))[1 + (({v}) & 3)]", "'orange'"),
        ("date", "date '2000-01-01' + (({v}) >> 55)::int", "'infinity'"),
    ]
]
# what ARRAY[] makes has the element's type only if that is what the values have
ARRAYS = [array._replace(expression=f"({array.expression})::{array.name}") for array in ARRAYS]
ARRAYS.append(Type("gs_numbers", "ARRAY[({v}) >> 60, ({v}) * 0.01]::gs_numbers", "other"))


def _range(name, low, high):
    bounds = "(ARRAY['[)', '(]', '[]', '()'])[1 + (({v}) & 3)]"
    low = f"CASE WHEN ({{v}}) >> 8 & 15 = 0 THEN NULL ELSE {low} END"
    high = f"CASE WHEN ({{v}}) >> 12 & 15 = 0 THEN NULL ELSE {high} END"
    return Type(name, f"{name}({low}, {high}, {bounds})", "other")


RANGES = [
    _range("int4range", "(({v}) >> 54)::int", "(({v}) >> 54)::int + (({v}) >> 16 & 3)::int"),
    _range("int8range", "({v}) >> 8", "(({v}) >> 8) + (({v}) >> 16 & 3)"),
    _range("numrange", "(({v}) >> 8) * 0.01", "(({v}) >> 8) * 0.010 + (({v}) >> 16 & 3)"),
    _range("daterange", "date '2000-01-01' + (({v}) >> 50)::int", "date '2000-01-03' + (({v}) >> 50)::int"),
    _range("tstzrange", f"timestamptz '2000-01-01 00:00+00' + (({{v}}) >> 12) {_MICROSECONDS}", "timestamptz 'infinity'"),
    _range("gs_textrange", "to_hex(({v}) >> 60 & 15)", "'z'"),
]
RANGES += [
    Type(name.replace("range", "multirange"), f"{name.replace('range', 'multirange')}({expression}, {name}(NULL, NULL, '()') * 'empty')",
         "other")
    for name, expression, _ in RANGES[:3]
]

# All types except texts, which also have collations.
TYPES = SCALARS + ARRAYS + RANGES + [
    Type("gs_pair", "ROW(({v}) >> 58, to_hex({v}))::gs_pair", "record"),
]

# Types without an expression: their values are the literals of values.sql.  Those that the
# server does not have, as without an extension, are not used.
EXTENSIONS = ["citext", "cube", "hstore", "isn", "ltree", "postgis", "seg"]
TYPES += [Type(name, None, "other") for name in [
    "tsrange", "datemultirange", "tsmultirange", "tstzmultirange", "gs_positive[]",
    "citext", "cube", "ean13", "geography", "geometry", "hstore", "isbn", "isbn13", "ltree", "oid8", "seg"]]

# Only the collations that the server has are used.
COLLATIONS = ["C", "POSIX", "default", "C.utf8", "en_US.utf8", "de_DE.utf8", "en-x-icu", "de-x-icu", "sv-x-icu",
              "cs-x-icu", "da-x-icu", "ru-x-icu", "gs_nocase", "gs_digits", "gs_shifted"]
TEXTS = ["text", "varchar", "bpchar", "name"]

# Types with literals; those with a length could not store all of them.
TYPE_NAMES = TEXTS + [chosen.name for chosen in TYPES if "(" not in chosen.name]

DISTRIBUTIONS = ["uniform", "uniform", "few", "few", "few", "zipf", "equal"]

Column = namedtuple("Column", "name type collation kind value")


class Table:
    """Name, columns and the statements that make it.

    size is what the seed says, nrows how many rows there really are: fewer where
    a case is made smaller.
    """

    def __init__(self, name, columns, size, nrows, statements):
        self.name = name
        self.columns = columns
        self.size = size
        self.nrows = nrows
        self.statements = statements


def _hash(number, seed):
    return f"hashint8extended({number}, {seed})"


def _fraction(number, seed):
    """From 0 to 999."""
    return f"mod({_hash(number, seed)} & 9223372036854775807, 1000)"


def _number(rng, distribution):
    """SQL for the number that is hashed for row g."""
    hashed = f"({_hash('g', rng.getrandbits(40))} & 9223372036854775807)"
    if distribution == "equal":
        return "0::bigint"
    if distribution == "few":
        return f"mod({hashed}, {rng.choice([2, 3, 5, 10, 100])})"
    if distribution == "zipf":
        return f"floor(exp(ln(5000.0::float8) * {hashed} / 9223372036854775807::float8))::bigint"
    return "g"


def _text(rng, type_name):
    """An expression for texts of some lengths, with or without a common prefix."""
    if type_name == "name":
        return "left(" + _WORD.replace("{length}", "(({v}) & 15)::int") + ", 60)"
    prefix = rng.choice(["", "", "", "https://www.example.org/articles/", "a" * rng.choice([7, 8, 9, 200])])
    length = rng.choice(["(({v}) & 15)::int", "(({v}) & 31)::int", "3", "16"])
    word = rng.choice([_WORD, _WORD, _MIXED_WORD]).replace("{length}", length)
    return f"'{prefix}' || {word}" if prefix else word


def _toasted(rng, type_name):
    """Values of some kilobytes, which compress well or not at all, and differ at their ends or nearly everywhere."""
    which = rng.random()
    if which < 0.3:
        big = "repeat(md5((({v}) & 127)::text), 20 + (({v}) & 31)::int) || to_hex((({v}) >> 8) & 3)"
    elif which < 0.65:
        big = "repeat(md5((({v}) & 3)::text), 120) || to_hex(({v}) >> 8)"
    else:
        big = "(SELECT string_agg(md5((i + (({v}) & 1))::text), '') FROM generate_series(1, 90) i) || to_hex(({v}) >> 8)"
    return f"convert_to({big}, 'UTF8')" if type_name == "bytea" else big


def _literal(literals):
    """An expression for one of these."""
    quoted = ", ".join("'" + literal.replace("'", "''") + "'" for literal in literals)
    return f"(ARRAY[{quoted}])[1 + mod(({{v}}) & 9223372036854775807, {len(literals)})]"


def _value(rng, type_name, expression, literals):
    """The whole expression of a column, over g."""
    number = _number(rng, rng.choice(DISTRIBUTIONS))
    value = expression.replace("{v}", _hash(f"({number})", rng.getrandbits(40)))
    whens = []
    nulls = rng.choice([0, 0, 30, 500, 950])
    if nulls:
        whens.append(f"WHEN {_fraction('g', rng.getrandbits(40))} < {nulls} THEN NULL")
    if literals and rng.random() < 0.75:
        some = rng.sample(literals, min(len(literals), rng.randint(2, 16)))
        share = 1000 // (len(some) * rng.choice([1, 2, 10]))
        seed = rng.getrandbits(40)
        for i, literal in enumerate(some):
            quoted = literal.replace("'", "''")
            whens.append(f"WHEN {_fraction('g', seed)} BETWEEN {i * share} AND {(i + 1) * share - 1}"
                         f" THEN '{quoted}'::{type_name}")
    return f"CASE {' '.join(whens)} ELSE ({value})::{type_name} END" if whens else f"({value})::{type_name}"


def _column(rng, name, collations, literals, may_toast):
    """A random column; one in four is a text."""
    if rng.random() < 0.25:
        type_name = rng.choice(TEXTS)
        collation = rng.choice(collations)
        toasted = may_toast and type_name != "name" and rng.random() < 0.15
        expression = _toasted(rng, type_name) if toasted else _text(rng, type_name)
        return Column(name, type_name, collation, "text",
                      _value(rng, type_name, expression, literals.get(type_name, [])))
    chosen = rng.choice([choice for choice in TYPES if choice.expression or choice.name in literals])
    expression = chosen.expression or _literal(literals[chosen.name])
    if chosen.name == "bytea" and may_toast and rng.random() < 0.4:
        expression = _toasted(rng, "bytea")
    return Column(name, chosen.name, None, chosen.kind,
                  _value(rng, chosen.name, expression, literals.get(chosen.name, [])))


# From this size on a table exceeds work_mem several times, and a LIMIT drops many rows.
LARGE = 15_000


def _size(rng):
    if rng.random() < 0.03:
        return rng.randint(LARGE, 2 * LARGE)
    return rng.choice([rng.randint(0, 4)] + [rng.randint(5, 100)] * 3 + [rng.randint(100, 1000)] * 5 + [rng.randint(1000, 5000)] * 2)


def _insert(table, columns, first, last, order):
    values = ", ".join(f"{column.value} AS {column.name}" for column in columns)
    names = ", ".join(column.name for column in columns)
    return (f"INSERT INTO {table} (id, {names}) SELECT {first - 1} + row_number() OVER (), {names} FROM"
            f" (SELECT {values} FROM generate_series({first}::bigint, {last}) g {order} OFFSET 0) made")


def random_table(rng, name, collations, literals, nrows=None):
    """A table, of nrows rows if given; otherwise the same."""
    size = _size(rng)
    nrows = size if nrows is None else nrows
    # long texts take long to compare under some collations
    columns = [_column(rng, f"c{i}", collations, literals, may_toast=size <= 500) for i in range(1, rng.randint(1, 6 if size < LARGE else 2) + 1)]
    if rng.random() < 0.25:  # a first column that decides, for one row, two or some
        columns[0] = columns[0]._replace(type="bigint", collation=None, kind="number",
                                         value=_hash(f"g / {rng.choice([1, 1, 2, 7, 40])}", rng.getrandbits(40)))
    added = columns[-1] if len(columns) > 1 and rng.random() < 0.25 else None
    order = ""
    if rng.random() < 0.35:
        order = f"ORDER BY {rng.choice([column for column in columns if column is not added]).name} {rng.choice(['', 'DESC'])}"

    def declare(column):
        return f"{column.name} {column.type}" + (f' COLLATE "{column.collation}"' if column.collation else "")

    dropped = rng.random() < 0.25
    declared = ["id int"] + [declare(column) for column in columns if column is not added]
    if dropped:
        declared.insert(rng.randint(0, len(declared)), "dropped text DEFAULT 'gone'")
    statements = [f"DROP TABLE IF EXISTS {name}", f"CREATE UNLOGGED TABLE {name} ({', '.join(declared)})"]
    if added:
        half = nrows // 2
        default = literals.get(added.type, [])
        default = f" DEFAULT '{rng.choice(default)}'" if default and "'" not in "".join(default) else ""
        statements.append(_insert(name, [column for column in columns if column is not added], 1, half, order))
        statements.append(f"ALTER TABLE {name} ADD COLUMN {declare(added)}{default}")
        statements.append(_insert(name, columns, half + 1, nrows, order))
    else:
        statements.append(_insert(name, columns, 1, nrows, order))
    if dropped:
        statements.append(f"ALTER TABLE {name} DROP COLUMN dropped")
    if rng.random() < 0.5:
        statements.append(f"ANALYZE {name}")
    return Table(name, columns, size, nrows, statements)
