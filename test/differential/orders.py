"""Random queries of a table: an ORDER BY, and what is around it.

A Case runs with gpusort and without it.  gpusort is stable, so the expected result
is PostgreSQL's for the same ORDER BY followed by the position of the row in the
input.  If a tuplesort or a Gather Merge took part, ties may be in any order, and the
loose pair of statements is compared, which does not show their order.
"""

import re
from collections import namedtuple

from tables import LARGE

# settings: of the session.  before: statements to run first.  explain: the query for
# EXPLAIN ANALYZE.  got and want: statements that return one bytea[]; loose_got and
# loose_want: statements that return one text.  columns: the sort columns.
Case = namedtuple("Case", "wrapper settings before explain got want loose_got loose_want columns")

WORK_MEMS = ["64kB", "100kB", "256kB", "1MB", "4MB", "64MB"]

PARALLEL = [("max_parallel_workers_per_gather", "2"), ("parallel_setup_cost", "0"), ("parallel_tuple_cost", "0"),
            ("min_parallel_table_scan_size", "0"), ("enable_indexscan", "off")]

Item = namedtuple("Item", "expression direction column")


class Order:
    """A list of items, and the source whose rows they order.

    numbered is the same source with the position of each row, which is not its id, as a
    heap places small rows in the free space of earlier pages.  input_order is the ORDER BY of
    these positions, if they are not those of a scan.
    """

    def __init__(self, rng, items, table):
        self.items = items
        self.columns = table.columns
        self.source = _source(rng, table)
        self.input_order = ""

    @property
    def numbered(self):
        return f"(SELECT row_number() OVER ({self.input_order}) AS place, * FROM {self.source}) numbered"

    def keys(self):
        return ", ".join(f"{item.expression} {item.direction}".rstrip() for item in self.items)

    def asked(self, query):
        """The query and the expected one, with a source {0} and an ORDER BY {1}."""
        return query.format(self.source, self.keys()), query.format(self.numbered, self.keys() + ", place")

    def equality(self):
        return ", ".join(item.expression for item in self.items)


def _quoted(sql):
    """The tag is unique among nested quotes, since outer ones are longer."""
    tag = f"$quote{len(sql)}$"
    return f"{tag}{sql}{tag}"


def _expression(rng, column, collations):
    name = column.name
    if rng.random() < 0.7:
        return name
    any_type = [f"{name} IS NULL", f"coalesce({name}, {name})", f"ROW({name}, id % 3)"]
    if column.kind != "number":  # of which some have a hundred thousand digits
        any_type.append(f'{name}::text COLLATE "{rng.choice(collations)}"')
    if column.type != "name":  # whose NULL has a collation of its own
        any_type.append(f"CASE WHEN id % 5 > 0 THEN {name} END")
    of_kind = {
        "number": [f"{name} + 0", f"{name}::numeric", f"ARRAY[{name}]"],
        "bytes": [f"length({name})", f"substr({name}, 1, 2)"],
        "text": [f'{name} COLLATE "{rng.choice(collations)}"'] * 3 + [f"lower({name}::text)", f"length({name}::text)", f"left({name}::text, 3)"],
    }
    return rng.choice(any_type + of_kind.get(column.kind, []) * 2)


def _direction(rng, column, expression):
    nulls = rng.choice(["", "", "NULLS FIRST", "NULLS LAST"])
    if rng.random() < 0.1 and column.type != "hstore":  # which has no such operators
        operators = ["<", ">"]
        if column.kind == "text" and column.type != "name" and expression.startswith(column.name + " COLLATE"):
            operators = ["~<~", "~>~"]
        elif column.kind == "record" and expression == column.name:
            operators = ["*<", "*>"]
        return f"USING {rng.choice(operators)} {nulls}".rstrip()
    return f"{rng.choice(['', 'ASC', 'DESC', 'DESC'])} {nulls}".strip()


# The operators of operator classes that are not the default ones.
CLASS_OPERATORS = {"text_pattern_ops": ("~<~", "~>~"), "bpchar_pattern_ops": ("~<~", "~>~"), "record_image_ops": ("*<", "*>")}


