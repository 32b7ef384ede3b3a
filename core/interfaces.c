/* interfaces.c: a table that only grows; a reader sees an entry whole or not at all. */
#include "interfaces.h"

#include <pthread.h>
#include <string.h>

#define MAX_INTERFACES UINT16_MAX

struct entry {
	struct weir_interface interface;
	const struct weir_node *node;
	uint16_t id;
};

struct weir_interfaces {
	pthread_mutex_t lock; /* of writers */
	GHashTable *known;    /* under lock: the set of entries, since a file can describe 65,535 */
	unsigned count;       /* published with release */
	struct entry *entries[MAX_INTERFACES];
};

static guint hash_entry(gconstpointer key)
{
	const struct entry *entry = key;

	return g_str_hash(entry->interface.name) ^ g_direct_hash(entry->node) ^
	       entry->interface.linktype * 31;
}

static gboolean equal_entries(gconstpointer a, gconstpointer b)
{
	const struct entry *one = a, *other = b;

	return one->node == other->node && one->interface.linktype == other->interface.linktype &&
	       one->interface.snaplen == other->interface.snaplen &&
	       strcmp(one->interface.name, other->interface.name) == 0 &&
	       g_strcmp0(one->interface.description, other->interface.description) == 0;
}

struct weir_interfaces *weir_interfaces_new(void)
{
	struct weir_interfaces *interfaces = g_new0(struct weir_interfaces, 1);

	pthread_mutex_init(&interfaces->lock, NULL);
	interfaces->known = g_hash_table_new(hash_entry, equal_entries);
	return interfaces;
}

void weir_interfaces_free(struct weir_interfaces *interfaces)
{
	if (!interfaces)
		return;
	g_hash_table_unref(interfaces->known);
	for (unsigned i = 0; i < interfaces->count; i++) {
		g_free((char *)interfaces->entries[i]->interface.name);
		g_free((char *)interfaces->entries[i]->interface.description);
		g_free(interfaces->entries[i]);
	}
	pthread_mutex_destroy(&interfaces->lock);
	g_free(interfaces);
}

static uint16_t append(struct weir_interfaces *interfaces, const struct entry *wanted)
{
	struct entry *entry = g_memdup2(wanted, sizeof(*wanted));

	entry->id = (uint16_t)interfaces->count;
	entry->interface.name = g_strdup(wanted->interface.name);
	entry->interface.description = g_strdup(wanted->interface.description);
	interfaces->entries[interfaces->count] = entry;
	g_hash_table_add(interfaces->known, entry);
	__atomic_store_n(&interfaces->count, interfaces->count + 1, __ATOMIC_RELEASE);
	return entry->id;
}

uint16_t weir_interfaces_add(struct weir_interfaces *interfaces, const struct weir_node *node,
			     const struct weir_interface *interface)
{
	struct entry wanted = {*interface, node, MAX_INTERFACES};
	const struct entry *known;
	uint16_t id = MAX_INTERFACES;

	if (!wanted.interface.name)
		wanted.interface.name = "";
	pthread_mutex_lock(&interfaces->lock);
	known = g_hash_table_lookup(interfaces->known, &wanted);
	if (known)
		id = known->id;
	else if (interfaces->count < MAX_INTERFACES)
		id = append(interfaces, &wanted);
	pthread_mutex_unlock(&interfaces->lock);
	return id;
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
