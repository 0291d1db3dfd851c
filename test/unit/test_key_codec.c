/*-------------------------------------------------------------------------
 *
 * test_key_codec.c
 *	  The codes of fixed-width values (key_codec.h).
 *
 * What is asked of every code: its unsigned order is the order of the values,
 * different values have different codes, and decoding gives the value back.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/key_codec.h"
#include "unit_cmocka.h"
#include "unit_floats.h"
#include "unit_random.h"

#define NRANDOM		200000

static int
sign_of(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int
sign_of_codes(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* ----------------------------------------------------------------- integers */

static void
test_int16(void **unused)
{
	uint64_t	previous = 0;

	for (int v = INT16_MIN; v <= INT16_MAX; v++)
	{
		uint64_t	code = gs_encode_int16((int16_t) v);

		CHECK_MSG(code <= UINT16_MAX, "%d has code %llx", v, (unsigned long long) code);
		CHECK(v == INT16_MIN ? code == 0 : code == previous + 1);
		CHECK(gs_decode_int16(code) == v);
		previous = code;
	}
}

/* The ends of the range and around zero, and random ones of every width. */
static int64_t
hostile_int(Dice *dice, int bits)
{
	int64_t		min = bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
	int64_t		max = -(min + 1);
	const int64_t odd[] = {min, min + 1, min / 2, -2, -1, 0, 1, 2, max / 2, max - 1, max};
	uint64_t	choice = dice_below(dice, 20);
	int64_t		magnitude;

	if (choice < sizeof(odd) / sizeof(odd[0]))
		return odd[choice];
	magnitude = (int64_t) dice_any_width(dice, bits - 1);
	return dice_one_in(dice, 2) ? magnitude : -magnitude;
}

static void
test_int32(void **unused)
{
	Dice		dice = dice_of_seed(32);

	for (int i = 0; i < NRANDOM; i++)
	{
		int32_t		a = (int32_t) hostile_int(&dice, 32);
		int32_t		b = (int32_t) hostile_int(&dice, 32);

		CHECK(gs_encode_int32(a) <= UINT32_MAX);
		CHECK_MSG(sign_of(a, b) == sign_of_codes(gs_encode_int32(a), gs_encode_int32(b)),
				  "%d and %d", a, b);
		CHECK(gs_decode_int32(gs_encode_int32(a)) == a);
	}
	CHECK(gs_encode_int32(INT32_MIN) == 0);
	CHECK(gs_encode_int32(INT32_MAX) == UINT32_MAX);
}

static void
test_int64(void **unused)
{
	Dice		dice = dice_of_seed(64);

	for (int i = 0; i < NRANDOM; i++)
	{
		int64_t		a = hostile_int(&dice, 64);
		int64_t		b = hostile_int(&dice, 64);

		CHECK_MSG(sign_of(a, b) == sign_of_codes(gs_encode_int64(a), gs_encode_int64(b)),
				  "%lld and %lld", (long long) a, (long long) b);
		CHECK(gs_decode_int64(gs_encode_int64(a)) == a);
	}
	CHECK(gs_encode_int64(INT64_MIN) == 0);
	CHECK(gs_encode_int64(INT64_MAX) == UINT64_MAX);
}

/* ------------------------------------------------------------------- floats */

/*
 * Bit patterns with the exponents at which something changes (zero and
 * denormals, the least normal numbers, the largest, infinities and NaNs), and
 * the same for the mantissa; the sign at random.
 */
static uint64_t
hostile_float(Dice *dice, int mantissa_bits, int exponent_bits)
{
	uint64_t	mantissa_mask = (UINT64_C(1) << mantissa_bits) - 1;
	uint64_t	exponent_mask = (UINT64_C(1) << exponent_bits) - 1;
	const uint64_t mantissas[] = {0, 1, mantissa_mask, mantissa_mask - 1,
		(mantissa_mask >> 1) + 1, mantissa_mask >> 1,
	dice_word(dice) & mantissa_mask, dice_any_width(dice, mantissa_bits)};
	const uint64_t exponents[] = {0, 1, 2, exponent_mask, exponent_mask - 1,
		exponent_mask >> 1, (exponent_mask >> 1) + 1, dice_word(dice) & exponent_mask};

	return dice_below(dice, 2) << (mantissa_bits + exponent_bits) |
		exponents[dice_below(dice, 8)] << mantissa_bits |
		mantissas[dice_below(dice, 8)];
}

