/*-------------------------------------------------------------------------
 *
 * run_merge.h
 *	  Merges sorted runs of rows by their key records.
 *
 * A tree of losers: each node keeps the loser of the match between the winners
 * of its two halves, so that once the smallest row has been taken, its run's
 * next one has to play one match a level and no more.  With five runs:
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
 * A match compares two integers: the first 64 bits of the packed keys
 * (key_pack.h), made once when a row comes to the front of its run.  The
 * records are looked at only where these bits agree and do not say it all.
 * Rows with equal keys come in the order of their runs, so the merge is stable,
 * unless a driver's comparison function orders them.  Where keys are only a hint
 * that function alone decides.
 *
 * A record here is followed by its row, as a reader of a run has it (run_file.h): the row
 * begins with the record's last word, and tails count from there.
 *
 * ISO C, no PostgreSQL.  Nothing here fails or allocates, but for what compare does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_MERGE_H
#define GPUSORT_RUN_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "common/key_layout.h"
#include "common/key_pack.h"

typedef struct GsMergeNode
{
	uint64_t	word;			/* the first bits of the key */
	uint32_t	source;			/* a run that is at its end has the top bit, too */
} GsMergeNode;

/* What decides. */
typedef struct GsMergeOrder
{
	const GsKeyLayout *layout;
	bool		keys_decide;	/* false: only compare does */
	GsRowCompare compare;		/* of rows with equal keys; may be NULL */
	void	   *compare_arg;
} GsMergeOrder;

typedef struct GsRunMerge
{
	GsMergeOrder order;
	uint32_t	nsources;
	bool		words_decide;	/* the first bits are all there is to compare */
	GsKeyChunkFunction word_of;	/* NULL if there are none */
	const uint64_t **records;	/* at the front of each source; NULL at its end */
	GsMergeNode *nodes;			/* [0] the winner, [1 .. nsources - 1] losers */
	GsKeyPacking packing;
} GsRunMerge;

/* Bytes that so many sources need. */
extern size_t gs_run_merge_bytes(uint32_t nsources);

/*
 * Begins a merge.  The order's layout has observed every row that will come.  memory
 * is gs_run_merge_bytes() of 8-aligned memory, records[] the first record of each source or
 * NULL, in the order that ties are to have.
 */
extern void gs_run_merge_begin(GsRunMerge *merge, const GsMergeOrder *order,
							   const uint64_t *const *records, uint32_t nsources,
							   void *memory);

/* The source of the smallest row; there is one. */
static inline uint32_t
gs_run_merge_winner(const GsRunMerge *merge)
{
	return merge->nodes[0].source;
}

/* Its record; NULL if all sources are at their end. */
static inline const uint64_t *
gs_run_merge_record(const GsRunMerge *merge)
{
	return merge->nodes[0].source >= merge->nsources ? NULL :
		merge->records[merge->nodes[0].source];
}

/* The winner's next record, or NULL, takes its place. */
extern void gs_run_merge_replace(GsRunMerge *merge, const uint64_t *record);

#endif							/* GPUSORT_RUN_MERGE_H */
