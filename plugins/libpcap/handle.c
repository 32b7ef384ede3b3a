/*
 * handle.c: opens a device of libpcap, and says what would help where it does not open.
 */
#include "libpcap.h"
#include "nflog.h"

#include <weir/capfile.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_US          1000
#define NS_PER_MS          1000000
#define NS_PER_S           1000000000LL
#define LISTED_BYTES       160u
#define LINKTYPE_IN_HEADER 20u
#define LINKTYPE_MASK      0x0fffffffu /* above it: length of a frame check sequence */

/* ---- What goes wrong ---- */

/* "any, lo, eth0, …": as many as there is room for. */
static const char *list_devices(char *text, size_t size)
{
	char ignored[PCAP_ERRBUF_SIZE];
	pcap_if_t *devices = NULL;
	size_t at = 0;

	text[0] = '\0';
	if (pcap_findalldevs(&devices, ignored) != 0)
		return text;
	for (const pcap_if_t *device = devices; device; device = device->next) {
		size_t len = strlen(device->name);
		if (at + len + 8 > size) {
			snprintf(text + at, size - at, ", …");
			break;
		}
		at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", device->name);
	}
	pcap_freealldevs(devices);
	return text;
}

static const char *permission_of(const char *device)
{
	if (strncmp(device, "nflog", 5) == 0 || strncmp(device, "nfqueue", 7) == 0)
		return "the capability CAP_NET_ADMIN: run as root, or 'setcap "
		       "cap_net_admin=ep' on the program";
	if (strncmp(device, "usbmon", 6) == 0)
		return "to read /dev/usbmon*, which root may";
	if (strncmp(device, "bluetooth", 9) == 0)
		return "the capabilities CAP_NET_RAW and CAP_NET_ADMIN: run as root, or 'setcap "
		       "cap_net_raw,cap_net_admin=ep' on the program";
	return "the capability CAP_NET_RAW: run as root, or 'setcap cap_net_raw=ep' on "
	       "the program";
}

static void WEIR_PRINTF(3, 4)
	refuse(struct refusal *ret, const char *option, const char *format, ...)
{
	va_list arguments;

	ret->option = option;
	va_start(arguments, format);
	vsnprintf(ret->text, sizeof(ret->text), format, arguments);
	va_end(arguments);
}

static void explain(const char *device, pcap_t *pcap, int status, struct refusal *ret)
{
	const char *detail = pcap_geterr(pcap);
	char listed[LISTED_BYTES];

	ret->is_final = status == PCAP_ERROR_PERM_DENIED ||
			status == PCAP_ERROR_PROMISC_PERM_DENIED;
	if (ret->is_final)
		refuse(ret, "interface", "interface=%s needs %s", device, permission_of(device));
	else if (status == PCAP_ERROR_NO_SUCH_DEVICE)
		refuse(ret, "interface",
		       "libpcap finds no device '%s' in this network namespace; it finds %s",
		       device, list_devices(listed, sizeof(listed)));
	else if (status == PCAP_ERROR_IFACE_NOT_UP)
		refuse(ret, "interface", "interface=%s is down; 'ip link set %s up' would help",
		       device, device);
	else
		refuse(ret, "interface", "interface=%s: %s", device,
		       *detail ? detail : pcap_statustostr(status));
}

/* ---- Opening ---- */

static pcap_t *activate(struct weir_self *self, struct refusal *ret)
{
	const struct libpcap_config *config = self->config;
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_create(config->interface, why);

	if (!pcap) {
		refuse(ret, "interface", "interface=%s: %s", config->interface, why);
		return NULL;
	}
	pcap_set_snaplen(pcap, (int)WEIR_MAX_CAPLEN);
	pcap_set_promisc(pcap, config->promisc && strcmp(config->interface, "any") != 0);
	pcap_set_timeout(pcap, (int)(config->retire_ns / NS_PER_MS));
	pcap_set_buffer_size(pcap, (int)config->ring_bytes);
	/* Refused by devices that have microseconds only. */
	(void)pcap_set_tstamp_precision(pcap, PCAP_TSTAMP_PRECISION_NANO);
	int status = pcap_activate(pcap);
	if (status > 0)
		weir_log(self, WEIR_WARN, "interface=%s: %s", config->interface,
			 status == PCAP_WARNING ? pcap_geterr(pcap) : pcap_statustostr(status));
	if (status >= 0)
		return pcap;
	explain(config->interface, pcap, status, ret);
	pcap_close(pcap);
	return NULL;
}

static int socket_number(int fd, int option)
{
	int value = -1;
	socklen_t size = sizeof(value);
	return getsockopt(fd, SOL_SOCKET, option, &value, &size) ? -1 : value;
}

static enum handle_kind kind_of(const char *device, int fd)
{
	if (socket_number(fd, SO_DOMAIN) == AF_PACKET)
		return HANDLE_PACKET;
	if (strncmp(device, "nflog", 5) == 0)
		return HANDLE_NETLINK;
	return strncmp(device, "usbmon", 6) == 0 ? HANDLE_USB : HANDLE_OTHER;
}

