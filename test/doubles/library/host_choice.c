/*-------------------------------------------------------------------------
 *
 * host_choice.c
 *	  Values of gpusort.device that only a test build has.
 *
 *	  host		the CPU
 *	  host:4	the CPU as several devices, which share its memory
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "common/device_table.h"
#include "doubles/wrap.h"

GS_WRAP(gs_device_choice_parse);

bool
__wrap_gs_device_choice_parse(const char *text, GsDeviceChoice *choice)
{
	int			ndevices = 1;

	if (strncmp(text, "host", 4) != 0)
		return __real_gs_device_choice_parse(text, choice);
	if (text[4] != '\0')
	{
		const char *digits = text + 5;
		size_t		ndigits;

		if (text[4] != ':')
			return false;
		ndigits = strspn(digits, "0123456789");
		if (ndigits < 1 || ndigits > 2 || digits[ndigits] != '\0')
			return false;
		ndevices = atoi(digits);
	}
	if (ndevices < 1 || ndevices > GS_MAX_DEVICES)
		return false;
	choice->is_auto = false;
	choice->devices = GS_DEVICES_BELOW(ndevices);
	return true;
}
