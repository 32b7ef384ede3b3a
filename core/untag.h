/*
 * untag.h: a filter about packets without their VLAN tags, as one about the bytes of the wire.
 */
#ifndef WEIR_UNTAG_H
#define WEIR_UNTAG_H

#include <weir/plugin.h>

enum { WEIR_UNTAG_MOST = 32 }; /* bytes of tags that weir_vlan_tags() finds at most */

/*
 * For Ethernet.  Exact for packets with up to two tags; those with more it takes to pass, which
 * means that it rejects them where `negate` says that rejected ones are meant.  For g_free(); NULL
 * with a reason that lives for ever.
 */
struct weir_insn *weir_untag(const struct weir_insn *filter, uint32_t len, bool negate,
			     uint32_t *ret_len, const char **ret_why_not);

#endif
