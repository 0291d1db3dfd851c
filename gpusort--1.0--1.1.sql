/* gpusort--1.0--1.1.sql */

\echo Use "ALTER EXTENSION gpusort UPDATE TO '1.1'" to load this file. \quit

DROP FUNCTION gpusort_advise(float8, integer);

-- index_validations, index_validations_postgres

DROP VIEW pg_stat_gpusort;
DROP FUNCTION pg_stat_get_gpusort();

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
