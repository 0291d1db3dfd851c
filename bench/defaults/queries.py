"""The tables, and the statements as people write them."""

from collections import namedtuple

import documents

LOCALE = "en_US.UTF-8"

# About the size of a row of orders, with its header.
BYTES_PER_ROW = 140

# SELECT: only read.  WRITE: creates a table from a query.  BUILD: builds an index, or sorts a table.
SELECT, WRITE, BUILD = "select", "write", "build"

# prepare and undo run before and after each run, and are not timed.
Case = namedtuple("Case", "name sql kind prepare undo", defaults=(SELECT, None, None))


def _build(name, index, unique=""):
    return Case(f"index-{name}", f"CREATE {unique}INDEX built ON orders ({index})", BUILD, undo="DROP INDEX built")


def _build_concurrently(name, index, method="btree"):
    return Case(f"index-{name}-concurrently", f"CREATE INDEX CONCURRENTLY built ON orders USING {method} ({index})", BUILD,
                undo="DROP INDEX built")


def _build_gin(name, index):
    return Case(f"index-gin-{name}", f"CREATE INDEX built ON documents USING gin ({index})", BUILD, undo="DROP INDEX built")


def _rebuild(name, index):
    return Case(f"reindex-{name}", "REINDEX INDEX built", BUILD, prepare=f"CREATE INDEX built ON orders ({index})",
                undo="DROP INDEX built")


def _copy(name, sql, index, setting="enable_indexscan = off"):
    """By a sort, unless the setting leaves that to the planner, which scans the index of a table that it expects in the cache."""
    return Case(name, sql, BUILD,
                prepare=f"CREATE TABLE sorted AS SELECT * FROM orders; CREATE INDEX sorted_by ON sorted ({index}); "
                        f"ANALYZE sorted; SET {setting}",
                undo="DROP TABLE sorted; RESET enable_indexscan")


def _cluster(name, index, **how):
    return _copy(f"cluster-{name}", "CLUSTER sorted USING sorted_by", index, **how)


CASES = [
    Case("order-bigint", "SELECT * FROM orders ORDER BY id"),
    Case("order-bigint-narrow", "SELECT id FROM orders ORDER BY id"),
    Case("order-text", "SELECT * FROM orders ORDER BY name"),
    Case("order-text-narrow", "SELECT name FROM orders ORDER BY name"),
    Case("order-timestamp", "SELECT * FROM orders ORDER BY created"),
    Case("order-timestamp-narrow", "SELECT id, created FROM orders ORDER BY created DESC"),
    Case("order-date-bigint", "SELECT * FROM orders ORDER BY day, id"),
    Case("order-date-bigint-narrow", "SELECT day, id FROM orders ORDER BY day, id"),
    Case("order-numeric", "SELECT * FROM orders ORDER BY amount"),
    Case("order-numeric-narrow", "SELECT id, amount FROM orders ORDER BY amount DESC"),
    Case("order-few-values", "SELECT * FROM orders ORDER BY status, created"),
    Case("order-filtered", "SELECT * FROM orders WHERE status = 'returned' ORDER BY created"),
    Case("top-10", "SELECT * FROM orders ORDER BY created DESC LIMIT 10"),
    Case("top-10000", "SELECT * FROM orders ORDER BY created DESC LIMIT 10000"),
    Case("top-10-text", "SELECT * FROM orders ORDER BY name LIMIT 10"),
    Case("top-10000-text", "SELECT * FROM orders ORDER BY name LIMIT 10000"),
    Case("page-text", "SELECT * FROM orders ORDER BY name, id OFFSET 20000 LIMIT 50"),
    Case("distinct-on", "SELECT DISTINCT ON (customer) * FROM orders ORDER BY customer, created DESC"),
    Case("distinct-text", "SELECT DISTINCT name FROM orders ORDER BY name"),
    Case("window-row-number",
         "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY created) FROM orders"),
    Case("window-row-number-all",
         "SELECT *, row_number() OVER (PARTITION BY customer ORDER BY created DESC) FROM orders"),
    Case("window-sum", "SELECT id, sum(amount) OVER (ORDER BY created, id) FROM orders"),
    Case("window-sum-group", "SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY created) FROM orders"),
    Case("window-top-3", "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY created DESC) AS n FROM orders) o "
                         "WHERE n <= 3"),
    Case("window-lag", "SELECT id, amount - lag(amount) OVER (PARTITION BY customer ORDER BY created) FROM orders"),
    Case("window-rank-text", "SELECT id, rank() OVER (PARTITION BY status ORDER BY name) FROM orders"),
    Case("join", "SELECT o.id, o.amount, p.paid FROM orders o JOIN payments p ON p.order_id = o.id"),
    Case("join-order",
         "SELECT o.id, o.amount, p.paid FROM orders o JOIN payments p ON p.order_id = o.id ORDER BY o.id"),
    Case("join-full", "SELECT o.id, o.name, p.amount FROM orders o FULL JOIN payments p ON p.order_id = o.id "
                      "WHERE o.amount IS DISTINCT FROM p.amount"),
    Case("join-text",
         "SELECT a.name, a.id, b.id FROM orders a JOIN orders b ON b.name = a.name AND b.id <> a.id ORDER BY a.name"),
    Case("join-first-last",
         "SELECT * FROM (SELECT DISTINCT ON (customer) * FROM orders ORDER BY customer, created) AS f "
         "JOIN (SELECT DISTINCT ON (customer) * FROM orders ORDER BY customer, created DESC) AS l USING (customer)"),
    Case("join-last", "SELECT o.*, l.last FROM orders o JOIN (SELECT customer, max(created) AS last FROM orders "
                      "GROUP BY customer) AS l USING (customer) ORDER BY customer"),
    Case("group-text", "SELECT name, count(*), sum(amount) FROM orders GROUP BY name ORDER BY name"),
    Case("group-sorted-aggregate",
         "SELECT customer, string_agg(status, ', ' ORDER BY created) FROM orders GROUP BY customer"),
    Case("group-array", "SELECT customer, array_agg(id ORDER BY id) FROM orders GROUP BY customer"),
    Case("group-median", "SELECT day, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders GROUP BY day"),
    Case("count-distinct", "SELECT count(DISTINCT customer) FROM orders"),
    Case("count-distinct-text", "SELECT count(DISTINCT name) FROM orders"),
    Case("count-distinct-group", "SELECT day, count(DISTINCT customer) FROM orders GROUP BY day"),
    _build("bigint", "id"),
    _build("text", "name"),
    _build("two-columns", "customer, created"),
    _build("unique", "id", "UNIQUE "),
    _rebuild("bigint", "id"),
    _rebuild("text", "name"),
    _build_concurrently("bigint", "id"),
    _build_concurrently("text", "name"),
    _build_concurrently("hash", "id", "hash"),   # only the validation is gpusort's
    Case("reindex-bigint-concurrently", "REINDEX INDEX CONCURRENTLY built", BUILD, prepare="CREATE INDEX built ON orders (id)",
         undo="DROP INDEX built"),
    _build_gin("array", "a"),
    _build_gin("tsvector", "v"),
    _build_gin("jsonb", "j jsonb_path_ops"),
    _build_gin("trigram", "t gin_trgm_ops"),
    _cluster("bigint", "id"),
    _cluster("bigint-as-planned", "id", setting="enable_indexscan = on"),   # PostgreSQL scans the index
    _cluster("text", "name"),
    _cluster("numeric", "amount"),
    _copy("vacuum-full-bigint", "VACUUM FULL sorted", "id"),    # the same copy without a sort: a bound of CLUSTER
    Case("create-table", "CREATE TABLE made AS SELECT * FROM orders ORDER BY created", WRITE, undo="DROP TABLE made"),
    Case("create-table-text", "CREATE TABLE made AS SELECT * FROM orders ORDER BY name", WRITE, undo="DROP TABLE made"),
]


