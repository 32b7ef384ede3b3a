/* interfaces.c: a table that only grows; a reader sees an entry whole or not at all. */
#include "interfaces.h"

#include <pthread.h>
#include <string.h>

#define MAX_INTERFACES UINT16_MAX

struct entry {
	struct weir_interface interface;
	const struct weir_node *node;
};

struct weir_interfaces {
	pthread_mutex_t lock; /* of writers */
	unsigned count;       /* published with release */
	struct entry *entries[MAX_INTERFACES];
};

struct weir_interfaces *weir_interfaces_new(void)
{
	struct weir_interfaces *interfaces = g_new0(struct weir_interfaces, 1);

	pthread_mutex_init(&interfaces->lock, NULL);
	return interfaces;
}

void weir_interfaces_free(struct weir_interfaces *interfaces)
{
	if (!interfaces)
		return;
	for (unsigned i = 0; i < interfaces->count; i++) {
		g_free((char *)interfaces->entries[i]->interface.name);
		g_free((char *)interfaces->entries[i]->interface.description);
		g_free(interfaces->entries[i]);
	}
	pthread_mutex_destroy(&interfaces->lock);
	g_free(interfaces);
}

static bool equal(const struct entry *entry, const struct weir_node *node,
		  const struct weir_interface *interface)
{
	return entry->node == node && entry->interface.linktype == interface->linktype &&
	       entry->interface.snaplen == interface->snaplen &&
	       strcmp(entry->interface.name, interface->name ? interface->name : "") == 0 &&
	       g_strcmp0(entry->interface.description, interface->description) == 0;
}

static unsigned append(struct weir_interfaces *interfaces, const struct weir_node *node,
		       const struct weir_interface *interface)
{
	struct entry *entry = g_new0(struct entry, 1);
	unsigned id = interfaces->count;

	*entry = (struct entry){*interface, node};
	entry->interface.name = g_strdup(interface->name ? interface->name : "");
	entry->interface.description = g_strdup(interface->description);
	interfaces->entries[id] = entry;
	__atomic_store_n(&interfaces->count, id + 1, __ATOMIC_RELEASE);
	return id;
}

uint16_t weir_interfaces_add(struct weir_interfaces *interfaces, const struct weir_node *node,
			     const struct weir_interface *interface)
{
	unsigned id;

	pthread_mutex_lock(&interfaces->lock);
	for (id = 0; id < interfaces->count; id++) {
		if (equal(interfaces->entries[id], node, interface))
			break;
	}
	if (id == interfaces->count && id < MAX_INTERFACES)
		id = append(interfaces, node, interface);
	pthread_mutex_unlock(&interfaces->lock);
	return (uint16_t)id;
}

unsigned weir_interfaces_count(const struct weir_interfaces *interfaces)
{
	return __atomic_load_n(&interfaces->count, __ATOMIC_ACQUIRE);
}

const struct weir_interface *weir_interfaces_get(const struct weir_interfaces *interfaces,
						 uint16_t id)
{
	return id < weir_interfaces_count(interfaces) ? &interfaces->entries[id]->interface : NULL;
}

const struct weir_node *weir_interfaces_node(const struct weir_interfaces *interfaces, uint16_t id)
{
	return id < weir_interfaces_count(interfaces) ? interfaces->entries[id]->node : NULL;
}
