/*
 * format.h: what the bytes of a file are; the same calls for classic pcap and pcapng.
 */
#ifndef PCAP_FORMAT_H
#define PCAP_FORMAT_H

#include <weir/capfile.h>
#include <sys/utsname.h>

/* The largest header, interface block or record. */
#define FORMAT_UNIT_MAX (WEIR_MAX_CAPLEN + WEIR_PCAPNG_PACKET_MAX)

struct format {
	bool pcapng;
	bool extras;
	enum weir_precision precision;
	struct utsname system;
	char *comment; /* of the section: what has made the file */
};

/* Whether a name ends as those of pcapng files do. */
bool format_name_is_pcapng(const char *path);

/* What starts a file; to has room for FORMAT_UNIT_MAX bytes, as in format_interface(). */
size_t format_header(const struct format *format, uint8_t *to, uint32_t linktype);
/* What introduces an interface: nothing in a classic file.  filter: what its packets have passed;
 * may be NULL. */
size_t format_interface(const struct format *format, uint8_t *to,
			const struct weir_interface *interface, const char *filter);

/* Sets the comment: the checksum of the pipeline, and its text if that has at most max_bytes.
 * false: out of memory. */
bool format_describe(struct format *format, const char *pipeline, const char *sha256,
		     uint64_t max_bytes);

static inline size_t format_record_size(const struct format *format,
					const struct weir_packet *packet)
{
	return format->pcapng ? weir_pcapng_packet_size(packet, format->extras)
			      : WEIR_PCAP_RECORD + (size_t)packet->caplen;
}

static inline size_t format_record(const struct format *format, uint8_t *to,
				   const struct weir_packet *packet, uint32_t file_iface)
{
	return format->pcapng ? weir_pcapng_packet(to, packet, file_iface, format->extras)
			      : weir_pcap_record(to, packet, format->precision);
}

#endif