static void
test_float8(void **unused)
{
	Dice		dice = dice_of_seed(8);

	for (int i = 0; i < NRANDOM; i++)
	{
		uint64_t	a = hostile_float(&dice, 52, 11);
		uint64_t	b = hostile_float(&dice, 52, 11);
		uint64_t	a_code = gs_encode_float8_bits(a);
		uint64_t	b_code = gs_encode_float8_bits(b);

		CHECK(gs_decode_float8_bits(a_code) == a);
		CHECK((a == b) == (a_code == b_code));
		if (double_of_bits(a) < double_of_bits(b))
			CHECK(a_code < b_code);
		CHECK_MSG(compare_floats(double_of_bits(a), double_of_bits(b)) ==
				  sign_of_codes(gs_float8_canonical(a_code), gs_float8_canonical(b_code)),
				  "%llx and %llx", (unsigned long long) a, (unsigned long long) b);
		CHECK(gs_float8_canonical(gs_float8_canonical(a_code)) == gs_float8_canonical(a_code));

		/* only NaNs and -0 have another code than their own */
		CHECK((gs_float8_canonical(a_code) == a_code) ==
			  (isnan(double_of_bits(a)) ? a == bits_of_double(NAN) :
			   a != bits_of_double(-0.0)));
	}
}

static void
test_float4(void **unused)
{
	Dice		dice = dice_of_seed(4);

	for (int i = 0; i < NRANDOM; i++)
	{
		uint32_t	a = (uint32_t) hostile_float(&dice, 23, 8);
		uint32_t	b = (uint32_t) hostile_float(&dice, 23, 8);
		uint64_t	a_code = gs_encode_float4_bits(a);
		uint64_t	b_code = gs_encode_float4_bits(b);

		CHECK(a_code <= UINT32_MAX);
		CHECK(gs_decode_float4_bits(a_code) == a);
		CHECK((a == b) == (a_code == b_code));
		if (float_of_bits(a) < float_of_bits(b))
			CHECK(a_code < b_code);
		CHECK_MSG(compare_floats(float_of_bits(a), float_of_bits(b)) ==
				  sign_of_codes(gs_float4_canonical(a_code), gs_float4_canonical(b_code)),
				  "%x and %x", a, b);
		CHECK(gs_float4_canonical(a_code) <= UINT32_MAX);
		CHECK(gs_float4_canonical(gs_float4_canonical(a_code)) == gs_float4_canonical(a_code));
		CHECK((gs_float4_canonical(a_code) == a_code) ==
			  (isnan(float_of_bits(a)) ? a == bits_of_float(NAN) :
			   a != bits_of_float(-0.0f)));
	}
}

/* From -Infinity to Infinity in even steps: values and codes ascend together. */
static void
test_float4_walk(void **unused)
{
	uint64_t	previous_code = 0;
	float		previous = -INFINITY;
	bool		first = true;

	for (int64_t key = -INT64_C(0x7F800000); key <= INT64_C(0x7F800000); key += 4093)
	{
		uint32_t	bits = key < 0 ? (uint32_t) -key | UINT32_C(0x80000000) : (uint32_t) key;
		uint64_t	code = gs_encode_float4_bits(bits);

		if (!first)
		{
			CHECK(float_of_bits(bits) > previous);
			CHECK(code > previous_code);
		}
		CHECK(gs_decode_float4_bits(code) == bits);
		previous = float_of_bits(bits);
		previous_code = code;
		first = false;
	}
}

