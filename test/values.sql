-- values.sql
--     Hostile values of every type with a btree order, as literals: the ends of its
--     range, infinities, equal values with different bytes, empty values, values
--     that differ only after a long common prefix.
--
-- Tests load it into a schema of their own.  Types of contrib modules are included,
-- whether the module is installed or not.  t/008_types.pl fails if a type with a btree
-- order is missing here.
--
-- Type names have no length: bpchar and "bit", since character is character(1).

CREATE TYPE gs_color AS ENUM ('red', 'green', 'blue');
ALTER TYPE gs_color ADD VALUE 'orange' AFTER 'red';
ALTER TYPE gs_color ADD VALUE 'infrared' BEFORE 'red';
CREATE TYPE gs_pair AS (n numeric, t text COLLATE "C");
CREATE TYPE gs_textrange AS RANGE (SUBTYPE = text, COLLATION = "C");
CREATE DOMAIN gs_positive AS int CHECK (VALUE > 0);
CREATE DOMAIN gs_price AS numeric(12, 2);
CREATE DOMAIN gs_word AS text COLLATE "C";
CREATE DOMAIN gs_numbers AS numeric[];

CREATE TABLE type_values (type text PRIMARY KEY, literals text[] NOT NULL);

INSERT INTO type_values VALUES
-- numbers
('boolean', '{t,f}'),
('"char"', ARRAY['', 'a', 'A', '~', ' ', '0', E'\\200', E'\\377']),
('smallint', '{-32768,-32767,-1,0,1,255,256,32767}'),
('integer', '{-2147483648,-2147483647,-65536,-1,0,1,65536,2147483647}'),
('bigint', '{-9223372036854775808,-9223372036854775807,-4294967296,-1,0,1,4294967296,9223372036854775807}'),
('real', '{-Infinity,-3.4e38,-1,-1e-45,-0,0,1e-45,1e-38,0.1,1,16777216,3.4e38,Infinity,NaN}'),
('double precision', '{-Infinity,-1.7e308,-1,-5e-324,-0,0,5e-324,2.2e-308,0.1,1,9007199254740993,1.7e308,Infinity,NaN}'),
('numeric', ARRAY['NaN', 'Infinity', '-Infinity', '0', '0.000', '-0.0', '1', '1.0', '1.00000000000000000000', '-1', '-1.000',
	'0.1', '0.10', '-0.1', '1e-100', '-1e-100', '1e-16383', '1e100', '1.0e100', '-1e100', '1e131000', '-1e131000',
	'9999', '10000', '10000.0001', '10000.00010', '99999999', '100000000', '9999.9999', '-9999.9999',
	'12345678901234567890', '12345678901234567890.5', '12345678901234567891', '9223372036854775807', '9223372036854775808',
	'0.00001', '0.0001', '0.00010000000000000000000000000000000000000001', '0.9999', '1.0001', '1234.5678', '1234.56780001']),
('money', '{-92233720368547758.08,-0.01,0,0.01,1,92233720368547758.07}'),
('oid', '{0,1,2147483647,2147483648,4294967295}'),
('oid8', '{0,1,4294967296,9223372036854775808,18446744073709551615}'),
('xid8', '{0,1,4294967296,9223372036854775808,18446744073709551615}'),
('pg_lsn', '{0/0,0/1,0/FFFFFFFF,1/0,FFFFFFFF/FFFFFFFF}'),
('tid', '{"(0,0)","(0,1)","(0,65535)","(1,0)","(4294967295,0)","(4294967295,65535)"}'),
('oidvector', ARRAY['', '0', '1', '4294967295', '1 2', '2 1', '1 2 3', '0 0 0 0', '4294967295 1']),
-- dates and times
('date', '{-infinity,4714-11-24 BC,0001-01-01 BC,1999-12-31,2000-01-01,2000-01-02,5874897-12-31,infinity}'),
('time without time zone', '{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}'),
('time with time zone', '{00:00+00,00:00-15:59,00:00+15:59,12:00+00,13:00+01,11:00-01,24:00+15:59,24:00-15:59}'),
('timestamp without time zone', '{-infinity,4714-11-24 00:00 BC,1999-12-31 23:59:59.999999,2000-01-01,294276-12-31 23:59:59.999999,infinity}'),
('timestamp with time zone', '{-infinity,4714-11-25 00:00+00 BC,1999-12-31 23:59:59.999999+00,2000-01-01+00,2000-01-01+01,294276-12-31 00:00+00,infinity}'),
('interval', ARRAY['0', '1 mon', '30 days', '720 hours', '1 mon -30 days', '-1 mon', '1 day', '24 hours', '-1 day', '1 us', '-1 us',
	'178000000 years', '-178000000 years', '2147483647 days', '-2147483648 days']),
