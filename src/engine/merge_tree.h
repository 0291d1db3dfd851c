/*-------------------------------------------------------------------------
 *
 * merge_tree.h
 *	  Merges sorted runs of rows by their key records.
 *
 * A loser tree (Knuth, TAOCP vol. 3, 5.4.1): each node has the loser of the
 * match between the winners of its two subtrees.  So when the smallest row has been
 * returned, the next row of its run plays only one match at each level of the tree.
 * With five runs:
 *
 *					 winner
 *					   |
 *					   1
 *				   /		\
 *				 2			  3
 *			   /   \		/   \
 *			  4		1	   2	 3		runs at the leaves
 *			 / \
 *			0	4
 *
 * A match compares the first 64 bits of the packed keys (key_pack.h), and records only if these
 * bits are equal and are not the whole key.  Rows with equal keys are ordered by the caller's
 * comparison function, if there is one, and then by the number of their run, so the
 * merge is stable.  If keys are approximate, the caller verifies the order of the rows
 * that come out.
 *
 * A record is followed by its row, as a reader of a run has it (run/run_file.h): the
 * row begins with the location word of the record, and tail words are offsets from it.
 *
 * Nothing here fails or allocates, except the comparison function.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MERGE_TREE_H
#define GPUSORT_MERGE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/key_layout.h"
#include "common/key_pack.h"
#include "engine/engine.h"

typedef struct GsMergeNode
{
	uint64_t	word;			/* the first bits of the key; or what locates
								 * the row, if only comparisons decide */
	uint32_t	source;			/* number of the run; with the top bit at its
								 * end */
} GsMergeNode;

/* What orders the rows. */
typedef struct GsMergeOrder
{
	const GsKeyLayout *layout;
	bool		keys_decide;	/* false: only compare orders rows */
	const GsRowCompare *compare;	/* orders rows with equal keys; may be NULL */
	const GsRowCompare *verify; /* keys are approximate, and it has the last word; else NULL.
								 * compare is the same, or NULL */
	const GsRowCompare *instead;	/* orders all rows, if keys take too long; may be NULL */
	void	   *compare_arg;	/* of all */
} GsMergeOrder;

typedef struct GsMergeTree
{
	GsMergeOrder order;
	uint32_t	nsources;
	bool		words_are_values;	/* no key decides */
	bool		words_are_keys; /* the first bits are the whole key */
	GsKeyChunkFunction word_of; /* computes them; NULL if there are none */
	const uint64_t **records;	/* the next of each source; NULL at its end */
	GsLocatedRow *rows;			/* the next of each source; row is NULL until it is compared */
	GsMergeNode *nodes;			/* [0] the winner, [1 .. nsources - 1] losers */
	GsKeyPacking packing;
} GsMergeTree;

/*
 * Returns < 0, 0 or > 0 as record a, followed by its row, sorts before, with or after b.
 * Only verify counts, if there is one.
 */
extern int	gs_merge_tree_compare(const GsMergeOrder *by, const uint64_t *a, const uint64_t *b);

/* Bytes of memory for a merge of nsources runs. */
extern size_t gs_merge_tree_bytes(uint32_t nsources);

/*
 * Begins a merge.  The statistics of the order's layout must cover all rows.  memory
 * has gs_merge_tree_bytes() bytes, 8-aligned.  records[] are the first record of each
 * source, or NULL, in the order of ties.
 */
extern void gs_merge_tree_begin(GsMergeTree *merge, const GsMergeOrder *order,
							   const uint64_t *const *records, uint32_t nsources,
							   void *memory);

/* The source of the smallest row; there must be one. */
static inline uint32_t
gs_merge_tree_winner(const GsMergeTree *merge)
{
	return merge->nodes[0].source;
}

/* The record of the smallest row; NULL if all sources are at their end. */
static inline const uint64_t *
gs_merge_tree_record(const GsMergeTree *merge)
{
	return merge->nodes[0].source >= merge->nsources ? NULL :
		merge->records[merge->nodes[0].source];
}

/* Replaces the smallest row by the next record of its source, or NULL at its end. */
extern void gs_merge_tree_replace(GsMergeTree *merge, const uint64_t *record);

#endif							/* GPUSORT_MERGE_TREE_H */
