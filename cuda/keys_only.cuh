/*-------------------------------------------------------------------------
 *
 * keys_only.cuh
 *	  The value type of a sort without values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEYS_ONLY_CUH
#define GPUSORT_KEYS_ONLY_CUH

typedef struct GsNoValue
{
	char unused;
} GsNoValue;

template <typename Value>
struct GsHasValue
{
	static const bool yes = true;
};
template <>
struct GsHasValue<GsNoValue>
{
	static const bool yes = false;
};

#endif /* GPUSORT_KEYS_ONLY_CUH */
