/*
 * body.c: a short list of used bodies; what goes beyond it is given back to the system.
 */
#include "body.h"

#include <stdlib.h>

#define KEPT 64u

void body_pool_init(struct body_pool *pool, size_t capacity)
{
	pthread_mutex_init(&pool->lock, NULL);
	pool->free = NULL;
	pool->n_free = 0;
	pool->capacity = capacity;
}

void body_pool_clear(struct body_pool *pool)
{
	while (pool->free) {
		struct body *body = pool->free;

		pool->free = body->next;
		free(body);
	}
	pool->n_free = 0;
	pthread_mutex_destroy(&pool->lock);
}

static struct body *take_kept(struct body_pool *pool)
{
	struct body *body;

	pthread_mutex_lock(&pool->lock);
	body = pool->free;
	if (body) {
		pool->free = body->next;
		pool->n_free--;
	}
	pthread_mutex_unlock(&pool->lock);
	return body;
}

struct body *body_new(struct body_pool *pool)
{
	struct body *body = take_kept(pool);

	if (!body)
		body = malloc(sizeof(*body) + pool->capacity);
	if (!body)
		return NULL;
	body->next = NULL;
	body->pool = pool;
	body->topic = NULL;
	atomic_store(&body->announced, false);
	body->packets = 0;
	body->captured_bytes = 0;
	body->len = 0;
	return body;
}

void body_free(struct body *body)
{
	struct body_pool *pool = body->pool;
	bool keep;

	pthread_mutex_lock(&pool->lock);
	keep = pool->n_free < KEPT;
	if (keep) {
		body->next = pool->free;
		pool->free = body;
		pool->n_free++;
	}
	pthread_mutex_unlock(&pool->lock);
	if (!keep)
		free(body);
}