-- addresses and names of things
('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-ffff-ffffffffffff,00000000-0000-0001-0000-000000000000,7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}'),
('inet', '{0.0.0.0,0.0.0.0/0,10.0.0.0/8,10.0.0.0/9,10.0.0.0,10.0.0.1/8,10.255.255.255,255.255.255.255,::,::/0,::1,::ffff:10.0.0.1,fe80::/10,fe80::1/10,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}'),
('cidr', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/9,10.0.0.0/32,255.255.255.255/32,::/0,::/128,fe80::/10,fe80::/11}'),
('macaddr', '{00:00:00:00:00:00,00:00:00:00:00:01,01:00:00:00:00:00,7f:ff:ff:ff:ff:ff,80:00:00:00:00:00,ff:ff:ff:ff:ff:ff}'),
('macaddr8', '{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,00:00:00:00:01:00:00:00,7f:ff:ff:ff:ff:ff:ff:ff,80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}'),
('gs_color', '{infrared,red,orange,green,blue}'),
-- strings
('text', ARRAY['', ' ', 'a', 'A', 'aa', 'ab', 'a b', 'a-b', 'a_b', 'AB', 'b', 'B', E'a\001', E'a\001b', 'abcdefg', 'abcdefgh', 'abcdefghi',
	'abcdefgh ', 'abcdefghabcdefgh', 'abcdefghabcdefghi', 'ä', 'Ä', E'a\u0308', 'ae', 'æ', 'z', 'Z', 'ß', 'ss', '9', '10', '010', E'\u2028', E'\U0001F600', E'\uFFFD',
	'https://www.example.org/articles/1', 'https://www.example.org/articles/10', 'https://www.example.org/articles/2']),
('character varying', ARRAY['', ' ', 'a', 'A', 'a ', 'aa', 'ab', 'abcdefgh', 'abcdefghi', 'ä']),
('bpchar', ARRAY['', 'a', 'a b', 'A', 'aa', E'a\t', 'abcdefgh', 'abcdefghi', 'ä', '~']),
('name', ARRAY['', ' ', 'a', 'A', 'aa', 'abcdefgh', 'abcdefghi', 'ä', repeat('n', 62), repeat('n', 63)]),
('bytea', ARRAY['\x', '\x00', '\x0000', '\x0001', '\x01', '\x7f', '\x80', '\xff', '\xff00', '\x0000000000000000', '\x000000000000000000',
	'\x00000000000000ff', '\xffffffffffffffff', '\xffffffffffffffffff']),
('"bit"', ARRAY['', '0', '1', '00', '01', '10', '00000000', '000000000', '11111111', '111111110', '111111111', repeat('1', 64), repeat('1', 65)]),
('bit varying', ARRAY['', '0', '1', '00', '01', '10', '00000000', '000000000', '11111111', '111111110', '111111111', repeat('1', 64), repeat('1', 65)]),
-- composed of others
('integer[]', ARRAY['{}', '{NULL}', '{0}', '{1}', '{-1}', '{1,NULL}', '{1,2}', '{1,2,3}', '{2}', '{{1,2},{3,4}}', '{1,2,3,4}', '{{1},{2},{3},{4}}', '[0:1]={1,2}', '[5:5]={1}',
	'{-2147483648}', '{2147483647}']),
