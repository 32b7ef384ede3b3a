/*
 * topic.c: one lane's messages on their way to the sender: called by lanes, but for take_over.
 */
#include "sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct topic *sender_topic(struct sender *sender, struct weir_self *self)
{
	const char *name = sender->config->name ? sender->config->name : self->name;
	struct topic *topic = calloc(1, sizeof(*topic));
	int len;

	if (!topic) {
		weir_error(self, NULL, "out of memory");
		return NULL;
	}
	topic->sender = sender;
	topic->self = self;
	len = snprintf(topic->name, sizeof(topic->name), "%s/%02u/", name, self->lane_index);
	topic->name_len = (size_t)len;
	topic->next = sender->topics;
	sender->topics = topic;
	if (topic->name_len < sizeof(topic->name) && self->lane_index < 100)
		return topic;
	weir_error(self, "name", "%s is too long, or there are more than 100 lanes", name);
	return NULL;
}

unsigned topic_reserve(struct topic *topic)
{
	struct sender *sender = topic->sender;

	if (!atomic_load_explicit(&sender->ready, memory_order_acquire))
		return NO_PEER;
	if (atomic_load_explicit(&topic->reserved, memory_order_acquire) < sender->reserved_max) {
		atomic_fetch_add(&topic->reserved, 1);
		return SENT;
	}
	return atomic_load(&sender->peers.connected) ? FULL : NO_PEER;
}

void topic_unreserve(struct topic *topic)
{
	atomic_fetch_sub(&topic->reserved, 1);
	weir_notify(topic->self);
}

void topic_hand_over(struct topic *topic, struct body *body)
{
	struct sender *sender = topic->sender;
	bool was_empty;

	body->topic = topic;
	body->next = NULL;
	pthread_mutex_lock(&sender->lock);
	was_empty = !sender->first;
	*sender->last = body;
	sender->last = &body->next;
	pthread_mutex_unlock(&sender->lock);
	if (was_empty)
		sender_wake(sender);
}

struct body *sender_take_over(struct sender *sender)
{
	struct body *body;

	pthread_mutex_lock(&sender->lock);
	body = sender->first;
	if (body)
		sender->first = body->next;
	if (!sender->first)
		sender->last = &sender->first;
	pthread_mutex_unlock(&sender->lock);
	return body;
}
