/*-------------------------------------------------------------------------
 *
 * key_codec.h
 *	  Order-preserving codes of fixed-width values.
 *
 * Every function maps a value to an unsigned integer whose unsigned order is the SQL order of the
 * type's default btree operator class, ascending and without NULLs.  The key packing (key_pack.h)
 * adds direction and NULLs, once the ranges of the codes are known.
 *
 * Codes are as narrow as the type (an int4 gives 32 bits), so that several columns fit one 64-bit
 * key word.  The integer and float codes are bijective.  gs_float8_canonical() maps the values
 * that SQL considers equal (-0 and +0; all NaNs) to one code; without it, a stable sort would not
 * keep such ties in input order.
 *
 * C without PostgreSQL; CUDA too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_CODEC_H
#define GPUSORT_KEY_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Marks functions that are compiled for the host, and by nvcc for devices too. */
#ifdef __CUDACC__
#define GS_HOST_DEVICE	static __host__ __device__ inline
#else
#define GS_HOST_DEVICE	static inline
#endif

/* Signed integers: inverting the sign bit makes INT_MIN the smallest code. */
static inline uint64_t
gs_encode_int16(int16_t v)
{
	return (uint16_t) ((uint16_t) v ^ UINT16_C(0x8000));
}

static inline uint64_t
gs_encode_int32(int32_t v)
{
	return (uint32_t) v ^ UINT32_C(0x80000000);
}

static inline uint64_t
gs_encode_int64(int64_t v)
{
	return (uint64_t) v ^ (UINT64_C(1) << 63);
}

static inline int16_t
gs_decode_int16(uint64_t code)
{
	return (int16_t) ((uint16_t) code ^ UINT16_C(0x8000));
}

static inline int32_t
gs_decode_int32(uint64_t code)
{
	return (int32_t) ((uint32_t) code ^ UINT32_C(0x80000000));
}

static inline int64_t
gs_decode_int64(uint64_t code)
{
	return (int64_t) (code ^ (UINT64_C(1) << 63));
}

/*
 * IEEE 754: the bits of non-negative numbers ascend, those of negative numbers
 * descend.  So negative numbers are complemented, and the others get the top bit.
 * Each bit pattern has a code of its own, including NaNs and -0.
 */
static inline uint64_t
gs_encode_float8_bits(uint64_t bits)
{
	return (bits >> 63) ? ~bits : bits | (UINT64_C(1) << 63);
}

static inline uint64_t
gs_decode_float8_bits(uint64_t code)
{
	return (code >> 63) ? code & ~(UINT64_C(1) << 63) : ~code;
}

static inline uint64_t
gs_encode_float4_bits(uint32_t bits)
{
	return (bits >> 31) ? (uint32_t) ~bits : bits | UINT32_C(0x80000000);
}

static inline uint32_t
gs_decode_float4_bits(uint64_t code)
{
	uint32_t	c = (uint32_t) code;

	return (c >> 31) ? c & ~UINT32_C(0x80000000) : ~c;
}

/* Codes of the special values of both types. */
#define GS_FLOAT8_NEG_INF	UINT64_C(0x000FFFFFFFFFFFFF)
#define GS_FLOAT8_NEG_ZERO	UINT64_C(0x7FFFFFFFFFFFFFFF)
#define GS_FLOAT8_POS_ZERO	UINT64_C(0x8000000000000000)
#define GS_FLOAT8_POS_INF	UINT64_C(0xFFF0000000000000)
#define GS_FLOAT8_NAN		UINT64_C(0xFFF8000000000000)

#define GS_FLOAT4_NEG_INF	UINT64_C(0x007FFFFF)
#define GS_FLOAT4_NEG_ZERO	UINT64_C(0x7FFFFFFF)
#define GS_FLOAT4_POS_ZERO	UINT64_C(0x80000000)
#define GS_FLOAT4_POS_INF	UINT64_C(0xFF800000)
#define GS_FLOAT4_NAN		UINT64_C(0xFFC00000)

/*
 * PostgreSQL's float order: every NaN equals every other and is above
 * +Infinity, whatever its sign bit; -0 equals +0.
 */
GS_HOST_DEVICE uint64_t
gs_float8_canonical(uint64_t code)
{
	if (code < GS_FLOAT8_NEG_INF || code > GS_FLOAT8_POS_INF)
		return GS_FLOAT8_NAN;
	return code == GS_FLOAT8_NEG_ZERO ? GS_FLOAT8_POS_ZERO : code;
}

GS_HOST_DEVICE uint64_t
gs_float4_canonical(uint64_t code)
{
	if (code < GS_FLOAT4_NEG_INF || code > GS_FLOAT4_POS_INF)
		return GS_FLOAT4_NAN;
	return code == GS_FLOAT4_NEG_ZERO ? GS_FLOAT4_POS_ZERO : code;
}

/* Load a number as it is in memory, at any address. */
static inline uint16_t
gs_load_uint16(const void *p)
{
	uint16_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t
gs_load_uint32(const void *p)
{
	uint32_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t
gs_load_uint64(const void *p)
{
	uint64_t	v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Loads nbytes (at most 8) as a big-endian number, which compares as memcmp() does. */
GS_HOST_DEVICE uint64_t
gs_load_be(const unsigned char *p, size_t nbytes)
{
	uint64_t	v = 0;

	for (size_t i = 0; i < nbytes; i++)
		v = (v << 8) | p[i];
	return v;
}

/* Loads eight bytes, in one load, as a big-endian number, which compares as memcmp() does. */
static inline uint64_t
gs_load_be64(const unsigned char *p)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return gs_load_uint64(p);
#else
	return __builtin_bswap64(gs_load_uint64(p));
#endif
}

static inline void
gs_store_be64(unsigned char *p, uint64_t v)
{
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(p, &v, sizeof(v));
}

/*
 * Loads the first eight bytes of a string, or all of them, padded with zeros.  Two
 * strings with different prefixes compare as these do.  Strings with equal prefixes
 * may differ: after the eighth byte, or, if they may contain zero bytes, in length.
 */
static inline uint64_t
gs_load_prefix(const unsigned char *p, size_t len)
{
	if (len >= 8)
		return gs_load_be64(p);
	if (len == 0)
		return 0;
	return gs_load_be(p, len) << (8 * (8 - len));
}

#endif							/* GPUSORT_KEY_CODEC_H */
