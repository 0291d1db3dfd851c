/* gpusort--1.1.sql */

\echo Use "CREATE EXTENSION gpusort" to load this file. \quit

CREATE FUNCTION gpusort_version() RETURNS text
AS 'MODULE_PATHNAME', 'gpusort_version'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_version() IS 'version of the gpusort library';

CREATE FUNCTION gpusort_service_status(
	OUT device_number integer,
	OUT state text,
	OUT detail text,
	OUT device text,
	OUT device_kind text,
	OUT memory_total bigint,
	OUT memory_limit bigint,
	OUT memory_used bigint,
	OUT memory_lent bigint,
	OUT jobs integer,
	OUT waiting integer,
	OUT jobs_done bigint,
	OUT pid integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_service_status'
LANGUAGE C VOLATILE PARALLEL RESTRICTED
ROWS 1;

COMMENT ON FUNCTION gpusort_service_status() IS
	'state and load of gpusortd, the process that owns a device, for each device';

CREATE FUNCTION gpusort_calibrate(
	OUT rows bigint,
	OUT cpu_ms float8,
	OUT device_ms float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_calibrate'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- it uses the whole device for seconds
REVOKE ALL ON FUNCTION gpusort_calibrate() FROM PUBLIC;

COMMENT ON FUNCTION gpusort_calibrate() IS
	'measures the number of rows from which the device is faster, and sets gpusort.device_min_rows to it for the session';

-- statistics; docs/monitoring.md has the columns

CREATE FUNCTION pg_stat_get_gpusort(
	OUT datid oid,
	OUT sorts_small bigint,
	OUT sorts_cpu bigint,
	OUT sorts_device bigint,
	OUT sorts_postgres bigint,
	OUT index_builds_cpu bigint,
	OUT index_builds_device bigint,
	OUT index_builds_postgres bigint,
	OUT aborted bigint,
	OUT rows bigint,
	OUT device_bytes_sent bigint,
	OUT device_bytes_received bigint,
	OUT temp_bytes bigint,
	OUT input_time float8,
	OUT sort_time float8,
	OUT output_time float8,
	OUT fallbacks_memory bigint,
	OUT fallbacks_key bigint,
	OUT fallbacks_order bigint,
	OUT device_refusals_unavailable bigint,
	OUT device_refusals_memory bigint,
	OUT device_refusals_session bigint,
	OUT device_refusals_key bigint,
	OUT orders_repaired bigint,
	OUT device_faults bigint,
	OUT index_validations bigint,
	OUT index_validations_postgres bigint,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_stat_databases'
LANGUAGE C VOLATILE PARALLEL RESTRICTED
ROWS 10;

COMMENT ON FUNCTION pg_stat_get_gpusort() IS 'statistics: what gpusort has sorted, by database';

CREATE VIEW pg_stat_gpusort AS
	SELECT s.datid, d.datname, s.sorts_small, s.sorts_cpu, s.sorts_device, s.sorts_postgres,
		s.index_builds_cpu, s.index_builds_device, s.index_builds_postgres, s.aborted,
		s.rows, s.device_bytes_sent, s.device_bytes_received, s.temp_bytes,
		s.input_time, s.sort_time, s.output_time,
		s.fallbacks_memory, s.fallbacks_key, s.fallbacks_order,
		s.device_refusals_unavailable, s.device_refusals_memory, s.device_refusals_session,
		s.device_refusals_key, s.orders_repaired, s.device_faults,
		s.index_validations, s.index_validations_postgres, s.stats_reset
	FROM pg_stat_get_gpusort() s
	LEFT JOIN pg_catalog.pg_database d ON d.oid = s.datid
	WHERE d.oid IS NOT NULL OR s.datid = 0;

GRANT SELECT ON pg_stat_gpusort TO PUBLIC;

CREATE FUNCTION pg_stat_get_gpusort_activity(
	OUT pid integer,
	OUT datid oid,
	OUT operation text,
	OUT phase text,
	OUT engine text,
	OUT device_numbers integer[],
	OUT rows bigint,
	OUT sort_start timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_stat_activity'
LANGUAGE C VOLATILE PARALLEL RESTRICTED
ROWS 10;

COMMENT ON FUNCTION pg_stat_get_gpusort_activity() IS 'statistics: the processes in which gpusort sorts';

CREATE VIEW pg_stat_gpusort_activity AS
	SELECT a.pid, a.datid, d.datname, a.operation, a.phase, a.engine, a.device_numbers, a.rows, a.sort_start
	FROM pg_stat_get_gpusort_activity() a
	LEFT JOIN pg_catalog.pg_database d ON d.oid = a.datid;

GRANT SELECT ON pg_stat_gpusort_activity TO PUBLIC;

CREATE FUNCTION pg_stat_get_gpusort_device(
	OUT device_number integer,
	OUT device text,
	OUT state text,
	OUT memory_total bigint,
	OUT memory_limit bigint,
	OUT memory_used bigint,
	OUT memory_lent bigint,
	OUT sorts_running integer,
	OUT sorts_waiting integer,
	OUT sorts bigint,
	OUT bytes_in bigint,
	OUT bytes_out bigint,
	OUT busy_time float8,
	OUT failures bigint,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_stat_device'
LANGUAGE C VOLATILE PARALLEL RESTRICTED
ROWS 1;

COMMENT ON FUNCTION pg_stat_get_gpusort_device() IS 'statistics: the devices of gpusort';

CREATE VIEW pg_stat_gpusort_device AS
	SELECT * FROM pg_stat_get_gpusort_device();

GRANT SELECT ON pg_stat_gpusort_device TO PUBLIC;

CREATE FUNCTION pg_stat_gpusort_reset() RETURNS void
AS 'MODULE_PATHNAME', 'gpusort_stat_reset'
LANGUAGE C VOLATILE PARALLEL SAFE;

REVOKE ALL ON FUNCTION pg_stat_gpusort_reset() FROM PUBLIC;

COMMENT ON FUNCTION pg_stat_gpusort_reset() IS
	'statistics: reset those of gpusort in all databases';

-- advice; docs/what-would-gain.md has the columns

CREATE FUNCTION gpusort_advise_indexes(
	min_gain_percent float8 DEFAULT 5,
	OUT indexrelid regclass,
	OUT indrelid regclass,
	OUT size bigint,
	OUT rows bigint,
	OUT engine text,
	OUT estimated_gain_percent float8,
	OUT reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_advise_indexes'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 100;

COMMENT ON FUNCTION gpusort_advise_indexes(float8) IS
	'which btree indexes gpusort would build faster, as the planner estimates it';
