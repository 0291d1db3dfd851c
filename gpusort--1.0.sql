/* gpusort--1.0.sql */

\echo Use "CREATE EXTENSION gpusort" to load this file. \quit

CREATE FUNCTION gpusort_version() RETURNS text
AS 'MODULE_PATHNAME', 'gpusort_version'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_version() IS 'version of the gpusort library';

CREATE FUNCTION gpusort_service_status(
	OUT state text,
	OUT detail text,
	OUT device text,
	OUT device_kind text,
	OUT memory_total bigint,
	OUT memory_limit bigint,
	OUT memory_used bigint,
	OUT jobs integer,
	OUT waiting integer,
	OUT jobs_done bigint,
	OUT pid integer)
AS 'MODULE_PATHNAME', 'gpusort_service_status'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpusort_service_status() IS
	'state and load of gpusortd, the process that owns the device';

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
