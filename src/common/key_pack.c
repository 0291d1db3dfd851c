/*-------------------------------------------------------------------------
 *
 * key_pack.c
 *	  The fewest bits that order the rows.
 *
 * Both ways to shorten a code keep its order: subtracting the minimum, because
 * codes are unsigned; and removing the bits in which all codes agree, because
 * such bits decide no comparison.  Numbers are usually shorter as a range, text by
 * extraction: hexadecimal digits differ in 6 bits of each byte, decimal ones in
 * 4, so 40 bits hold the first 6 or 10 characters.
 *
 * A NULL contributes zeros after its flag, so NULLs of a column tie, as in SQL.
 *
 *-------------------------------------------------------------------------
 */
#include "common/key_pack.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(GS_WITHOUT_PEXT)
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
		return;					/* all NULL, or no rows: nothing varies */
	if (column->nnulls > 0)
		add_component(packing, GS_COMPONENT_NULL_FLAG, 1, column, colno);

	for (int i = 0; i < column->nfields; i++)
	{
		const GsKeyField *field = &layout->fields[column->first_field + i];
		uint64_t	varying = field->ever_set & ~field->always_set;
		int			range_bits = gs_bit_width(field->max - field->min);
		int			extracted_bits = __builtin_popcountll(varying);
		GsComponent *component;

		if (varying == 0)
			continue;
		if (range_bits <= extracted_bits)
		{
			component = add_component(packing, GS_COMPONENT_RANGE, range_bits,
									  column, colno);
			component->base = column->descending ? field->max : field->min;
		}
		else
		{
			component = add_component(packing, GS_COMPONENT_EXTRACTED, extracted_bits,
									  column, colno);
			component->varying = varying;
		}
		component->word = field->word;
		component->shift = field->shift;
		component->canonical = field->canonical;
		component->field_mask = gs_key_field_mask(field);
	}

	/*
	 * Eight bytes resolve the order if no value is longer, unless one value
	 * can be another one followed by zero bytes.
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
	GsKeyChunk *chunk = &packing->chunks[packing->nchunks++];

	chunk->is_tail = false;
	chunk->tail_component = 0;
	chunk->bits = 0;
	chunk->first_piece = (uint16_t) packing->npieces;
	chunk->npieces = 0;
	return chunk;
}

/* Splits the components into chunks, which are complete except before a tail and at the end. */
static void
split_chunks(GsKeyPacking *packing, int chunk_bits)
{
	GsKeyChunk *chunk = NULL;	/* the last one, unless it is a tail */

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

/* --------------------------------------------------------- extracting bits */

#ifdef GS_HAVE_PEXT
__attribute__((target("bmi2")))
static uint64_t
extract_bits_pext(uint64_t value, uint64_t varying)
{
	return _pext_u64(value, varying);
}

/* On Zen 1 and 2 (AMD's family 17h, Hygon's 18h), microcode executes pext, slower than the loop. */
static bool
detect_fast_pext(void)
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
 * cpuid is executed once, by the first sort or, if the library is preloaded, when the
 * server starts: in a virtual machine it takes 20 to 70 us.  __builtin_cpu_supports()
 * would execute it about twenty times when the library is loaded.
 */
static bool
pext_is_fast(void)
{
	static int	fast = -1;		/* not known yet; concurrent threads store the
								 * same value */

	if (__atomic_load_n(&fast, __ATOMIC_RELAXED) < 0)
		__atomic_store_n(&fast, detect_fast_pext(), __ATOMIC_RELAXED);
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
	return gs_extract_bits;
}

/* --------------------------------------------------------- chunk functions */

/* The most frequent chunk by far: part of one range, without NULLs. */
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

/* The functions of each kind, for one record and for many. */
#define KEY_CHUNK_FUNCTIONS(name, attributes, value) \
attributes static uint64_t \
chunk_##name(const GsKeyPacking *packing, const GsKeyChunk *chunk, const uint64_t *record) \
{ \
	return value; \
} \
attributes static void \
chunks_##name(const GsKeyPacking *packing, const GsKeyChunk *chunk, const uint64_t *record, \
			  ptrdiff_t stride, size_t n, uint64_t *bits) \
{ \
	for (size_t i = 0; i < n; i++) \
	{ \
		bits[i] = value; \
		record = (const uint64_t *) ((const char *) record + stride); \
	} \
}

KEY_CHUNK_FUNCTIONS(range,, range_value(packing, chunk, record))
KEY_CHUNK_FUNCTIONS(portable,, gs_key_chunk_value(packing, chunk, record, gs_extract_bits))
#ifdef GS_HAVE_PEXT
KEY_CHUNK_FUNCTIONS(pext, __attribute__((target("bmi2"))),
					gs_key_chunk_value(packing, chunk, record, extract_bits_pext))
#endif

GsKeyChunkFunction
gs_key_chunk_function(const GsKeyPacking *packing, const GsKeyChunk *chunk)
{
	if (is_range(packing, chunk))
		return chunk_range;
#ifdef GS_HAVE_PEXT
	if (pext_is_fast())
		return chunk_pext;
#endif
	return chunk_portable;
}

GsKeyChunksFunction
gs_key_chunks_function(const GsKeyPacking *packing, const GsKeyChunk *chunk)
{
	if (is_range(packing, chunk))
		return chunks_range;
#ifdef GS_HAVE_PEXT
	if (pext_is_fast())
		return chunks_pext;
#endif
	return chunks_portable;
}