static void
test_float_landmarks(void **unused)
{
	CHECK(gs_encode_float8_bits(bits_of_double(-INFINITY)) == GS_FLOAT8_NEG_INF);
	CHECK(gs_encode_float8_bits(bits_of_double(-0.0)) == GS_FLOAT8_NEG_ZERO);
	CHECK(gs_encode_float8_bits(bits_of_double(0.0)) == GS_FLOAT8_POS_ZERO);
	CHECK(gs_encode_float8_bits(bits_of_double(INFINITY)) == GS_FLOAT8_POS_INF);
	CHECK(gs_encode_float8_bits(UINT64_C(0x7FF8000000000000)) == GS_FLOAT8_NAN);
	CHECK(gs_encode_float4_bits(bits_of_float(-INFINITY)) == GS_FLOAT4_NEG_INF);
	CHECK(gs_encode_float4_bits(bits_of_float(-0.0f)) == GS_FLOAT4_NEG_ZERO);
	CHECK(gs_encode_float4_bits(bits_of_float(0.0f)) == GS_FLOAT4_POS_ZERO);
	CHECK(gs_encode_float4_bits(bits_of_float(INFINITY)) == GS_FLOAT4_POS_INF);
	CHECK(gs_encode_float4_bits(UINT32_C(0x7FC00000)) == GS_FLOAT4_NAN);

	/* the neighbours of the infinities are numbers, or NaNs */
	CHECK(gs_float8_canonical(GS_FLOAT8_NEG_INF) == GS_FLOAT8_NEG_INF);
	CHECK(gs_float8_canonical(GS_FLOAT8_NEG_INF + 1) == GS_FLOAT8_NEG_INF + 1);
	CHECK(gs_float8_canonical(GS_FLOAT8_NEG_INF - 1) == GS_FLOAT8_NAN);
	CHECK(gs_float8_canonical(GS_FLOAT8_POS_INF + 1) == GS_FLOAT8_NAN);
	CHECK(gs_float8_canonical(0) == GS_FLOAT8_NAN);
	CHECK(gs_float8_canonical(UINT64_MAX) == GS_FLOAT8_NAN);
	CHECK(gs_float8_canonical(GS_FLOAT8_NEG_ZERO) == GS_FLOAT8_POS_ZERO);
	CHECK(gs_float4_canonical(GS_FLOAT4_NEG_INF) == GS_FLOAT4_NEG_INF);
	CHECK(gs_float4_canonical(GS_FLOAT4_NEG_INF - 1) == GS_FLOAT4_NAN);
	CHECK(gs_float4_canonical(GS_FLOAT4_POS_INF + 1) == GS_FLOAT4_NAN);
	CHECK(gs_float4_canonical(0) == GS_FLOAT4_NAN);
	CHECK(gs_float4_canonical(UINT32_MAX) == GS_FLOAT4_NAN);
	CHECK(gs_float4_canonical(GS_FLOAT4_NEG_ZERO) == GS_FLOAT4_POS_ZERO);
}

/* -------------------------------------------------------------------- bytes */

/*
 * Every length at every alignment, each in an allocation of just its size, so
 * that the sanitizer sees a read past the end.
 */
static void
test_loads(void **unused)
{
	Dice		dice = dice_of_seed(88);

	for (size_t len = 0; len <= 24; len++)
	{
		for (size_t align = 0; align < 8; align++)
		{
			unsigned char *block = malloc(align + len + (align + len == 0));
			unsigned char *p = block + align;
			uint64_t	expected = 0;
			uint64_t	prefix = 0;

			CHECK(block != NULL);
			for (size_t i = 0; i < len; i++)
				p[i] = (unsigned char) dice_word(&dice);
			for (size_t i = 0; i < 8; i++)
			{
				if (i < len)
					expected = expected * 256 + p[i];
				prefix = prefix * 256 + (i < len ? p[i] : 0);
			}
			CHECK(gs_load_be(p, len < 8 ? len : 8) == expected);
			if (len >= 8)
				CHECK(gs_load_be64(p) == expected);
			CHECK(gs_load_prefix(p, len) == prefix);
			free(block);
		}
	}
}

/* Where the prefixes of two strings differ, the strings compare as they do. */
static void
test_prefix_order(void **unused)
{
	static const unsigned char alphabet[] = {0, 1, 'a', 0x80, 0xFF};
	Dice		dice = dice_of_seed(89);
	int			ndifferent = 0;

	for (int i = 0; i < NRANDOM; i++)
	{
		unsigned char a[12];
		unsigned char b[12];
		size_t		a_len = dice_below(&dice, 13);
		size_t		b_len = dice_below(&dice, 13);
		uint64_t	a_prefix;
		uint64_t	b_prefix;
		int			order;

		for (size_t k = 0; k < sizeof(a); k++)
		{
			a[k] = alphabet[dice_below(&dice, sizeof(alphabet))];
			b[k] = dice_one_in(&dice, 4) ? alphabet[dice_below(&dice, sizeof(alphabet))] : a[k];
		}
		order = memcmp(a, b, a_len < b_len ? a_len : b_len);
		if (order == 0)
			order = (a_len > b_len) - (a_len < b_len);
		a_prefix = gs_load_prefix(a, a_len);
		b_prefix = gs_load_prefix(b, b_len);
		if (a_prefix != b_prefix)
		{
			CHECK((a_prefix < b_prefix) == (order < 0));
			ndifferent++;
		}
		else
			CHECK(memcmp(a, b, a_len < b_len ? (a_len < 8 ? a_len : 8) :
						 (b_len < 8 ? b_len : 8)) == 0);
	}
	CHECK(ndifferent > NRANDOM / 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_int16),
		cmocka_unit_test(test_int32),
		cmocka_unit_test(test_int64),
		cmocka_unit_test(test_float8),
		cmocka_unit_test(test_float4),
		cmocka_unit_test(test_float4_walk),
		cmocka_unit_test(test_float_landmarks),
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_prefix_order)
	};

	return cmocka_run_group_tests_name("key_codec", tests, NULL, NULL);
}
