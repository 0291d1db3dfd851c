/*-------------------------------------------------------------------------
 *
 * gin_accumulate.c
 *	  Collects the TIDs of each key of a GIN index.
 *
 * Most keys repeat, so a key is looked up by its bytes in a hash table, without its comparison
 * function, and a TID takes one or two bytes at the end of the key's list (gin_row.h):
 *
 *	  slots		 hash | -> entry: key, first TID, last TID, -> rest: difference, difference, ...
 *
 * Keys that are equal but have other bytes have several entries; they meet when the rows are
 * sorted.  A key that an item has twice is added once, because its last TID is that of the item.
 *
 * Entries and lists are in an arena of blocks.  A list doubles its memory when it is full; what it
 * leaves becomes that of another list.  When a list has GS_GIN_REST_BYTES, or a TID is not greater
 * than the last one, the list is emitted, and the next one begins.  When the arena and the slots
 * have reached the limit, all lists are emitted, and the table begins again, with the same memory.
 *
 * Of several keys, the slots, the entries and the ends of their lists are prefetched before they
 * are needed: each is a cache miss if there are many keys.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_accumulate.h"
#include "store/store_space.h"

#include "access/detoast.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Keys that are looked up together. */
#define BATCH_KEYS		64

/* A list has 16 << class bytes. */
#define LEAST_LIST_BYTES	16
#define NCLASSES		7
StaticAssertDecl(LEAST_LIST_BYTES << (NCLASSES - 1) == GS_GIN_REST_BYTES,
				 "the longest list has the highest class");

/*
 * The arena's blocks have this part of the memory limit, but not less or more than these.  Large
 * ones have huge pages (store/store_runtime.c): entries are accessed in no order, and with small
 * pages 300,000 texts or objects take an eighth to a third more processor time (AMD EPYC,
 * 2026-11-28).
 */
#define BLOCK_PART		8
#define LEAST_BLOCK_BYTES	((Size) 8 << 10)
#define MOST_BLOCK_BYTES	((Size) 8 << 20)

#define LEAST_SLOTS		1024

/* Memory that is filled with zeroes before the next check for interrupts. */
#define CLEARED_BYTES	((Size) 16 << 20)

/* The slots have up to this part of the memory limit. */
#define SLOTS_PART		4

/*
 * A longer key is too long for an index even if it is compressed: LZ4 makes 1 byte of 255 at most.
 * Shorter ones are compressed only when they are written, as that takes most of the time of such a
 * build.
 */
#define LONG_KEY_BYTES	(256 * GinMaxItemSize)

typedef struct Entry
{
	struct Entry *next;			/* in order of arrival */
	Datum		key;			/* a copy follows the entry, if it is not passed by value */
	uint64		first;			/* number of the first TID of the list; 0: there is none */
	uint64		last;			/* of the last TID */
	char	   *rest;			/* NULL: no memory yet */
	uint32		used;			/* bytes of it, with its header */
	uint32		key_bytes;		/* 0: passed by value */
	OffsetNumber attribute;
	GinNullCategory category;
	uint8		size_class;		/* of the rest */
} Entry;

typedef struct Slot
{
	Entry	   *entry;			/* NULL: free */
	uint32		hash;
} Slot;

typedef struct ArenaBlock
{
	struct ArenaBlock *next;
	Size		nbytes;			/* with this header */
} ArenaBlock;

#define BLOCK_HEADER_BYTES	MAXALIGN(sizeof(ArenaBlock))

struct GsGinAccumulator
{
	GinState   *state;
	GsGinEmit	emit;
	void	   *arg;
	GsRuntime	runtime;		/* allocates the slots and blocks */
	Size		memory_limit;
	uint64		seed;			/* of hashes, so that nobody can choose keys with equal ones */

	Slot	   *slots;
	uint32		nslots;			/* a power of two */
	uint32		nentries;
	Entry	   *oldest;
	Entry	   *newest;

	ArenaBlock *blocks;			/* the one that is being filled, first */
	ArenaBlock *free_blocks;	/* after a flush */
	char	   *free;			/* in the first block */
	char	   *end;
	Size		block_bytes;
	Size		used_bytes;		/* of blocks in use */
	void	   *free_lists[NCLASSES];	/* each begins with a pointer to the next */
	void	   *empty_rest;		/* of a single TID */
};

