/*
 * elf.c: looks at a shared object without loading it.
 */
#include "elf.h"
#include "loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool refuse(GError **error, const char *path, const char *why)
{
	g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED, "%s: %s", path, why);
	return false;
}

static bool find_self(Dl_info *ret)
{
	static const char here;

	return dladdr(&here, ret) != 0;
}

char *weir_elf_own_path(void)
{
	Dl_info self;

	return g_canonicalize_filename(find_self(&self) ? self.dli_fname : "libweir.so", NULL);
}

/* The machine that this very library was built for. */
static Elf64_Half own_machine(void)
{
	Dl_info self;

	return find_self(&self) ? ((const Elf64_Ehdr *)self.dli_fbase)->e_machine : EM_NONE;
}

/* The owner of this very library can do anything here already: who has built Weir as a user may run
 * it as root. */
static bool is_trusted(uid_t owner)
{
	g_autofree char *own = weir_elf_own_path();
	struct stat status;

	return owner == 0 || owner == geteuid() ||
	       (stat(own, &status) == 0 && owner == status.st_uid);
}

static bool check_owner(const char *path, const struct stat *status, GError **error)
{
	g_autofree char *why = NULL;

	if (!S_ISREG(status->st_mode))
		return refuse(error, path, "is no regular file");
	if (!is_trusted(status->st_uid)) {
		why = g_strdup_printf("belongs to user %u; expected root or user %u",
				      status->st_uid, geteuid());
		return refuse(error, path, why);
	}
	if (status->st_mode & (S_IWGRP | S_IWOTH)) {
		why = g_strdup_printf("can be written by others (mode %04o): chmod go-w",
				      status->st_mode & 07777u);
		return refuse(error, path, why);
	}
	return true;
}

/* What the segments need must be in the file: mapping a cut one would end in SIGBUS. */
static bool is_whole(int fd, const Elf64_Ehdr *header, off_t size)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header->e_phoff + i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
			return false;
		if (segment.p_type == PT_LOAD &&
		    (segment.p_offset > (Elf64_Off)size ||
		     segment.p_filesz > (Elf64_Off)size - segment.p_offset))
			return false;
	}
	return true;
}

static bool check_header(int fd, const char *path, off_t size, GError **error)
{
	Elf64_Ehdr header = {0};

	if (pread(fd, &header, sizeof(header), 0) < SELFMAG ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return refuse(error, path, "is no ELF file");
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != own_machine())
		return refuse(error, path, "is built for another kind of machine");
	if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr))
		return refuse(error, path, "is no shared object");
	if (!is_whole(fd, &header, size))
		return refuse(error, path, "is cut short");
	return true;
}

bool weir_elf_check(const char *path, GError **error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	bool ok;

	if (fd < 0)
		return refuse(error, path, g_strerror(errno));
	if (fstat(fd, &status) < 0)
		ok = refuse(error, path, g_strerror(errno));
	else
		ok = check_owner(path, &status, error) &&
		     check_header(fd, path, status.st_size, error);
	close(fd);
	return ok;
}
