/*-------------------------------------------------------------------------
 *
 * no_value.cuh
 *	  The value type of a sort of keys alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NO_VALUE_CUH
#define GPUSORT_NO_VALUE_CUH

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

#endif /* GPUSORT_NO_VALUE_CUH */
