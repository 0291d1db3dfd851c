/*-------------------------------------------------------------------------
 *
 * collation_icu_state.h
 *	  The tables from which sort keys of ICU are built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATION_ICU_STATE_H
#define GPUSORT_COLLATION_ICU_STATE_H

#include "collation/collation_icu.h"

/* Characters in the tables from the beginning: up to U+06FF, one or two bytes of UTF-8. */
#define NCHARS			0x700
#define MIN_LEAD		0xC2
#define MAX_LEAD		0xDB

/*
 * Characters of three bytes of UTF-8 with these first bytes: punctuation, kana and Han up to
 * U+9FFF, and Hangul, are added when they occur.
 */
#define FIRST_EAST_ASIAN	0x3000
#define LAST_EAST_ASIAN		0xDFFF
#define IS_EAST_ASIAN(c)	((c) >= FIRST_EAST_ASIAN && (c) <= LAST_EAST_ASIAN)
#define IS_EAST_ASIAN_LEAD(byte)	((byte) >= 0xE3 && (byte) <= 0xED)

/* Elements of a character: u, diaeresis, macron. */
#define MAX_CES			3

/* Secondary and tertiary weights: a byte, and another one if that is not 0. */
#define COMMON_WEIGHT	0x0500

typedef struct Element
{
	uint32		original;		/* primary weight, as the collator returns it */
	unsigned char primary[4];	/* as it is in keys */
	unsigned char len;
	bool		compressible;	/* its first byte is not repeated */
	uint16		secondary;
	uint16		tertiary;
} Element;

/* A character: its elements, from elements[at] on, and KIND_ bits. */
typedef struct Character
{
	uint16		at;
	unsigned char nces;
	unsigned char kind;
} Character;

#define KIND_STARTS_CONTRACTION		1	/* if a character of the next kind follows */
#define KIND_CONTINUES_CONTRACTION	2
#define KIND_UNKNOWN				4
#define KIND_SECONDARY				8	/* has a weight that is not the common one */
#define KIND_TERTIARY				16

struct GsIcuKeys
{
	Oid			collation;		/* hash key */
	bool		agreement_known;	/* disagrees is set */
	bool		disagrees;		/* gs_icu_disagrees() */
	bool		usable;			/* the tables */
	int			ntexts;			/* left to ICU before the tables are made */
	int			nstrengths;
	Character  *chars;			/* NCHARS; the first is unknown.  NULL: no tables */
	Character  *east_asian;		/* from FIRST_EAST_ASIAN on; without elements if it has not
								 * occurred.  NULL: all are unknown */
	Element    *elements;
	int			nces;
	int			ces_allocated;
	bool		has_jamo;		/* elements[] has those of the letters of Hangul */
	unsigned char plain[256];	/* of an ASCII character: its only primary byte, if nothing else is
								 * special about it; else 0 */
};

/* -------------------------------------------------- collation_icu_tables.c */

/* Has the server the version of ICU that this was built for? */
extern bool gs_icu_tables_can_be_made(void);

/* Makes the tables of a collation.  They are usable unless ICU's keys are not as expected. */
extern void gs_icu_tables_make(GsIcuKeys *icu_keys);

/*
 * Adds an East Asian character that occurs for the first time, or leaves it to ICU from now on.
 * That takes as long as three keys of ICU (1.3 us; Zen 5, ICU 72, 2026-11).
 */
extern void gs_icu_tables_learn(GsIcuKeys *icu_keys, Character *character);

/* --------------------------------------------------------- collation_icu.c */

/* Writes a key of nstrengths levels.  Returns its end, or NULL if it has to be left to ICU. */
extern unsigned char *gs_icu_keys_put(GsIcuKeys *icu_keys, const char *string, Size len,
									  int nstrengths, unsigned char *out);

/* The first 8 bytes of the primary level.  False: the text has to be left to ICU. */
extern bool gs_icu_keys_put_prefix(GsIcuKeys *icu_keys, const char *string, Size len,
								   uint64 *code);

#endif							/* GPUSORT_COLLATION_ICU_STATE_H */
