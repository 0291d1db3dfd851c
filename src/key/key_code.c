/*-------------------------------------------------------------------------
 *
 * key_code.c
 *	  What several types of variable width write: see key_code.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_code.h"
#include "key/key_numeric.h"

void
gs_key_code_add_bytes(GsKeyCode *code, const char *data, size_t nbytes)
{
	memcpy(gs_key_code_reserve(code, nbytes), data, nbytes);
	code->len += nbytes;
}

void
gs_key_code_add_numeric(GsKeyCode *code, int fixed_weight, const char *data, size_t nbytes)
{
	unsigned char *to = gs_key_code_reserve(code, nbytes + GS_NUMERIC_EXTRA_BYTES);

	code->len += gs_numeric_write_code(data, nbytes, fixed_weight, to);
}

#define GROUP_BYTES		7
#define GROUP_FOLLOWED	0xFF

void
gs_key_code_add_groups(GsKeyCode *code, const char *data, size_t nbits)
{
	size_t		nbytes = (nbits + 7) / 8;
	unsigned char *to = gs_key_code_reserve(code, (nbytes / GROUP_BYTES + 1) * (GROUP_BYTES + 1));

	while (nbytes > GROUP_BYTES)
	{
		memcpy(to, data, GROUP_BYTES);
		to[GROUP_BYTES] = GROUP_FOLLOWED;
		data += GROUP_BYTES;
		nbytes -= GROUP_BYTES;
		nbits -= 8 * GROUP_BYTES;
		to += GROUP_BYTES + 1;
	}
	memset(to, 0, GROUP_BYTES);
	memcpy(to, data, nbytes);
	to[GROUP_BYTES] = (unsigned char) nbits;
	code->len = to + GROUP_BYTES + 1 - code->data;
}

bool
gs_key_code_add_text(GsKeyCode *code, GsKeyCollation *collation, const char *data, size_t nbytes,
					 const char **why_not)
{
	if (collation != NULL)
	{
		uint32		key_len;

		if (!gs_key_collation_key(collation, data, nbytes, PG_UINT32_MAX, &data, &key_len, why_not))
			return false;
		nbytes = key_len;
	}
	gs_key_code_add_bytes(code, data, nbytes);
	gs_key_code_add_byte(code, 0);
	return true;
}
