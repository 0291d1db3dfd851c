/*-------------------------------------------------------------------------
 *
 * unit_random.h
 *	  Where the tests and the fuzzer take their choices from.
 *
 * A Dice gives numbers from a string of bytes as long as it lasts, one byte
 * for a small choice, so that the fuzzer's mutations of one byte change one
 * choice; after that, and in the tests from the start, from a generator whose
 * seed names the case.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_RANDOM_H
#define GPUSORT_UNIT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Dice
{
	const uint8_t *data;
	size_t		left;
	uint64_t	state;
} Dice;

static inline Dice
dice_of_seed(uint64_t seed)
{
	Dice		dice = {NULL, 0, seed};

	return dice;
}

static inline Dice
dice_of_bytes(const uint8_t *data, size_t nbytes)
{
	Dice		dice = {data, nbytes, nbytes};

	return dice;
}

/* splitmix64: full period, any seed will do */
static inline uint64_t
mix64(uint64_t v)
{
	v = (v ^ (v >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	v = (v ^ (v >> 27)) * UINT64_C(0x94D049BB133111EB);
	return v ^ (v >> 31);
}

/* A number of nbytes random bytes. */
static inline uint64_t
dice_bytes(Dice *dice, size_t nbytes)
{
	uint64_t	v = 0;

	if (dice->left < nbytes)
	{
		dice->left = 0;
		dice->state += UINT64_C(0x9E3779B97F4A7C15);
		return mix64(dice->state);
	}
	for (size_t i = 0; i < nbytes; i++)
		v = (v << 8) | *dice->data++;
	dice->left -= nbytes;
	return v;
}

static inline uint64_t
dice_word(Dice *dice)
{
	return dice_bytes(dice, 8);
}

/* A number below n, which is at least 1. */
static inline uint64_t
dice_below(Dice *dice, uint64_t n)
{
	return n <= 1 ? 0 : dice_bytes(dice, n <= 256 ? 1 : n <= 65536 ? 2 : 8) % n;
}

static inline bool
dice_one_in(Dice *dice, uint64_t n)
{
	return dice_below(dice, n) == 0;
}

/* A number of random width, so that small and huge ones are as frequent. */
static inline uint64_t
dice_any_width(Dice *dice, int max_bits)
{
	int			bits = 1 + (int) dice_below(dice, (uint64_t) max_bits);

	return dice_word(dice) >> (64 - bits);
}

#endif							/* GPUSORT_UNIT_RANDOM_H */