/* -------------------------------------------------------------------- memory */

/* ERROR if there is no memory. */
static void *
allocate_large(GsGinAccumulator *accumulator, Size nbytes)
{
	void	   *memory = accumulator->runtime.allocate(accumulator->runtime.arg, nbytes);

	if (memory == NULL)
		gs_store_report_no_memory();
	return memory;
}

/* Fills memory with zeroes, which takes 0.3 s for 1 GB of new memory. */
static void
clear(void *memory, Size nbytes)
{
	for (Size done = 0; done < nbytes; done += CLEARED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		memset((char *) memory + done, 0, Min(nbytes - done, CLEARED_BYTES));
	}
}

static Slot *
allocate_slots(GsGinAccumulator *accumulator, uint32 nslots)
{
	const Size	nbytes = sizeof(Slot) * nslots;
	Slot	   *slots = allocate_large(accumulator, nbytes);

	clear(slots, nbytes);
	return slots;
}

static void
release_large(GsGinAccumulator *accumulator, void *memory, Size nbytes)
{
	accumulator->runtime.release(accumulator->runtime.arg, memory, nbytes);
}

GsGinAccumulator *
gs_gin_accumulator_create(GinState *state, Size memory_limit, GsGinEmit emit, void *arg)
{
	GsGinAccumulator *accumulator = palloc0(sizeof(GsGinAccumulator));

	accumulator->state = state;
	accumulator->emit = emit;
	accumulator->arg = arg;
	gs_store_runtime_init(&accumulator->runtime, CurrentMemoryContext);
	accumulator->memory_limit = memory_limit;
	accumulator->seed = pg_prng_uint64(&pg_global_prng_state);
	accumulator->nslots = LEAST_SLOTS;
	accumulator->slots = allocate_slots(accumulator, LEAST_SLOTS);
	accumulator->block_bytes = Min(Max(memory_limit / BLOCK_PART, LEAST_BLOCK_BYTES),
								   MOST_BLOCK_BYTES);
	accumulator->empty_rest = palloc(VARHDRSZ);
	SET_VARSIZE(accumulator->empty_rest, VARHDRSZ);
	return accumulator;
}

/* Begins a block of at least so many bytes. */
static pg_noinline void
begin_block(GsGinAccumulator *accumulator, Size nbytes)
{
	ArenaBlock *block = accumulator->free_blocks;

	if (block != NULL && nbytes + BLOCK_HEADER_BYTES <= block->nbytes)
		accumulator->free_blocks = block->next;
	else
	{
		nbytes = Max(nbytes + BLOCK_HEADER_BYTES, accumulator->block_bytes);
		block = allocate_large(accumulator, nbytes);
		block->nbytes = nbytes;
	}
	block->next = accumulator->blocks;
	accumulator->blocks = block;
	accumulator->free = (char *) block + BLOCK_HEADER_BYTES;
	accumulator->end = (char *) block + block->nbytes;
	accumulator->used_bytes += block->nbytes;
}

/* Allocates from the arena, 8-aligned. */
static inline void *
allocate(GsGinAccumulator *accumulator, Size nbytes)
{
	void	   *place;

	nbytes = MAXALIGN(nbytes);
	if (unlikely(accumulator->end - accumulator->free < (ptrdiff_t) nbytes))
		begin_block(accumulator, nbytes);
	place = accumulator->free;
	accumulator->free += nbytes;
	return place;
}

/* Memory for a list of a class. */
static char *
allocate_list(GsGinAccumulator *accumulator, int size_class)
{
	void	   *list = accumulator->free_lists[size_class];

	if (list == NULL)
		return allocate(accumulator, (Size) LEAST_LIST_BYTES << size_class);
	accumulator->free_lists[size_class] = *(void **) list;
	return list;
}

static void
free_list_memory(GsGinAccumulator *accumulator, char *list, int size_class)
{
	*(void **) list = accumulator->free_lists[size_class];
	accumulator->free_lists[size_class] = list;
}

