/* gpusort--1.0.sql */

\echo Use "CREATE EXTENSION gpusort" to load this file. \quit

CREATE FUNCTION gpusort_version() RETURNS text
AS 'MODULE_PATHNAME', 'gpusort_version'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_version() IS 'version of the gpusort library';
