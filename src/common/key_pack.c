/*-------------------------------------------------------------------------
 *
 * key_pack.c
 *	  The fewest bits that order the rows.
 *
 * Range or squeeze: both keep the order.  Subtracting the minimum keeps it
 * since codes are unsigned; dropping the bits in which all codes agree keeps
 * it since such bits decide no comparison.  Numbers usually pack best by
 * range, text by squeezing: hexadecimal digits differ in 6 bits of each byte,
 * decimal ones in 4, so 40 bits hold the first 6 or 10 characters.
 *
 * A NULL contributes zeros after its flag, and so do the fields of all NULLs
 * of the column: they tie, as SQL wants.
 *
 *-------------------------------------------------------------------------
 */
#include "common/key_pack.h"

#include <string.h>

#include "common/key_chunk.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define GS_HAVE_PEXT 1
#include <cpuid.h>
#include <immintrin.h>
#endif

static void add_components(GsKeyPacking *packing, const GsKeyLayout *layout, int colno);
static void split_chunks(GsKeyPacking *packing, int chunk_bits);

void
gs_key_packing_init(GsKeyPacking *packing, const GsKeyLayout *layout, int chunk_bits)
{
	packing->nwords = layout->nwords;
	packing->ncomponents = 0;
	packing->nchunks = 0;
	packing->npieces = 0;
	packing->total_bits = 0;
	packing->has_tails = false;
	for (int colno = 0; colno < layout->ndecisive; colno++)
		add_components(packing, layout, colno);
	split_chunks(packing, chunk_bits);
}

static GsComponent *
add_component(GsKeyPacking *packing, GsComponentKind kind, int bits,
			  const GsKeyColumn *column, int colno)
{
	GsComponent *component = &packing->components[packing->ncomponents++];

	memset(component, 0, sizeof(*component));
	component->kind = kind;
	component->column = (uint8_t) colno;
	component->bits = (uint8_t) bits;
	component->descending = column->descending;
	component->nulls_first = column->nulls_first;
	component->nullable = column->nnulls > 0;
	component->nul_free = column->nul_free;
	packing->total_bits += bits;
	return component;
}

static void
add_components(GsKeyPacking *packing, const GsKeyLayout *layout, int colno)
{
	const GsKeyColumn *column = &layout->columns[colno];

	if (column->nnulls == layout->nrows)
		return;					/* all NULL, or no rows: nothing to tell apart */
	if (column->nnulls > 0)
		add_component(packing, GS_COMPONENT_NULL_FLAG, 1, column, colno);

	for (int i = 0; i < column->nfields; i++)
	{
		const GsKeyField *field = &layout->fields[column->first_field + i];
		uint64_t	varying = field->ever_set & ~field->always_set;
		int			range_bits = gs_bit_width(field->max - field->min);
		int			squeezed_bits = __builtin_popcountll(varying);
		GsComponent *component;

		if (varying == 0)
			continue;
		if (range_bits <= squeezed_bits)
		{
			component = add_component(packing, GS_COMPONENT_RANGE, range_bits,
									  column, colno);
			component->base = column->descending ? field->max : field->min;
		}
		else
		{
			component = add_component(packing, GS_COMPONENT_EXTRACTED, squeezed_bits,
									  column, colno);
			component->varying = varying;
		}
		component->word = field->word;
		component->shift = field->shift;
		component->canonical = field->canonical;
		component->field_mask = gs_key_field_mask(field);
	}

	/*
	 * Eight bytes decide all when no value is longer, unless one value may be
	 * another and more zero bytes.
	 */
	if (column->variable &&
		(column->max_len > 8 ||
		 (!column->nul_free && column->min_len != column->max_len)))
	{
		GsComponent *component = add_component(packing, GS_COMPONENT_TAIL, 0,
											   column, colno);

		component->word = column->tail_word;
		packing->has_tails = true;
	}
}

static GsKeyChunk *
add_chunk(GsKeyPacking *packing)
{
	GsKeyChunk    *chunk = &packing->chunks[packing->nchunks++];

	chunk->is_tail = false;
	chunk->tail_component = 0;
	chunk->bits = 0;
	chunk->first_piece = (uint16_t) packing->npieces;
	chunk->npieces = 0;
	return chunk;
}

/*
 * Cuts the components into levels: full ones, except before a tail and at the
 * end.
 */
static void
split_chunks(GsKeyPacking *packing, int chunk_bits)
{
	GsKeyChunk    *chunk = NULL;	/* the bit level with room, if any */

	for (int c = 0; c < packing->ncomponents; c++)
	{
		const GsComponent *component = &packing->components[c];
		int			left = component->bits;

		if (component->kind == GS_COMPONENT_TAIL)
		{
			chunk = add_chunk(packing);
			chunk->is_tail = true;
			chunk->tail_component = (uint8_t) c;
			chunk = NULL;
			continue;
		}
		while (left > 0)
		{
			GsPiece    *piece;
			int			taken;

			if (chunk == NULL || chunk->bits == chunk_bits)
				chunk = add_chunk(packing);
			taken = chunk_bits - chunk->bits;
			if (taken > left)
				taken = left;
			left -= taken;
			piece = &packing->pieces[packing->npieces++];
			piece->component = (uint8_t) c;
			piece->shift = (uint8_t) left;
			piece->bits = (uint8_t) taken;
			chunk->bits = (uint8_t) (chunk->bits + taken);
			chunk->npieces++;
		}
	}
}