static inline bool
is_full(const GsGinAccumulator *accumulator)
{
	return accumulator->nentries > accumulator->nslots / 4 * 3 ||
		accumulator->used_bytes + accumulator->nslots * sizeof(Slot) > accumulator->memory_limit;
}

/* All memory of the arena is free again; blocks of other sizes than usual are not kept. */
static void
free_blocks(GsGinAccumulator *accumulator)
{
	ArenaBlock *next;

	for (ArenaBlock *block = accumulator->blocks; block != NULL; block = next)
	{
		next = block->next;
		if (block->nbytes == accumulator->block_bytes)
		{
			block->next = accumulator->free_blocks;
			accumulator->free_blocks = block;
		}
		else
			release_large(accumulator, block, block->nbytes);
	}
	accumulator->blocks = NULL;
	accumulator->free = accumulator->end = NULL;
	accumulator->used_bytes = 0;
	memset(accumulator->free_lists, 0, sizeof(accumulator->free_lists));
}

/* --------------------------------------------------------------------- lists */

/* Emits the list of an entry, which has no TIDs then. */
static void
emit_list(GsGinAccumulator *accumulator, Entry *entry)
{
	GsGinItem	item = {
		.attribute = entry->attribute,
		.category = entry->category,
		.key = entry->key,
		.first = entry->first,
		.rest = accumulator->empty_rest
	};

	if (entry->used > VARHDRSZ)
	{
		item.rest = (struct varlena *) entry->rest;
		SET_VARSIZE(item.rest, entry->used);
	}
	accumulator->emit(accumulator->arg, &item);
	entry->first = 0;
	entry->used = VARHDRSZ;
}

/* Makes space for a difference.  False: the list has all the memory that it may have. */
static pg_noinline bool
lengthen_list(GsGinAccumulator *accumulator, Entry *entry)
{
	const int	size_class = entry->rest == NULL ? 0 : entry->size_class + 1;
	char	   *rest;

	if (size_class == NCLASSES)
		return false;
	rest = allocate_list(accumulator, size_class);
	if (entry->rest != NULL)
	{
		memcpy(rest, entry->rest, entry->used);
		free_list_memory(accumulator, entry->rest, entry->size_class);
	}
	entry->rest = rest;
	entry->size_class = size_class;
	return true;
}

static inline bool
has_space(const Entry *entry)
{
	return entry->rest != NULL &&
		entry->used + GS_GIN_DIFFERENCE_BYTES <= (uint32) LEAST_LIST_BYTES << entry->size_class;
}

/* Adds a TID to the list of an entry. */
static inline void
add_tid(GsGinAccumulator *accumulator, Entry *entry, uint64 tid)
{
	if (entry->first != 0)
	{
		if (tid == entry->last)
			return;
		if (likely(tid > entry->last) &&
			(likely(has_space(entry)) || lengthen_list(accumulator, entry)))
		{
			entry->used = gs_gin_difference_put(entry->rest + entry->used, tid - entry->last) -
				entry->rest;
			entry->last = tid;
			return;
		}
		emit_list(accumulator, entry);
	}
	entry->first = entry->last = tid;
}

/* ---------------------------------------------------------------------- hash */

/* The two halves of a product of 64-bit numbers, folded: the mixer of wyhash (Wang Yi, 2019). */
static inline uint64
mix(uint64 a, uint64 b)
{
	const uint128 product = (uint128) a * b;

	return (uint64) product ^ (uint64) (product >> 64);
}

#define MULTIPLIER	UINT64CONST(0x9E3779B97F4A7C15)	/* 2^64 / golden ratio */

static inline uint64
hash_words(const char *bytes, Size nbytes, uint64 hash)
{
	uint64		word = 0;

	for (; nbytes >= sizeof(word); bytes += sizeof(word), nbytes -= sizeof(word))
	{
		memcpy(&word, bytes, sizeof(word));
		hash = mix(hash ^ word, MULTIPLIER);
	}
	word = nbytes;
	memcpy((char *) &word + 1, bytes, nbytes);
	return mix(hash ^ word, MULTIPLIER);
}

/* A key that is looked up. */
typedef struct Wanted
{
	Datum		key;
	uint32		key_bytes;		/* 0: passed by value */
	uint32		hash;
} Wanted;