('bigint[]', ARRAY['{}', '{NULL}', '{0}', '{-1}', '{1,NULL}', '{1,2}', '{NULL,1}', '{9223372036854775807}', '{-9223372036854775808}', '[-3:-2]={1,2}']),
('numeric[]', ARRAY['{}', '{NULL}', '{NaN}', '{1}', '{1.0}', '{1.00,2}', '{1,2.0}', '{Infinity}', '{-Infinity,1}', '{{1,2}}', '{1e100}', '{0.1}']),
('double precision[]', ARRAY['{}', '{NULL}', '{NaN}', '{0}', '{-0}', '{-0,1}', '{0,1}', '{Infinity}', '{-Infinity}']),
('text[]', ARRAY['{}', '{NULL}', '{""}', '{"",""}', '{a}', '{a,NULL}', '{a,b}', '{aa}', '{ab}', '{b}', '{{a,b},{c,d}}', '{a,b,c,d}', '{abcdefgh}', '{abcdefghi}', '{ä}', '{A}']),
('gs_color[]', ARRAY['{}', '{red}', '{infrared,blue}', '{red,NULL}', '{orange}']),
('gs_positive[]', ARRAY['{}', '{1}', '{1,2}', '{2147483647}', '{NULL}']),
('gs_numbers', ARRAY['{}', '{1}', '{1.0,2}', '{NaN}', '{NULL}']),
('date[]', ARRAY['{}', '{infinity}', '{-infinity,2000-01-01}', '{2000-01-01}', '{NULL,2000-01-01}']),
('int4range', ARRAY['empty', '(,)', '(,1)', '(1,)', '[1,1]', '[1,2]', '[1,2)', '(1,3)', '[0,5)', '[-2147483648,0)', '[1,2147483647)']),
('int8range', ARRAY['empty', '(,)', '(,1)', '(1,)', '[1,1]', '[1,2]', '(1,3)', '[-9223372036854775808,0)']),
('numrange', ARRAY['empty', '(,)', '(,1)', '(,1.0]', '(1,)', '[1,)', '[1.0,2]', '[1,2.00)', '(1,2)', '(1,2]', '[1,NaN]', '[-Infinity,1]', '[1e100,)']),
('daterange', ARRAY['empty', '(,)', '[2000-01-01,2000-01-02)', '[2000-01-01,infinity)', '[-infinity,2000-01-01)', '(,2000-01-01)']),
('tsrange', ARRAY['empty', '(,)', '[2000-01-01,2000-01-02)', '(2000-01-01,2000-01-02]', '[2000-01-01,infinity]', '(,2000-01-01)']),
('tstzrange', ARRAY['empty', '(,)', '[2000-01-01 00:00+00,2000-01-02 00:00+00)', '[2000-01-01 01:00+01,)', '(,infinity)']),
('gs_textrange', ARRAY['empty', '(,)', '[a,b)', '[a,b]', '(a,b)', '[,a)', '["",a)', '[abcdefgh,abcdefghi)', '[A,a]']),
('int4multirange', ARRAY['{}', '{(,)}', '{[1,2)}', '{[1,3)}', '{[1,2),[5,6)}', '{[1,2),[5,7)}', '{(,1),(5,)}']),
('int8multirange', ARRAY['{}', '{(,)}', '{[1,2)}', '{[1,2),[5,6)}', '{(,1)}']),
('nummultirange', ARRAY['{}', '{(,)}', '{[1,2)}', '{[1.0,2)}', '{[1,2),[5,6]}', '{(,1)}', '{[NaN,NaN]}']),
('datemultirange', ARRAY['{}', '{(,)}', '{[2000-01-01,2000-01-02)}', '{(,2000-01-01),[2001-01-01,infinity)}']),
('tsmultirange', ARRAY['{}', '{(,)}', '{[2000-01-01,2000-01-02)}', '{[2000-01-01,2000-01-02),(2001-01-01,)}']),
('tstzmultirange', ARRAY['{}', '{(,)}', '{[2000-01-01 00:00+00,2000-01-02 00:00+00)}']),
('gs_pair', ARRAY['(,)', '(1,a)', '(1.0,a)', '(1,b)', '(1,)', '(,a)', '(NaN,"")', '(-1,abcdefghi)', '(2,A)']),
('gs_positive', '{1,2,65536,2147483647}'),
('gs_price', '{-9999999999.99,-0.01,0,0.01,9999999999.99,NaN}'),
('gs_word', '{"",a,A,ab,abcdefghi,ä}'),
-- documents
('jsonb', ARRAY['null', 'true', 'false', '0', '0.0', '-1', '1', '1.00', '1e100', '""', '"a"', '"A"', '"ab"', '[]', '[1]', '[1.0]', '[2]', '[1, 2]', '[null]', '[[]]', '{}', '{"a": 1}', '{"b": 1}',
	'{"a": 2}', '{"a": 1, "b": 2}', '{"aa": 1}', '{"a": {"b": []}}', '"ä"', '"\u0001"', '"abcdefgh"', '"abcdefghi"', '-1e16000', '1e16000', '1e-16000', '[[1], {}]', '[{}, [1]]', '{"A": 1}', '{"": 1}',
	'{"a": [1, 2]}', '{"b": 1, "a": 2}', (SELECT jsonb_agg(i)::text FROM generate_series(1, 128) i), (SELECT jsonb_agg(i)::text FROM generate_series(1, 300) i),
	(SELECT jsonb_object_agg('k' || i, i)::text FROM generate_series(1, 255) i), '{"a": "' || repeat('x', 3000) || '", "b": 1}', '{"a": "' || repeat('x', 3000) || '", "b": 2}']),