def _index_column(rng, item):
    """A column of an index: expressions must be immutable, and there is no USING."""
    column = item.column
    choices = [column.name] * 6 + [f"(coalesce({column.name}, {column.name}))", f"(CASE WHEN id % 5 > 0 THEN {column.name} END)"]
    if column.type in ("text", "varchar"):
        choices += [f"{column.name} text_pattern_ops"] * 2
    elif column.type == "bpchar":
        choices += [f"{column.name} bpchar_pattern_ops"] * 2
    elif column.kind == "record":
        choices += [f"{column.name} record_image_ops"] * 3
    if column.type == "name":  # whose NULL has a collation of its own
        choices = choices[:7]
    return f"{rng.choice(choices)} {'' if 'USING' in item.direction else item.direction}".rstrip()


def random_items(rng, table, collations):
    """Sort items, mostly of different columns."""
    count = rng.choice([1, 1, 1, 2, 2, 3, 4, 5])
    if count <= len(table.columns) and rng.random() < 0.7:
        columns = rng.sample(table.columns, count)
    else:
        columns = rng.choices(table.columns, k=count)
    expressions = [(_expression(rng, column, collations), column) for column in columns]
    return [Item(expression, _direction(rng, column, expression), column) for expression, column in expressions]


def _source(rng, table):
    """The table itself, part of it, its columns as computed values, twice the table."""
    names = ", ".join(column.name for column in table.columns)
    computed = ", ".join(f"coalesce({column.name}, {column.name}) AS {column.name}" for column in table.columns)
    return rng.choice([table.name] * 5 + [
        f"(SELECT * FROM {table.name} WHERE id % 3 <> 0 OFFSET 0) part",
        f"(SELECT id, {computed} FROM {table.name} OFFSET 0) computed",
        f"(SELECT id, {names} FROM {table.name} UNION ALL SELECT id + 1000000, {names} FROM {table.name}) twice"])


def _selected(rng, order):
    """The columns to read, always with id, which identifies rows."""
    names = [column.name for column in order.columns]
    return ", ".join(rng.choice([["id"] + names, ["id"], ["id"] + names[:1], names[::-1] + ["id"]]))


def _rows(query, by=""):
    return f"SELECT array_agg(record_send(r) {by}) FROM ({query}) r"


def _ranks(selected, order):
    """Each possible row and its rank in the order."""
    return f"SELECT record_send(ROW({selected})), dense_rank() OVER (ORDER BY {order.keys()}) FROM {order.source}"


def _case(wrapper, order, selected, got, want, ranks=None, whole=True, explain=None, settings=(), before=()):
    """A case whose rows are in order.  whole: all rows are returned, so ties are the same rows."""
    loose = [f"SELECT differential.places({_quoted(statement)}, {_quoted(ranks or _ranks(selected, order))}, {whole})"
             for statement in (got, want)]
    return Case(wrapper, list(settings), list(before), explain or got, got, want, *loose, order.items)


# ---------------------------------------------------------------- the wrappers

def _plain(rng, table, order, settings=(), wrapper="plain"):
    selected = _selected(rng, order)
    got, want = order.asked(f"SELECT {selected} FROM {{0}} ORDER BY {{1}}")
    return _case(wrapper, order, selected, _rows(got), _rows(want), settings=settings)


def _key_alone(rng, table, order):
    """One column, which is the key, so that the key can be the whole row."""
    order.items = order.items[:1]
    name = order.items[0].column.name
    order.items[0] = order.items[0]._replace(expression=name, direction=rng.choice(["", "DESC", "NULLS FIRST", "DESC NULLS LAST"]))
    got, want = order.asked(f"SELECT {name} FROM {{0}} ORDER BY {{1}}")
    return _case("key alone", order, name, _rows(got), _rows(want))