/*
 * The bytes of a key that an operator class returns as a pointer to them: out of line, or an
 * expanded object.  In the current memory context.
 */
static pg_noinline Datum
fetch_key(Datum key)
{
	return PointerGetDatum(detoast_external_attr((struct varlena *) DatumGetPointer(key)));
}

/* The key of an attribute, with its hash. */
static inline Wanted
wanted_key(const GsGinAccumulator *accumulator, const FormData_pg_attribute *type, Datum key)
{
	Wanted		wanted;
	const uint64 seed = accumulator->seed;

	if (type->attlen == -1 && unlikely(VARATT_IS_EXTERNAL(DatumGetPointer(key))))
		key = fetch_key(key);
	wanted = (Wanted) {.key = key};
	if (type->attbyval)
		wanted.hash = mix(key ^ seed, MULTIPLIER) >> 32;
	else
	{
		wanted.key_bytes = type->attlen > 0 ? type->attlen : type->attlen == -1 ?
			VARSIZE_ANY(DatumGetPointer(key)) : strlen(DatumGetPointer(key)) + 1;
		wanted.hash = hash_words(DatumGetPointer(key), wanted.key_bytes, seed) >> 32;
	}
	return wanted;
}

static inline bool
is_wanted(const Entry *entry, OffsetNumber attribute, GinNullCategory category,
		  const Wanted *wanted)
{
	if (entry->attribute != attribute || entry->category != category ||
		entry->key_bytes != wanted->key_bytes)
		return false;
	return wanted->key_bytes == 0 ? entry->key == wanted->key :
		memcmp(DatumGetPointer(entry->key), DatumGetPointer(wanted->key), wanted->key_bytes) == 0;
}

/* -------------------------------------------------------------------- entries */

static inline uint32
place_of(const GsGinAccumulator *accumulator, uint32 hash)
{
	return hash & (accumulator->nslots - 1);
}

static Slot *
free_slot(GsGinAccumulator *accumulator, uint32 hash)
{
	uint32		place = place_of(accumulator, hash);

	while (accumulator->slots[place].entry != NULL)
		place = place_of(accumulator, place + 1);
	return &accumulator->slots[place];
}

/* Doubles the number of slots, unless they would take too much memory. */
static pg_noinline void
double_slots(GsGinAccumulator *accumulator)
{
	const uint32 nold = accumulator->nslots;
	Slot	   *old = accumulator->slots;

	if (nold > PG_UINT32_MAX / 2 ||
		2 * sizeof(Slot) * nold > accumulator->memory_limit / SLOTS_PART)
		return;
	accumulator->nslots *= 2;
	accumulator->slots = allocate_slots(accumulator, accumulator->nslots);
	for (uint32 i = 0; i < nold; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (old[i].entry != NULL)
			*free_slot(accumulator, old[i].hash) = old[i];
	}
	release_large(accumulator, old, sizeof(Slot) * nold);
}

/* An ERROR if no index tuple can have the key. */
static void
check_length(GsGinAccumulator *accumulator, OffsetNumber attribute, Datum key)
{
	pfree(GinFormTuple(accumulator->state, attribute, key, GIN_CAT_NORM_KEY, NULL, 0, 0, true));
}

static pg_noinline Entry *
add_entry(GsGinAccumulator *accumulator, OffsetNumber attribute, GinNullCategory category,
		  const Wanted *wanted)
{
	Entry	   *entry;
	Slot	   *slot;

	if (wanted->key_bytes > LONG_KEY_BYTES)
		check_length(accumulator, attribute, wanted->key);
	if (++accumulator->nentries > accumulator->nslots / 2)
		double_slots(accumulator);
	entry = allocate(accumulator, sizeof(Entry) + wanted->key_bytes);
	*entry = (Entry) {
		.key = wanted->key,
			.used = VARHDRSZ,
			.key_bytes = wanted->key_bytes,
			.attribute = attribute,
			.category = category
	};
	if (wanted->key_bytes > 0)
		entry->key = PointerGetDatum(memcpy(entry + 1, DatumGetPointer(wanted->key),
											wanted->key_bytes));
	if (accumulator->newest != NULL)
		accumulator->newest->next = entry;
	else
		accumulator->oldest = entry;
	accumulator->newest = entry;
	slot = free_slot(accumulator, wanted->hash);
	*slot = (Slot) {.entry = entry, .hash = wanted->hash};
	return entry;
}

