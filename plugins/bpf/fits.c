#include "fits.h"

#include <stdio.h>
#include <stdlib.h>

#include "program.h"

void fits_init(struct fits *fits, char *text, bool tags_taken_off)
{
	pthread_mutex_init(&fits->lock, NULL);
	fits->first = NULL;
	fits->text = text;
	fits->tags_taken_off = tags_taken_off;
}

void fits_clear(struct fits *fits)
{
	if (!fits->text)
		return;
	while (fits->first) {
		struct fit *fit = fits->first;
		fits->first = fit->next;
		if (fit->compiled)
			pcap_freecode(&fit->program);
		free(fit);
	}
	free(fits->text);
	fits->text = NULL;
	pthread_mutex_destroy(&fits->lock);
}

static void compile(struct fit *fit, const struct fits *fits)
{
	fit->compiled = program_compile(&fit->program, fits->text, fit->linktype, fit->why,
					sizeof(fit->why));
	if (!fit->compiled)
		return;
	fit->sees_tags = program_sees_tags(&fit->program);
	if (!fits->tags_taken_off || !fit->sees_tags)
		return;
	snprintf(fit->why, sizeof(fit->why),
		 "the filter asks for VLAN tags, which vlan=skip takes off");
	pcap_freecode(&fit->program);
	fit->compiled = false;
}

const struct fit *fits_find(struct fits *fits, uint32_t linktype, bool *ret_new)
{
	*ret_new = false;
	pthread_mutex_lock(&fits->lock);
	struct fit *fit = fits->first;
	while (fit && fit->linktype != linktype)
		fit = fit->next;
	if (!fit && (fit = calloc(1, sizeof(*fit)))) {
		*ret_new = true;
		fit->linktype = linktype;
		compile(fit, fits);
		fit->next = fits->first;
		fits->first = fit;
	}
	pthread_mutex_unlock(&fits->lock);
	return fit;
}