def _limit(rng, table, order):
    selected = _selected(rng, order)
    n = table.nrows
    count = rng.choice([0, 1, 2, n // 100, n // 3, n * 6 // 10, max(n - 1, 0), n, n + 1])
    if rng.random() < 0.15:
        got = f"SELECT {selected} FROM {order.source} ORDER BY {order.keys()} FETCH FIRST {count} ROWS WITH TIES"
        want = (f"SELECT {selected} FROM (SELECT *, rank() OVER (ORDER BY {order.keys()}) AS n FROM {order.numbered}) s"
                f" WHERE n <= {count} ORDER BY {order.keys()}, place")
    else:
        offset = rng.choice([0, 0, 1, n // 10, n])
        got, want = order.asked(f"SELECT {selected} FROM {{0}} ORDER BY {{1}} LIMIT {count} OFFSET {offset}")
    return _case("limit", order, selected, _rows(got), _rows(want), whole=False)


def _cursor(rng, table, order):
    """Single fetches to anywhere (0: relative, 1: absolute), and runs forward and backward (2)."""
    selected = _selected(rng, order)
    n = max(table.nrows, 1)
    steps = []
    for _ in range(rng.randint(2, 8)):
        steps.append(rng.choice([(0, rng.randint(-n, n)), (1, rng.randint(-n - 1, n + 1)), (1, -1), (1, 1),
                                 (2, rng.randint(1, n)), (2, -rng.randint(1, n))]))
    walk = "{" + ",".join("{%d,%d}" % step for step in steps) + "}"
    query, expected = order.asked(f"SELECT {selected} FROM {{0}} ORDER BY {{1}}")
    got, want = (f"SELECT differential.walk({_quoted(sql)}, '{walk}')" for sql in (query, expected))
    return _case("cursor", order, selected, got, want, whole=False, explain=f"DECLARE c SCROLL CURSOR FOR {query}")


def _joined(rng, table, order):
    """Sorted in a subquery, numbered there, and joined."""
    selected = _selected(rng, order)
    got, want = order.asked(
        f"SELECT s.*, o.x FROM (SELECT row_number() OVER () AS n, {selected} FROM (SELECT * FROM {{0}} ORDER BY {{1}} OFFSET 0) i) s"
        " JOIN generate_series(0, 9) o(x) ON o.x = s.n % 10")
    row = ", ".join("r." + name for name in selected.split(", "))
    statements = [f"SELECT array_agg(record_send(ROW({row})) ORDER BY n) FROM ({query}) r" for query in (got, want)]
    return _case("join", order, selected, *statements)


def _window(rng, table, order):
    partition = f"PARTITION BY {order.items[0].expression}" if rng.random() < 0.3 else ""
    got, want = order.asked(
        f"SELECT id, row_number() OVER (w ORDER BY {{1}}) AS n, rank() OVER (w ORDER BY {order.keys()}) AS rank,"
        f" lag(id) OVER (w ORDER BY {{1}}) AS before FROM {{0}} WINDOW w AS ({partition})")
    loose = [f"SELECT array_agg(ROW(id, rank) ORDER BY id)::text FROM ({query}) r" for query in (got, want)]
    statements = [_rows(query, "ORDER BY id") for query in (got, want)]
    return Case("window", [], [], statements[0], *statements, *loose, order.items)


def _distinct_on(rng, table, order):
    selected = _selected(rng, order)
    expressions = [item.expression for item in order.items]
    count = rng.randint(1, len(expressions))
    if set(expressions[:count]) & set(expressions[count:]):  # it may not come again after another one
        count = len(expressions)
    on = ", ".join(expressions[:count])
    got, want = order.asked(f"SELECT DISTINCT ON ({on}) {selected} FROM {{0}} ORDER BY {{1}}")
    return _case("distinct on", order, selected, _rows(got), _rows(want), whole=False)


def _group(rng, table, order):
    """Groups by sorting, each with its rows in input order."""
    by = order.equality()
    got = f"SELECT array_agg(id) AS ids FROM {order.source} GROUP BY {by}"
    want = f"SELECT array_agg(id ORDER BY place) AS ids FROM {order.numbered} GROUP BY {by}"
    statements = [_rows(query, "ORDER BY ids") for query in (got, want)]
    loose = [f"SELECT string_agg(ids::text, ' ' ORDER BY ids) FROM (SELECT array_agg(id ORDER BY id) AS ids FROM {order.source}"
             f" GROUP BY {by}) r"] * 2
    return Case("group", [("enable_hashagg", "off")], [], statements[0], *statements, *loose, order.items)


def _merge_join(rng, table, order):
    """Both sides are sorted, with ties, so that the inner side is marked and restored."""
    name = order.items[0].column.name
    kind = rng.choice(["", "LEFT", "FULL"])
    if order.items[0].column.type == "geography":  # whose = has no merge join, which FULL needs
        kind = ""
    query = (f"SELECT a.id AS a, b.id AS b FROM {table.name} a {kind} JOIN"
             f" (SELECT * FROM {table.name} WHERE id % 50 < 2 AND id <= 500) b ON a.{name} = b.{name}")
    same = f"SELECT array_agg(ROW(a, b) ORDER BY a, b)::text FROM ({query}) r"
    rows = _rows(query, "ORDER BY a, b")
    return Case("merge join", [("enable_hashjoin", "off"), ("enable_nestloop", "off")], [], rows, rows, rows,
                same, same, [Item(name, "", order.items[0].column)])


def _lateral(rng, table, order):
    """The sort is executed repeatedly: with other rows, another bound, or rescanned."""
    selected = _selected(rng, order)
    where = rng.choice(["WHERE id % (o.x + 1) = 0 AND id <= 1500", "WHERE id <= 1500"])
    limit, whole = rng.choice([("", True), ("LIMIT o.x * 20", False)])
    outer = "generate_series(1, 4) o(x)"
    got, want = order.asked(f"SELECT o.x, s.* FROM {outer} LEFT JOIN LATERAL (SELECT {selected} FROM {{0}} {where}"
                            f" ORDER BY {{1}} {limit} OFFSET 0) s ON true")
    ranks = (f"SELECT record_send(ROW(o.x, {selected})), dense_rank() OVER (ORDER BY o.x, {order.keys()})"
             f" FROM {outer}, {order.source}")
    return _case("lateral", order, selected, _rows(got), _rows(want), whole=whole, ranks=ranks,
                 settings=[("enable_material", rng.choice(["on", "off"]))])


def _prepared(rng, table, order):
    selected = _selected(rng, order)
    n = table.nrows
    after = rng.choice([0, 0, n // 3, n])
    limit = rng.choice(["NULL", "NULL", 1, n // 2, n])
    query = f"SELECT {selected} FROM {{}} WHERE id > {{}} ORDER BY {{}} LIMIT {{}}"
    prepare = f"PREPARE asked(int, bigint) AS {_rows(query.format(order.source, '$1', order.keys(), '$2'))}"
    want = query.format(order.numbered, after, order.keys() + ", place", limit)
    return _case("prepared", order, selected, f"EXECUTE asked({after}, {limit})", _rows(want), whole=False,
                 settings=[("plan_cache_mode", rng.choice(["force_generic_plan", "force_custom_plan", "auto"]))],
                 before=["DEALLOCATE ALL", prepare, f"EXECUTE asked({n // 2}, NULL)"])


def _locked(rng, table, order):
    """Rows are locked in sorted order, so the sort keeps their TIDs."""
    order.source = table.name
    selected = _selected(rng, order)
    got, want = order.asked(f"SELECT {selected} FROM {{0}} ORDER BY {{1}}")
    return _case("for update", order, selected, _rows(got + " FOR UPDATE"), _rows(want))


def _parallel(rng, table, order):
    order.source = table.name
    case = rng.choice([_plain, _plain, _key_alone, _limit, _joined, _window, _distinct_on, _group, _prepared])(rng, table, order)
    return case._replace(wrapper="parallel", settings=case.settings + PARALLEL + [
        ("force_parallel_mode", rng.choice(["off", "off", "off", "on"])),
        ("parallel_leader_participation", rng.choice(["on", "on", "off"]))])


FRAMES = ["", "", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "RANGE UNBOUNDED PRECEDING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
          "GROUPS 1 PRECEDING EXCLUDE TIES", "ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW"]
# The first of them take PostgreSQL little time for a row; the others aggregate up to all rows again for each.
MOVING_FRAMES = 4
MOST_ROWS_OF_FRAMES = 3000
FUNCTIONS = ["row_number()", "rank()", "dense_rank()", "ntile(3)", "cume_dist()", "lag(id)", "lead(id, 2, -1)", "first_value(id)", "nth_value(id, 2)",
             "sum(id)", "count(*)", "count(*) FILTER (WHERE id % 3 = 0)", "array_agg(id) FILTER (WHERE id % 50 = 0)", "max(id)"]
# Those that the sort computes, if there are no others.
FUNCTIONS_OF_SORT = ["row_number()", "row_number()", "lag(id)", "lag({0}, 1)", "lag({0})"]
AGGREGATES = ["array_agg(id ORDER BY {0})", "array_agg(DISTINCT id % 4)", "count(DISTINCT {1})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY id)", "percentile_cont(0.3) WITHIN GROUP (ORDER BY id)",
              "percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY id % 9)", "mode() WITHIN GROUP (ORDER BY id % 3)",
              "string_agg(id::text, ',' ORDER BY id DESC)", "rank(5) WITHIN GROUP (ORDER BY id)", "count(*) FILTER (WHERE id % 2 = 0)", "sum(id)"]


def _windows(rng, table, groups, keys, column):
    """Functions of one or more windows, whose partitions may differ, and of which only the first rows may be wanted."""
    frames = FRAMES if table.size <= MOST_ROWS_OF_FRAMES else FRAMES[:MOVING_FRAMES]
    choices = FUNCTIONS
    if rng.random() < 0.4:
        frames = FRAMES[:2]
        choices = [function.format(column) for function in FUNCTIONS_OF_SORT]
    windows = [f"PARTITION BY {', '.join(rng.choice([groups, groups, groups[:1], groups[::-1]]))} ORDER BY {rng.choice([keys, keys, 'id', 'id DESC'])}"
               f" {rng.choice(frames)}" for _ in range(rng.choice([1, 1, 1, 2]))]
    functions = [f"{rng.choice(choices)} OVER w{rng.randrange(len(windows))} AS f{i}" for i in range(rng.randint(1, 3))]
    where = ""
    if rng.random() < 0.4:
        functions = ["row_number() OVER w0 AS f0"] + functions[1:] * rng.choice([0, 0, 1])
        where = f"WHERE f0 {rng.choice(['<', '<=', '<=', '='])} {rng.randint(0, 4)}"
    named = ", ".join(f"w{i} AS ({window})" for i, window in enumerate(windows))
    return "SELECT * FROM (SELECT id, " + ", ".join(functions) + f" FROM {{0}} WINDOW {named}) s {where}"


def _ranges(rng, table, order):
    """Window functions, DISTINCT ON and aggregates of ranges of the rows, by the participants of a parallel plan."""
    order.source = table.name
    keys = order.keys() + ", id"
    groups = [item.expression for item in order.items][:rng.randint(1, len(order.items))]
    rest = [item.expression for item in order.items[len(groups):]]
    kind = rng.choice(["windows", "windows", "aggregates", "aggregates", "medians", "distinct on"])
    if kind == "distinct on" and not set(groups) & set(rest):  # it may not come again after another one
        query = f"SELECT DISTINCT ON ({', '.join(groups)}) id FROM {{0}} ORDER BY {keys}"
    elif kind == "windows":
        query = _windows(rng, table, groups, keys, order.items[-1].column.name)
    elif kind == "medians":
        query = (f"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) AS id, percentile_cont(0.5) WITHIN GROUP (ORDER BY id {rng.choice(['', 'DESC'])}) AS m"
                 f" FROM {{0}} GROUP BY {', '.join(groups)}")
    else:
        aggregates = [aggregate.format(keys, order.items[-1].expression) for aggregate in rng.sample(AGGREGATES, rng.randint(1, 3))]
        having = rng.choice(["", "", "HAVING count(*) > 2", "HAVING min(id) % 2 = 0"])
        query = (f"SELECT min(id) AS id, {', '.join(f'{aggregate} AS a{i}' for i, aggregate in enumerate(aggregates))} FROM {{0}}"
                 f" GROUP BY {', '.join(groups)} {having}")
    rows = _rows(query.format(table.name), "ORDER BY id")
    loose = f"SELECT array_agg(r ORDER BY id)::text FROM ({query.format(table.name)}) r"
    return Case("ranges", PARALLEL + [
        ("max_parallel_workers_per_gather", rng.choice(["1", "2", "3"])), ("enable_hashagg", rng.choice(["on", "off"])),
        ("parallel_leader_participation", rng.choice(["on", "on", "off"]))], [], rows, rows, rows, loose, loose, order.items)


def _index(rng, table, order):
    """CREATE INDEX: every page must be the one that PostgreSQL writes."""
    columns = ", ".join(_index_column(rng, item) for item in order.items)
    unique = rng.random() < 0.2
    if unique and rng.random() < 0.8:
        columns += ", id"
    kind = "UNIQUE INDEX" if unique else "INDEX"
    include = f" INCLUDE ({rng.choice(['id'] + [column.name for column in table.columns])})" if rng.random() < 0.2 else ""
    options = rng.choice([""] * 4 + [" WITH (fillfactor = 40)", " WITH (deduplicate_items = off)"])
    where = rng.choice([""] * 5 + [" WHERE id % 3 = 0", f" WHERE {order.items[0].column.name} IS NOT NULL"])
    build = (f"SELECT differential.index_pages({_quoted(f'CREATE {kind} tested ON {table.name} ({columns}){include}{options}{where}')},"
             f" '{table.name}', {rng.choice([0, 0, 2])})")
    settings = [("maintenance_work_mem", rng.choice(["1MB", "4MB", "64MB"])), ("min_parallel_table_scan_size", "0")]
    return Case("create index", settings, [], "SELECT", build, build, build, build, order.items)


def _gin_column(rng, item):
    """A column of a GIN index: a value with keys, or an array of the value and others."""
    column = item.column
    collation = f' COLLATE "{column.collation}"' if column.collation and rng.random() < 0.5 else ""
    if column.type == "jsonb" and rng.random() < 0.7:
        return f"{column.name} {rng.choice(['jsonb_ops', 'jsonb_path_ops'])}"
    if column.type == "tsvector" or column.type.endswith("[]"):
        return column.name
    return rng.choice(["(ARRAY[{0}]{1})", "(ARRAY[{0}, NULL, {0}]{1})", "(CASE WHEN id % 5 > 0 THEN ARRAY[{0}, {0}] WHEN id % 3 = 0 THEN (ARRAY[{0}])[2:1] END{1})"]
                      ).format(column.name, collation)


def _gin(rng, table, order):
    """CREATE INDEX USING gin: the keys must have the TIDs that PostgreSQL's index has."""
    columns = ", ".join(_gin_column(rng, item) for item in order.items[:3])
    options = rng.choice([""] * 4 + [" WITH (fastupdate = off)"])
    where = rng.choice([""] * 5 + [" WHERE id % 3 = 0", f" WHERE {order.items[0].column.name} IS NOT NULL"])
    build = (f"SELECT differential.gin_entries({_quoted(f'CREATE INDEX tested ON {table.name} USING gin ({columns}){options}{where}')},"
             f" '{table.name}', {rng.choice([0, 0, 2])})")
    settings = [("maintenance_work_mem", rng.choice(["1MB", "4MB", "64MB"])), ("min_parallel_table_scan_size", "0")]
    return Case("create index", settings, [], "SELECT", build, build, build, build, order.items)


def _order_by(column):
    """The item of an ORDER BY that has the order of an index column."""
    for name, (less, greater) in CLASS_OPERATORS.items():
        expression, of_class, direction = column.partition(f" {name}")
        if of_class:
            operator = greater if "DESC" in direction else less
            return f"{expression} USING {operator} {direction.replace('DESC', '').replace('ASC', '')}"
    return column


def _item_of_index(item, column):
    """The item of an ORDER BY that has the order of an index column, in the same direction."""
    parts = re.fullmatch(r"(\(.*\)|\w+) ?(.*)", _order_by(column))
    return item._replace(expression=parts[1], direction=parts[2])


def _presorted(rng, table, order):
    """Rows that an index scan returns in the order of the first items, and of the heap where these are equal.

    There is no index if a value is too large for it, or its collation is not deterministic.  It has
    no posting lists, as a scan backward returns the rows of one forward.
    """
    order.source = table.name
    order.input_order = "ORDER BY ctid"
    items = order.items
    if len(items) == 1:
        order.items = items + [Item("id % 7", rng.choice(["", "DESC"]), items[0].column)]
    count = rng.randint(1, len(order.items) - 1)
    index_columns = [_index_column(rng, item) for item in order.items[:count]]
    order.items = [_item_of_index(item, column) for item, column in zip(order.items, index_columns)] + order.items[count:]
    create = f"CREATE INDEX presorted ON {table.name} ({', '.join(index_columns)}) WITH (deduplicate_items = off)"
    case = rng.choice([_plain, _plain, _limit, _cursor, _joined, _window, _distinct_on, _group, _lateral, _prepared])(rng, table, order)
    settings = [("enable_seqscan", "off"), ("enable_sort", "off"), ("enable_bitmapscan", "off")]
    before = ["BEGIN", f"DO $create$ BEGIN {create}; EXCEPTION WHEN program_limit_exceeded OR feature_not_supported THEN NULL; END $create$"]
    return case._replace(wrapper="presorted", columns=items, settings=case.settings + settings, before=before + case.before)


def _changes(rng, name):
    """Statements that leave dead versions of rows behind; the last one is rolled back."""
    n = rng.randint(2, 9)
    changes = [f"UPDATE {name} SET id = id WHERE id % {n} = 0", f"DELETE FROM {name} WHERE id % {n} = 1",
               f"UPDATE {name} SET id = id WHERE id % {n + 1} = 1"]
    undone = ["SAVEPOINT undone", f"UPDATE {name} SET id = id + 1", "ROLLBACK TO undone"]
    return rng.sample(changes, rng.choice([0, 0, 1, 2, 3])) + rng.choice([[], [], undone])


def _cluster(rng, table, order):
    """CLUSTER of a table, and by PostgreSQL of a copy, whose index ends with the places of rows.

    Without that PostgreSQL's order of ties is undefined.  A value can be too large for an index,
    also that of a deleted row, so both indexes have the same size, and PostgreSQL builds the first
    one, too.  A transaction that is rolled back keeps the table as it was.
    """
    name = table.name
    index_columns = [_index_column(rng, item) for item in order.items]
    columns = ", ".join(index_columns)
    keys = ", ".join(_order_by(column) for column in index_columns)
    by, by_place = f"({columns}) INCLUDE (id)", f"({columns}, place)"
    if rng.random() < 0.25:
        by, by_place, keys = f"({columns}, id)", f"({columns}, id)", f"{keys}, id"
    selected = ", ".join(["id"] + [column.name for column in table.columns])
    before = ["BEGIN"] + _changes(rng, name) + [
        f"CREATE TABLE copied AS SELECT *, (row_number() OVER ())::int AS place FROM {name}"]
    got = f"SELECT differential.clustered({_quoted(f'{name} {by}')}, '{name}', '{selected}')"
    want = f"SELECT differential.clustered({_quoted(f'{name} {by}')}, 'copied', '{selected}', {_quoted(f'copied {by_place}')})"
    ranks = f"SELECT record_send(ROW({selected})), dense_rank() OVER (ORDER BY {keys}) FROM {name}"
    settings = [("maintenance_work_mem", rng.choice(["1MB", "4MB", "64MB"])), ("enable_indexscan", rng.choice(["off"] * 5 + ["on"])),
                ("gpusort.debug_plan", "on"), ("gpusort.log_min_duration", "0"), ("client_min_messages", "notice")]
    return _case("cluster", order, selected, got, want, ranks=ranks, explain="SELECT", settings=settings, before=before)


WRAPPERS = [_plain] * 6 + [_key_alone] * 2 + [_limit] * 3 + [_cursor] * 2 + [_window, _distinct_on, _lateral, _prepared, _parallel, _ranges, _index, _gin, _cluster, _presorted] * 2 + [
    _joined, _group, _merge_join, _locked]

NAMED_WRAPPERS = {wrapper.__name__.strip("_"): wrapper for wrapper in WRAPPERS}

# For large tables: those that do not take long.
LARGE_WRAPPERS = [_plain, _plain, _key_alone, _limit, _limit, _limit, _limit, _prepared, _parallel, _ranges, _index, _gin, _cluster, _presorted]


def random_settings(rng):
    engine = rng.choice(["cpu", "cpu", "cuda"])
    settings = [("work_mem", rng.choice(WORK_MEMS)), ("gpusort.engine", engine), ("gpusort.verify", rng.choice(["on", "off"]))]
    if engine == "cuda":
        settings += [("gpusort.device_min_rows", rng.choice(["0", "0", "50", "1000"])),
                     ("gpusort.algorithm", rng.choice(["radix", "merge"])),
                     ("gpusort.device_session_sorts", rng.choice(["32", "32", "32", "1"]))]
    if rng.random() < 0.3:
        settings += [("gpusort.force", "off"), ("gpusort.min_rows", "0")]  # few rows are sorted without an engine
    return settings


def random_case(rng, table, collations, keep=None, only=None):
    """A case; the same one with only some of its sort items, if keep has their numbers.

    only: a wrapper's name, if all cases have that one.
    """
    settings = random_settings(rng)
    wrapper = rng.choice(WRAPPERS if table.size < LARGE else LARGE_WRAPPERS)
    wrapper = NAMED_WRAPPERS.get(only, wrapper)
    items = random_items(rng, table, collations)
    order = Order(rng, items if keep is None else [items[i] for i in keep], table)
    case = wrapper(rng, table, order)
    return case._replace(settings=settings + case.settings, columns=[item.column for item in case.columns])
