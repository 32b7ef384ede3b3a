# Weir: `make` builds, `make check` tests, `make demo` shows, `make help` lists the rest.

VARIANT ?= release
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
MANDIR  ?= $(PREFIX)/share/man
VERSION := 0.1.0

B := $(if $(filter release,$(VARIANT)),build,build-$(VARIANT))
Q := $(if $(V),,@)

CC       ?= cc
PYTHON   := /usr/bin/python3
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
FLAGS_release := -O2 -g -D_FORTIFY_SOURCE=2
FLAGS_debug   := -O0 -g3
FLAGS_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FLAGS_tsan    := -O1 -g -fsanitize=thread
FLAGS_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address -fno-omit-frame-pointer
override CPPFLAGS += -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -Iinclude
override CFLAGS   += -std=c17 $(WARNINGS) $(FLAGS_$(VARIANT)) -fPIC -pthread
override LDFLAGS  += $(filter -fsanitize%,$(FLAGS_$(VARIANT))) -pthread -Wl,--as-needed -Wl,-z,now

pkg_cflags = $(shell pkg-config --cflags $(1))
pkg_libs   = $(shell pkg-config --libs $(1))

# ---- What each part needs of other libraries (docs/dependencies.md says why) ----

CORE_PKGS := glib-2.0 gmodule-2.0 json-glib-1.0 libcap-ng libsodium

include plugins/packages.mk

# ---- The library and the command ----

CORE_SRC := $(filter-out core/main.c,$(wildcard core/*.c))
CORE_OBJ := $(CORE_SRC:%.c=$(B)/%.o)

PLUGIN_NAMES := $(sort $(patsubst plugins/%.c,%,$(wildcard plugins/*.c)) \
                       $(patsubst plugins/%/,%,$(dir $(wildcard plugins/*/*.c))))
