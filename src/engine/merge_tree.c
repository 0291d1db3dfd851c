/*-------------------------------------------------------------------------
 *
 * merge_tree.c
 *	  Merges sorted runs of rows by their key records.  run/run_merge.c reads them.
 *
 * A run at its end is represented by a row that sorts after all others: all bits of
 * its word are set, and its number is above those of all other runs.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/merge_tree.h"

#include "common/key_compare.h"

#define ENDED	(UINT32_C(1) << 31)

size_t
gs_merge_tree_bytes(uint32_t nsources)
{
	return nsources * (sizeof(const uint64_t *) + sizeof(GsMergeNode) + sizeof(GsLocatedRow));
}

/* The node of a source whose next record is given. */
static inline GsMergeNode
make_node(const GsMergeTree *merge, uint32_t source, const uint64_t *record)
{
	GsMergeNode node;

	if (record == NULL)
	{
		node.word = UINT64_MAX;
		node.source = source | ENDED;
	}
	else
	{
		node.source = source;
		if (merge->word_of != NULL)
			node.word = merge->word_of(&merge->packing, &merge->packing.chunks[0], record);
		else if (merge->words_are_values)
			node.word = merge->order.compare->locate(merge->order.compare_arg,
													 record + merge->order.layout->nwords);
		else
			node.word = 0;
	}
	return node;
}

int
gs_merge_tree_compare(const GsMergeOrder *by, const uint64_t *a, const uint64_t *b)
{
	const GsKeyLayout *layout = by->layout;
	const char *row_a = (const char *) (a + layout->nwords);
	const char *row_b = (const char *) (b + layout->nwords);
	int			order = 0;

	if (by->verify != NULL)
		return gs_row_compare(by->verify, by->compare_arg, row_a, row_b);
	if (by->keys_decide)
		order = gs_key_compare(layout, a, row_a, b, row_b);
	if (order == 0 && by->compare != NULL)
		order = gs_row_compare(by->compare, by->compare_arg, row_a, row_b);
	return order;
}

/* The next row of a source, for a comparison. */
static GsLocatedRow
located_row(const GsMergeTree *merge, uint32_t source)
{
	const GsMergeOrder *by = &merge->order;
	GsLocatedRow *located = &merge->rows[source];

	if (located->row == NULL)
		*located = gs_row_locate(by->compare, by->compare_arg,
								 merge->records[source] + by->layout->nwords);
	return *located;
}

/*
 * Compares the next rows of two sources, whose words are equal: by their keys, unless the words
 * are the whole keys, then by the caller's comparison function.  Returns < 0, 0 or > 0.
 */
static int
compare_sources(const GsMergeTree *merge, uint32_t a, uint32_t b)
{
	const GsMergeOrder *by = &merge->order;
	const int	nwords = by->layout->nwords;
	const uint64_t *record_a = merge->records[a];
	const uint64_t *record_b = merge->records[b];
	int			order = 0;

	if (!merge->words_are_keys)
		order = gs_key_compare(by->layout, record_a, (const char *) (record_a + nwords),
							   record_b, (const char *) (record_b + nwords));
	if (order == 0 && by->compare != NULL)
		order = gs_row_compare_located(by->compare, by->compare_arg, located_row(merge, a),
									   located_row(merge, b));
	return order;
}

/* Does a sort before b, if their words are equal? */
static bool
tie_comes_before(const GsMergeTree *merge, const GsMergeNode *a, const GsMergeNode *b)
{
	if (!(merge->words_are_keys && merge->order.compare == NULL) &&
		((a->source | b->source) & ENDED) == 0)
	{
		int			order = compare_sources(merge, a->source, b->source);

		if (order != 0)
			return order < 0;
	}
	return a->source < b->source;
}

/* The next row of the source of a node, which its value locates. */
static inline GsLocatedRow
row_of(const GsMergeTree *merge, const GsMergeNode *node)
{
	return (GsLocatedRow) {
		.row = merge->records[node->source] + merge->order.layout->nwords,.value = node->word
	};
}