static inline Entry *
find_entry(GsGinAccumulator *accumulator, OffsetNumber attribute, GinNullCategory category,
		   const Wanted *wanted)
{
	uint32		place = place_of(accumulator, wanted->hash);
	const Slot *slot;

	while ((slot = &accumulator->slots[place])->entry != NULL)
	{
		if (slot->hash == wanted->hash && is_wanted(slot->entry, attribute, category, wanted))
			return slot->entry;
		place = place_of(accumulator, place + 1);
	}
	return add_entry(accumulator, attribute, category, wanted);
}

/* Adds a TID to up to BATCH_KEYS keys. */
static void
add_batch(GsGinAccumulator *accumulator, OffsetNumber attribute, const Datum *keys, int nkeys,
		  uint64 tid)
{
	const FormData_pg_attribute *type = TupleDescAttr(accumulator->state->origTupdesc,
													  attribute - 1);
	Wanted		wanted[BATCH_KEYS];
	Entry	   *entries[BATCH_KEYS];

	for (int i = 0; i < nkeys; i++)
	{
		wanted[i] = wanted_key(accumulator, type, keys[i]);
		__builtin_prefetch(&accumulator->slots[place_of(accumulator, wanted[i].hash)]);
	}
	for (int i = 0; i < nkeys; i++)
	{
		const Slot *slot = &accumulator->slots[place_of(accumulator, wanted[i].hash)];

		__builtin_prefetch(slot->entry, 1);
	}
	for (int i = 0; i < nkeys; i++)
	{
		entries[i] = find_entry(accumulator, attribute, GIN_CAT_NORM_KEY, &wanted[i]);
		__builtin_prefetch(entries[i]->rest + entries[i]->used, 1);
	}
	for (int i = 0; i < nkeys; i++)
		add_tid(accumulator, entries[i], tid);
}

/* Adds a TID to a key of a category whose keys are all alike. */
static void
add_null(GsGinAccumulator *accumulator, OffsetNumber attribute, GinNullCategory category,
		 uint64 tid)
{
	Wanted		wanted = {0};

	wanted.hash = mix(accumulator->seed ^ (uint64) category ^ (uint64) attribute << 8,
					  MULTIPLIER) >> 32;
	add_tid(accumulator, find_entry(accumulator, attribute, category, &wanted), tid);
}

/* ------------------------------------------------------------ the interface */

void
gs_gin_accumulator_add(GsGinAccumulator *accumulator, OffsetNumber attribute, const Datum *keys,
					   const bool *nulls, int nkeys, uint64 tid)
{
	Datum		batch[BATCH_KEYS];
	int			nbatch = 0;

	for (int i = 0; i < nkeys; i++)
	{
		if (nulls != NULL && nulls[i])
			add_null(accumulator, attribute, GIN_CAT_NULL_KEY, tid);
		else
			batch[nbatch++] = keys[i];
		if (nbatch == BATCH_KEYS || (nbatch > 0 && i == nkeys - 1))
		{
			add_batch(accumulator, attribute, batch, nbatch, tid);
			nbatch = 0;
			if (unlikely(is_full(accumulator)))
				gs_gin_accumulator_flush(accumulator);
		}
	}
}

void
gs_gin_accumulator_add_placeholder(GsGinAccumulator *accumulator, OffsetNumber attribute,
								   GinNullCategory category, uint64 tid)
{
	add_null(accumulator, attribute, category, tid);
}

void
gs_gin_accumulator_flush(GsGinAccumulator *accumulator)
{
	for (Entry *entry = accumulator->oldest; entry != NULL; entry = entry->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (entry->first != 0)
			emit_list(accumulator, entry);
	}
	accumulator->oldest = accumulator->newest = NULL;
	accumulator->nentries = 0;
	clear(accumulator->slots, sizeof(Slot) * accumulator->nslots);
	free_blocks(accumulator);
}
