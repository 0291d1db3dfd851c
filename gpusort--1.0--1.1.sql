/* gpusort--1.0--1.1.sql */

\echo Use "ALTER EXTENSION gpusort UPDATE TO '1.1'" to load this file. \quit

DROP FUNCTION gpusort_advise(float8, integer);