def by_name(name):
    return next(case for case in CASES if case.name == name)


def _hash(seed, of="g"):
    """A number of 63 bits."""
    return f"(hashint8extended({of}, {seed}) & 9223372036854775807)"


def _word(seed, of):
    """Six letters, the first a capital."""
    letters = f"translate(lpad(to_hex({_hash(seed, of)} & 16777215), 6, '0'), '0123456789', 'ghijklmnop')"
    return f"initcap({letters})"


def fill(server, session, rows):
    """Makes the tables, the same in every run.

    A name occurs about twice, a customer has about ten orders, nine of ten orders are paid, and one of ten has a document.
    """
    named = f"g % {rows // 2 + 1}"
    session.run(f"""
        DROP TABLE IF EXISTS orders, payments, documents;
        CREATE TABLE orders (
            id bigint, customer int, day date, created timestamp, amount numeric(10,2), name text, status text,
            note text);
        INSERT INTO orders
        SELECT {_hash(1)}, {_hash(2)} % {rows // 10 + 1}, created, created, ({_hash(3)} % 1000000)::numeric / 100,
               {_word(4, named)} || ' ' || {_word(5, named)},
               (ARRAY['new', 'paid', 'shipped', 'delivered', 'returned'])[1 + {_hash(6)} % 5], repeat('-', 40)
        FROM (SELECT g, timestamp '2023-01-01' + {_hash(7)} % 94608000000000 * interval '1 microsecond' AS created
              FROM generate_series(1::bigint, {rows}) AS g) AS s;
        CREATE TABLE payments (order_id bigint, paid timestamp, amount numeric(10,2));
        INSERT INTO payments SELECT id, created + interval '1 day', amount FROM orders WHERE customer % 10 > 0;
        VACUUM (FREEZE, ANALYZE) orders, payments""")
    documents.fill(server, max(rows // 10, 1), "documents", storage="")
    session.run("CHECKPOINT")


def count_autovacuums(session):
    """How often autovacuum has worked on the tables."""
    return int(session.run("SELECT sum(autovacuum_count + autoanalyze_count) FROM pg_stat_user_tables"))
