/*-------------------------------------------------------------------------
 *
 * device_choice.c
 *	  The value of gpusort.device: which devices there are.
 *
 *-------------------------------------------------------------------------
 */
#include "common/device_choice.h"

#include <string.h>

/* Parses a number of one or two digits; NULL: there is none. */
static const char *
parse_number(const char *text, uint32_t *number)
{
	int			ndigits = 0;

	*number = 0;
	for (; *text >= '0' && *text <= '9'; text++, ndigits++)
		*number = *number * 10 + (uint32_t) (*text - '0');
	return ndigits == 1 || ndigits == 2 ? text : NULL;
}

bool
gs_device_choice_has(const GsDeviceChoice *choice, uint32_t number)
{
	for (uint32_t i = 0; i < choice->ndevices; i++)
		if (choice->numbers[i] == number)
			return true;
	return false;
}

void
gs_device_choice_set_all(GsDeviceChoice *choice, uint32_t ndevices)
{
	choice->ndevices = ndevices;
	for (uint32_t i = 0; i < ndevices; i++)
		choice->numbers[i] = i;
}

/* Numbers without repetition, separated by commas; spaces may follow these. */
static bool
parse_list(const char *text, GsDeviceChoice *choice)
{
	for (;;)
	{
		uint32_t	number;

		text = parse_number(text, &number);
		if (text == NULL || number >= GS_MAX_DEVICES || gs_device_choice_has(choice, number))
			return false;
		choice->numbers[choice->ndevices++] = number;
		if (*text == '\0')
			return true;
		if (*text++ != ',')
			return false;
		text += strspn(text, " ");
	}
}

bool
gs_device_choice_parse(const char *text, GsDeviceChoice *choice)
{
	*choice = (GsDeviceChoice)
	{
		.is_auto = strcmp(text, "auto") == 0
	};
	return choice->is_auto || parse_list(text, choice);
}
