-- Keys that are uuids, hardware and network addresses, row addresses.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT setseed(0.7);
CREATE TEMP TABLE t AS SELECT id,
	pg_temp.pick('{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,
				   00000000-0000-0000-8000-000000000000,00000000-0000-0001-0000-000000000000,
				   7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,
				   ffffffff-ffff-ffff-fffe-ffffffffffff,ffffffff-ffff-ffff-ffff-ffffffffffff}'::uuid[]) AS u,
	md5(random()::text)::uuid AS random_u,
	pg_temp.pick('{00:00:00:00:00:00,00:00:00:00:00:01,7f:ff:ff:00:00:00,80:00:00:00:00:00,ff:ff:ff:ff:ff:ff}'::macaddr[]) AS m,
	pg_temp.pick('{00:00:00:00:00:00:00:00,00:00:00:00:80:00:00:01,7f:ff:ff:ff:ff:ff:ff:ff,
				   80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}'::macaddr8[]) AS m8,
	pg_temp.pick('{"(0,0)","(0,1)","(1,0)","(0,65535)","(65536,1)","(2147483648,1)","(4294967295,65535)"}'::tid[]) AS p
FROM generate_series(1, 200) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{u,random_u,m,m8,p}'::text[]) col;

-- networks: by family, then the bits common to both prefix lengths, then the prefix
-- length, then the rest of the address
SELECT setseed(0.8);
CREATE TEMP TABLE nets AS SELECT id,
	pg_temp.pick('{0.0.0.0/0,0.0.0.0/1,0.0.0.0/32,0.0.0.1/0,128.0.0.0/0,128.0.0.0/1,10.0.0.0/8,10.1.2.3/8,10.0.0.1/8,
				   10.0.0.0/9,10.128.0.0/9,10.1.2.3/32,10.1.2.3/31,10.1.2.2/31,10.1.2.3/24,10.1.2.4/24,
				   255.255.255.255/32,255.255.255.255/0,255.255.255.254/31,
				   ::/0,::/128,::1/128,::1/0,::1/64,fe80::/10,fe80::1/10,fe80::1/64,fe80::1:2:3:4/64,
				   ::ffff:10.1.2.3/128,::10.1.2.3/96,2001:db8::/32,2001:db8::1/32,2001:db8:8000::/33,
				   ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/0}'::inet[]) AS i,
	pg_temp.pick('{0.0.0.0/0,0.0.0.0/32,10.0.0.0/8,10.0.0.0/9,10.128.0.0/9,10.0.0.0/32,255.255.255.255/32,
				   ::/0,::/128,::1/128,fe80::/10,fe80::/64,2001:db8::/32,2001:db8:8000::/33}'::cidr[]) AS c
FROM generate_series(1, 600) id;
SELECT pg_temp.check_column('nets', col) FROM unnest('{i,c}'::text[]) col;
SELECT string_agg(i::text, ' ') FROM (SELECT DISTINCT i FROM nets WHERE family(i) = 4 ORDER BY i) x;
SELECT string_agg(i::text, ' ') FROM (SELECT DISTINCT i FROM nets WHERE family(i) = 6 ORDER BY i DESC) x;

-- any address with any prefix length; also IPv4 alone
CREATE TEMP TABLE random_nets AS SELECT id,
	set_masklen(('10.' || (random() * 1)::int || '.' || (random() * 255)::int || '.' || (random() * 255)::int)::inet, (random() * 32)::int) AS v4,
	set_masklen((CASE id % 3 WHEN 0 THEN '2001:db8::' ELSE 'fe80:' || (id % 4) || '::' END || to_hex((random() * 65535)::int))::inet, (random() * 128)::int) AS v6
FROM generate_series(1, 1000) id;
SELECT pg_temp.check_column('random_nets', 'v4'), pg_temp.check_column('random_nets', 'v6');
SELECT pg_temp.check_column('random_nets', 'v4::cidr') ~ '0 wrong' AS ok, pg_temp.rows_ok('random_nets', 'masklen(v4), v6 DESC, v4');

-- the addresses of rows
CREATE TEMP TABLE pages AS SELECT id, repeat('x', 500) AS filler FROM generate_series(1, 300) id;
SELECT pg_temp.same('SELECT ctid, id FROM pages ORDER BY ctid DESC', 'SELECT ctid, id FROM pages ORDER BY id DESC');