('tsvector', ARRAY['', 'a', 'b', 'a b', 'ab', 'a:1', 'a:1,2', 'a:1A', 'abcdefgh', 'abcdefghi']),
('tsquery', ARRAY['', 'a', 'b', 'a & b', 'a | b', '!a', 'a <-> b', 'a <2> b', 'a:*', 'a:A', '(a | b) & c']),
-- contrib modules
('citext', ARRAY['', 'a', 'A', 'aa', 'Ab', 'aB', 'b', 'B', 'abcdefgh', 'ABCDEFGHI', 'ä', 'Ä', 'z', 'Z']),
('hstore', ARRAY['', 'a=>1', 'a=>2', 'a=>NULL', 'b=>1', 'a=>1,b=>2', 'aa=>1', '""=>""']),
('ltree', ARRAY['', 'a', 'a.b', 'a.b.c', 'A', 'b', 'aa', 'a.a', 'ab.c', 'Top.Science.Astronomy']),
-- no NaN: a cube with one is equal to all others, so there is no order
('cube', ARRAY['(0)', '(1)', '(1,2)', '(1),(2)', '(1,2),(3,4)', '(3,4),(1,2)', '(0,0,0)', '(-1)', '(Infinity)', '(0),(0)']),
('seg', ARRAY['0', '1', '1.0', '1 .. 2', '1..', '..1', '<1', '>1', '~1', '1 .. 1', '-1', '1.50', '1.5']),
('ean13', '{9780123456786,2000000000008,4006381333931,5901234123457,9790260000438,9771436452510}'),
('isbn13', '{978-0-306-40615-7,978-0-11-000533-1,979-10-90636-07-1,978-0-393-04002-9}'),
('isbn', '{0-306-40615-2,0-11-000533-3,0-393-04002-X}'),
('ismn13', '{979-0-2600-0043-8,979-0-2306-7118-7,979-0-3452-4680-5}'),
('ismn', '{M-2600-0043-8,M-2306-7118-7,M-3452-4680-5}'),
('issn13', '{977-1436-4525-10,977-0317-8471-00,977-1050-1240-08}'),
('issn', '{1436-4522,0317-8471,1050-124X}'),
('upc', '{220356483481,036000291452,012345678905}'),
-- PostGIS: empty values have no abbreviated key, values with the same bounding box have equal ones
('geometry', ARRAY['POINT EMPTY', 'POLYGON EMPTY', 'SRID=4326;POINT EMPTY', 'POINT(0 0)', 'SRID=4326;POINT(0 0)', 'POINT(-1 -1)', 'POINT(1 1)', 'POINT(1 1.0000000001)',
	'POINT(-180 90)', 'POINT(1e300 -1e300)', 'POINT(5e-324 0)', 'POINT Z (1 1 1)', 'POINT M (1 1 1)', 'LINESTRING(0 0,1 1)', 'LINESTRING(1 1,0 0)', 'LINESTRING(0 1,1 0)',
	'LINESTRING(0 0,1 0,1 1)', 'POLYGON((0 0,0 1,1 1,1 0,0 0))', 'POLYGON((0 0,1 0,1 1,0 1,0 0))', 'MULTIPOINT(0 0,1 1)', 'GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(0 0,1 1))',
	(SELECT 'LINESTRING(' || string_agg(hashint4(i) || ' ' || hashint4(-i), ',' ORDER BY i) || ')' FROM generate_series(1, 2000) i)]),
('geography', ARRAY['POINT EMPTY', 'POINT(0 0)', 'POINT(-1 -1)', 'POINT(1 1)', 'POINT(180 90)', 'POINT Z (1 1 1)', 'LINESTRING(0 0,1 1)', 'LINESTRING(1 1,0 0)',
	'POLYGON((0 0,0 1,1 1,1 0,0 0))']);