/* Does a sort before b, if only comparisons decide? */
static inline bool
value_comes_before(const GsMergeTree *merge, const GsMergeNode *a, const GsMergeNode *b)
{
	const GsMergeOrder *by = &merge->order;
	int			order = 0;

	if (((a->source | b->source) & ENDED) == 0)
	{
		order = by->compare->compare_values(by->compare_arg, a->word, b->word);
		if (order == 0)
			order = by->compare->compare_rows(by->compare_arg, row_of(merge, a), row_of(merge, b));
	}
	return order != 0 ? order < 0 : a->source < b->source;
}

static inline bool
comes_before(const GsMergeTree *merge, const GsMergeNode *a, const GsMergeNode *b,
			 bool words_are_values)
{
	if (words_are_values)
		return value_comes_before(merge, a, b);
	return a->word != b->word ? a->word < b->word : tie_comes_before(merge, a, b);
}

/* Plays all matches in the subtree of a node, and returns the winner. */
static GsMergeNode
play_match(GsMergeTree *merge, uint32_t at)
{
	GsMergeNode left;
	GsMergeNode right;

	if (at >= merge->nsources)
		return make_node(merge, at - merge->nsources, merge->records[at - merge->nsources]);
	left = play_match(merge, 2 * at);
	right = play_match(merge, 2 * at + 1);
	if (comes_before(merge, &left, &right, merge->words_are_values))
	{
		merge->nodes[at] = right;
		return left;
	}
	merge->nodes[at] = left;
	return right;
}

void
gs_merge_tree_begin(GsMergeTree *merge, const GsMergeOrder *order,
				   const uint64_t *const *records, uint32_t nsources, void *memory)
{
	const GsKeyPacking *packing = &merge->packing;

	merge->order = *order;
	merge->nsources = nsources;
	merge->nodes = memory;
	merge->records = (const uint64_t **) (merge->nodes + nsources);
	merge->rows = (GsLocatedRow *) (merge->records + nsources);
	for (uint32_t i = 0; i < nsources; i++)
	{
		merge->records[i] = records[i];
		merge->rows[i].row = NULL;
	}

	gs_key_packing_init(&merge->packing, order->layout, 64);
	merge->word_of = NULL;
	merge->words_are_values = !order->keys_decide;
	merge->words_are_keys = packing->nchunks == 0;
	if (order->keys_decide && packing->nchunks > 0 && !packing->chunks[0].is_tail)
	{
		merge->word_of = gs_key_chunk_function(packing, &packing->chunks[0]);
		merge->words_are_keys = packing->nchunks == 1;
	}
	merge->nodes[0] = play_match(merge, 1);
}

/*
 * Exchanges two nodes, or not, without a branch, which would be mispredicted at every other match.
 */
static inline void
exchange_if(bool exchange, GsMergeNode *a, GsMergeNode *b)
{
	const uint64_t mask = -(uint64_t) exchange;
	const uint64_t word = (a->word ^ b->word) & mask;
	const uint32_t source = (a->source ^ b->source) & (uint32_t) mask;

	a->word ^= word;
	b->word ^= word;
	a->source ^= source;
	b->source ^= source;
}

/* Plays the matches of a row from its source up. */
static inline __attribute__((always_inline)) GsMergeNode
replay(const GsMergeTree *merge, GsMergeNode node, bool words_are_values)
{
	for (uint32_t at = (node.source % ENDED + merge->nsources) / 2; at > 0; at /= 2)
	{
		GsMergeNode *loser = &merge->nodes[at];

		exchange_if(comes_before(merge, loser, &node, words_are_values), loser, &node);
	}
	return node;
}

void
gs_merge_tree_replace(GsMergeTree *merge, const uint64_t *record)
{
	uint32_t	source = merge->nodes[0].source;
	GsMergeNode node;

	merge->records[source] = record;
	merge->rows[source].row = NULL;
	node = make_node(merge, source, record);
	merge->nodes[0] = merge->words_are_values ? replay(merge, node, true) :
		replay(merge, node, false);
}