plugin_src   = $(filter-out %.bpf.c,$(wildcard plugins/$(1).c plugins/$(1)/*.c)) $(ALSO_$(1))
plugin_skel  = $(patsubst %.bpf.c,$(B)/%.skel.h,$(wildcard plugins/$(1)/*.bpf.c))
missing_pkgs = $(foreach p,$(PKGS_$(1)),$(if $(shell pkg-config --exists $(p) || echo no),$(p)))
missing      = $(missing_pkgs) $(foreach t,$(TOOLS_$(1)),$(if $(shell command -v $(t)),,$(notdir $(t))))
LEFT_OUT    := $(foreach n,$(PLUGIN_NAMES),$(if $(strip $(call missing,$(n))),$(n)))
PLUGINS     := $(filter-out $(LEFT_OUT),$(PLUGIN_NAMES))

.PHONY: all
all: $(B)/weir $(PLUGINS:%=$(B)/plugins/%.so)
	$(foreach n,$(LEFT_OUT),$(Q)echo "left out: plugin $(n), which needs $(strip $(call missing,$(n)))"$(newline))

define newline


endef

$(B)/libweir.so: $(CORE_OBJ)
	@echo "  LINK  $@"
	$(Q)$(CC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-soname,libweir.so -o $@ $^ $(call pkg_libs,$(CORE_PKGS)) -lm

# The library is looked for in a folder that is given as seen from the command's own; and as it is, since the
# loader does not trust the former where the command has capabilities of its own (setcap).
link_weir = $(CC) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/$(1):$(2)' -o $@ $< -L$(B) -lweir $(call pkg_libs,$(CORE_PKGS))

$(B)/weir: $(B)/core/main.o $(B)/libweir.so
	@echo "  LINK  $@"
	$(Q)$(call link_weir,.,$(abspath $(B)))

# Linked anew each time: LIBDIR may be another one.
.PHONY: $(B)/installed/weir
$(B)/installed/weir: $(B)/core/main.o $(B)/libweir.so
	@mkdir -p $(@D)
	$(Q)$(call link_weir,$(shell realpath -m --relative-to=$(PREFIX)/bin $(LIBDIR)),$(LIBDIR))

$(B)/core/%.o: core/%.c
	@echo "  CC    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(call pkg_cflags,$(CORE_PKGS)) $(CFLAGS) -MMD -MP -c -o $@ $<

BUILT_WITH = $(shell for p in $(sort libcap-ng libsodium $(foreach n,$(PLUGINS),$(PKGS_$(n)))); do \
	echo "$$p $$(pkg-config --modversion $$p)"; done | paste -sd, | sed 's/,/, /g')
$(B)/core/versions.o: override CPPFLAGS += -DWEIR_BUILT_WITH='"$(BUILT_WITH)"'

define plugin_rules
$(B)/plugins/$(1).so: $(patsubst %.c,$(B)/%.o,$(call plugin_src,$(1))) $(B)/libweir.so
	@echo "  LINK  $$@"
	$(Q)$(CC) -shared $(CFLAGS) $(LDFLAGS) -o $$@ $$(filter %.o,$$^) -L$(B) -lweir $(if $(PKGS_$(1)),$(call pkg_libs,$(PKGS_$(1))))
$(patsubst %.c,$(B)/%.o,$(filter-out $(ALSO_$(1)),$(call plugin_src,$(1)))): PLUGIN_CFLAGS := -fvisibility=hidden $(if $(PKGS_$(1)),$(call pkg_cflags,$(PKGS_$(1)))) $(if $(call plugin_skel,$(1)),-isystem $(B)/plugins)
$(patsubst %.c,$(B)/%.o,$(filter-out $(ALSO_$(1)),$(call plugin_src,$(1)))): | $(call plugin_skel,$(1))
endef
$(foreach n,$(PLUGINS),$(eval $(call plugin_rules,$(n))))

$(B)/plugins/%.o: plugins/%.c
	@echo "  CC    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PLUGIN_CFLAGS) -MMD -MP -c -o $@ $<

# A BPF program becomes a header that holds it, with accessors to its parts.
$(B)/plugins/%.skel.h: plugins/%.bpf.c
	@echo "  BPF   $@"
	@mkdir -p $(@D)
	$(Q)$(CLANG) -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -I/usr/include/$(shell $(CC) -print-multiarch) -MMD -MP -MT $@ \
		-MF $(@:.h=.d) -c -o $(@:.skel.h=.bpf.o) $<
	$(Q)$(BPFTOOL) gen object $(@:.skel.h=.o.stripped) $(@:.skel.h=.bpf.o)
	$(Q)$(BPFTOOL) gen skeleton $(@:.skel.h=.o.stripped) name $(notdir $*)_bpf > $@

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# ---- Tests, tools, installation ----

include tests/tests.mk

.PHONY: deps
deps:
	$(Q)tools/deps.sh

.PHONY: install uninstall
install: all $(B)/installed/weir
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/weir/plugins $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(PREFIX)/include/weir $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man7
	$(Q)install -m 755 $(B)/installed/weir $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 644 $(B)/libweir.so $(DESTDIR)$(LIBDIR)/
	$(Q)install -m 644 $(PLUGINS:%=$(B)/plugins/%.so) $(DESTDIR)$(LIBDIR)/weir/plugins/
	$(Q)install -m 644 include/weir/*.h $(DESTDIR)$(PREFIX)/include/weir/
	$(Q)install -m 644 docs/man/*.1 $(DESTDIR)$(MANDIR)/man1/
	$(Q)install -m 644 docs/man/*.7 $(DESTDIR)$(MANDIR)/man7/
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		tools/weir.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/weir.pc

# Plugins of others stay, and so do folders that something is left in.
uninstall:
	$(Q)rm -f $(DESTDIR)$(PREFIX)/bin/weir $(DESTDIR)$(LIBDIR)/libweir.so $(DESTDIR)$(LIBDIR)/pkgconfig/weir.pc \
		$(PLUGIN_NAMES:%=$(DESTDIR)$(LIBDIR)/weir/plugins/%.so) $(patsubst docs/man/%,$(DESTDIR)$(MANDIR)/man1/%,$(wildcard docs/man/*.1)) \
		$(patsubst docs/man/%,$(DESTDIR)$(MANDIR)/man7/%,$(wildcard docs/man/*.7))
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/include/weir
	$(Q)for folder in $(DESTDIR)$(LIBDIR)/weir/plugins $(DESTDIR)$(LIBDIR)/weir; do \
		rmdir --ignore-fail-on-non-empty $$folder 2>/dev/null || :; done

SOURCES = $(shell git ls-files '*.c' '*.h')
.PHONY: format format-check
format:
	$(Q)clang-format -i $(SOURCES)
format-check:
	$(Q)clang-format --dry-run --Werror $(SOURCES)

.PHONY: clean
clean:
	rm -rf build build-debug build-asan build-tsan build-fuzz

.PHONY: help
help:
	@echo 'make              build/weir, build/libweir.so and build/plugins/*.so'
	@echo 'make check        install what is missing, build, and run all the tests'
	@echo 'make quick        unit and pipeline tests; tests/run FILE runs one file (docs/design.md)'
	@echo 'make demo         install, build, and run the main job on real packets'
	@echo 'make asan tsan    the tests under address and undefined-behaviour, and thread sanitizers'
	@echo 'make fuzz         each fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make soak         tests that take long: consumers that come and go for SOAK_SECONDS=$(SOAK_SECONDS)'
	@echo 'make bench        Weir beside other tools on this machine'
	@echo 'make deps         install from Debian what is missing'
	@echo 'make install      to PREFIX=$(PREFIX), LIBDIR=$(LIBDIR), MANDIR=$(MANDIR), below DESTDIR'
	@echo 'make uninstall    take that away again'
	@echo 'make format       clang-format; format-check only looks'
	@echo 'make clean        remove the build folders'
	@echo 'VARIANT=debug     build into build-debug (also asan, tsan);  V=1 shows the commands'