/* The number of a DLT_ in files is libpcap's secret, so a file's header is had written and read. */
static bool linktype_of(pcap_t *pcap, uint32_t *ret)
{
	unsigned char header[64] = {0};
	FILE *file = fmemopen(header, sizeof(header), "wb");
	pcap_dumper_t *dumper = file ? pcap_dump_fopen(pcap, file) : NULL;

	if (!dumper) {
		if (file)
			fclose(file);
		return false;
	}
	pcap_dump_close(dumper);
	memcpy(ret, header + LINKTYPE_IN_HEADER, sizeof(*ret));
	*ret &= LINKTYPE_MASK;
	return true;
}

static bool choose_linktype(struct handle *handle, const struct libpcap_config *config,
			    struct refusal *ret)
{
	const char *wanted = config->linktype;

	if (wanted) {
		int dlt = pcap_datalink_name_to_val(wanted);
		if (dlt < 0 || pcap_set_datalink(handle->pcap, dlt) != 0) {
			refuse(ret, "link-type", "link-type=%s: %s cannot have that; it has %s",
			       wanted, config->interface,
			       pcap_datalink_val_to_name(pcap_datalink(handle->pcap)));
			return false;
		}
	}
	if (linktype_of(handle->pcap, &handle->linktype))
		return true;
	refuse(ret, "interface", "interface=%s: capture files have no number for its frames: %s",
	       config->interface, pcap_geterr(handle->pcap));
	return false;
}

static bool choose_direction(struct handle *handle, const struct libpcap_config *config,
			     struct refusal *ret)
{
	static const pcap_direction_t directions[] = {PCAP_D_INOUT, PCAP_D_IN, PCAP_D_OUT};

	if (handle->kind == HANDLE_PACKET || config->direction == PROGRAM_BOTH ||
	    pcap_setdirection(handle->pcap, directions[config->direction]) == 0)
		return true;
	refuse(ret, "direction", "%s does not tell directions: %s; direction=both would work",
	       config->interface, pcap_geterr(handle->pcap));
	return false;
}

static void look_at(struct handle *handle, const char *device)
{
	handle->fd = pcap_get_selectable_fd(handle->pcap);
	handle->kind = kind_of(device, handle->fd);
	handle->is_cooked = handle->kind != HANDLE_PACKET ||
			    socket_number(handle->fd, SO_TYPE) == SOCK_DGRAM;
	handle->index = handle->kind == HANDLE_PACKET ? if_nametoindex(device) : 0;
	bool has_ns = pcap_get_tstamp_precision(handle->pcap) == PCAP_TSTAMP_PRECISION_NANO;
	handle->fraction_ns = has_ns ? 1 : NS_PER_US;
	handle->last = (struct pcap_stat){0};
}

bool handle_open(struct handle *handle, struct weir_self *self, struct refusal *ret)
{
	const struct libpcap_config *config = self->config;
	char why[PCAP_ERRBUF_SIZE];

	handle->pcap = activate(self, ret);
	if (!handle->pcap)
		return false;
	look_at(handle, config->interface);
	if (handle->kind == HANDLE_PACKET)
		program_attach_drop_all(handle->fd);
	if (handle->kind == HANDLE_NETLINK)
		nflog_set_timeout(handle->fd, config->interface, config->retire_ns);
	if (pcap_setnonblock(handle->pcap, 1, why) == 0)
		return choose_linktype(handle, config, ret) &&
		       choose_direction(handle, config, ret);
	refuse(ret, "interface", "interface=%s: %s", config->interface, why);
	return false;
}

void handle_close(struct handle *handle)
{
	if (handle->pcap)
		pcap_close(handle->pcap);
	handle->pcap = NULL;
	handle->fd = -1;
}

/* ---- Letting in ---- */

/* Until no processor is inside the kernel's receive function for our socket any more. */
static void let_processors_finish(void)
{
	struct timespec moment = {.tv_nsec = 20 * NS_PER_MS};

	/* Refused under nohz_full, and by some containers. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0)
		nanosleep(&moment, NULL);
}

int handle_start(struct handle *handle, enum program_direction direction,
		 const struct weir_insn *wanted, uint32_t len)
{
	struct timespec now;

	if (handle->kind != HANDLE_PACKET)
		return 0;
	let_processors_finish();
	pcap_stats(handle->pcap, &handle->last);
	handle->early = handle->last.ps_recv - handle->last.ps_drop;
	clock_gettime(CLOCK_REALTIME, &now);
	handle->start_ns = now.tv_sec * NS_PER_S + now.tv_nsec;
	return program_attach(handle->fd, direction, wanted, len);
}

void handle_stop(struct handle *handle)
{
	if (!handle->pcap || handle->kind != HANDLE_PACKET)
		return;
	program_attach_drop_all(handle->fd);
	let_processors_finish();
}

static uint64_t dropped_since(const struct handle *handle, const struct pcap_stat *now)
{
	if (handle->kind == HANDLE_OTHER)
		return 0;
	return handle->kind == HANDLE_USB ? now->ps_drop : now->ps_drop - handle->last.ps_drop;
}

/* Sums of 32 bits, so differences are taken in as many. */
void handle_statistics(struct handle *handle)
{
	struct pcap_stat now = {0};

	if (!handle->pcap || pcap_stats(handle->pcap, &now) != 0)
		return;
	uint64_t dropped = dropped_since(handle, &now);
	handle->drops += dropped;
	if (handle->kind == HANDLE_PACKET) {
		handle->packets += now.ps_recv - handle->last.ps_recv;
		handle->nic += now.ps_ifdrop - handle->last.ps_ifdrop;
	} else {
		handle->packets += dropped;
	}
	handle->last = now;
}