/* ---------------------------------------------------------------- squeeze */

uint64_t
gs_extract_bits_portable(uint64_t value, uint64_t varying)
{
	return gs_extract_bits(value, varying);
}

#ifdef GS_HAVE_PEXT
__attribute__((target("bmi2")))
static uint64_t
extract_bits_pext(uint64_t value, uint64_t varying)
{
	return _pext_u64(value, varying);
}

/* Zen 1 and 2 (AMD's family 17h, Hygon's 18h) have the instruction, in microcode and slower than the loop. */
static bool
ask_whether_pext_is_fast(void)
{
	unsigned int eax;
	unsigned int ebx;
	unsigned int ecx;
	unsigned int edx;
	unsigned int family;

	if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ebx & bit_BMI2) ||
		!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
		return false;
	family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
	return family != 0x17 && family != 0x18;
}

/*
 * Asked once, and only by who sorts: a virtual machine's processor takes 20 to 70 us to
 * answer.  __builtin_cpu_supports() would ask some twenty times as the library is loaded.
 */
static bool
pext_is_fast(void)
{
	static int	fast = -1;		/* not asked; threads that ask at a time get the same answer */

	if (__atomic_load_n(&fast, __ATOMIC_RELAXED) < 0)
		__atomic_store_n(&fast, ask_whether_pext_is_fast(), __ATOMIC_RELAXED);
	return __atomic_load_n(&fast, __ATOMIC_RELAXED);
}
#endif

GsExtractBitsFunction
gs_extract_bits_function(void)
{
#ifdef GS_HAVE_PEXT
	if (pext_is_fast())
		return extract_bits_pext;
#endif
	return gs_extract_bits_portable;
}

/* ----------------------------------------------------------- a level's bits */

/* The most frequent level by far: one ascending or descending number. */
static inline __attribute__((always_inline)) uint64_t
range_value(const GsKeyPacking *packing, const GsKeyChunk *chunk, const uint64_t *record)
{
	const GsPiece *piece = &packing->pieces[chunk->first_piece];
	const GsComponent *component = &packing->components[piece->component];
	uint64_t	code = (record[component->word] >> component->shift) & component->field_mask;
	uint64_t	value = component->descending ? component->base - code : code - component->base;

	return (value >> piece->shift) & (UINT64_MAX >> (64 - piece->bits));
}

static bool
is_range(const GsKeyPacking *packing, const GsKeyChunk *chunk)
{
	const GsComponent *first =
		&packing->components[packing->pieces[chunk->first_piece].component];

	return chunk->npieces == 1 && first->kind == GS_COMPONENT_RANGE &&
		!first->nullable && first->canonical == GS_CANONICAL_NONE;
}

/* A level function of each kind, for one record and for many. */
#define KEY_CHUNK_FUNCTIONS(name, attributes, value) \
attributes static uint64_t \
level_##name(const GsKeyPacking *packing, const GsKeyChunk *chunk, const uint64_t *record) \
{ \
	return value; \
} \
attributes static void \
levels_##name(const GsKeyPacking *packing, const GsKeyChunk *chunk, const uint64_t *record, \
			  ptrdiff_t stride, size_t n, uint64_t *bits) \
{ \
	for (size_t i = 0; i < n; i++) \
	{ \
		bits[i] = value; \
		record = (const uint64_t *) ((const char *) record + stride); \
	} \
}

KEY_CHUNK_FUNCTIONS(range,, range_value(packing, chunk, record))
KEY_CHUNK_FUNCTIONS(portable,, gs_key_chunk_value(packing, chunk, record, gs_extract_bits_portable))
#ifdef GS_HAVE_PEXT
KEY_CHUNK_FUNCTIONS(pext, __attribute__((target("bmi2"))),
				gs_key_chunk_value(packing, chunk, record, extract_bits_pext))
#endif

GsKeyChunkFunction
gs_key_chunk_function(const GsKeyPacking *packing, const GsKeyChunk *chunk)
{
	if (is_range(packing, chunk))
		return level_range;
#ifdef GS_HAVE_PEXT
	if (pext_is_fast())
		return level_pext;
#endif
	return level_portable;
}

GsKeyChunksFunction
gs_key_chunks_function(const GsKeyPacking *packing, const GsKeyChunk *chunk)
{
	if (is_range(packing, chunk))
		return levels_range;
#ifdef GS_HAVE_PEXT
	if (pext_is_fast())
		return levels_pext;
#endif
	return levels_portable;
}
