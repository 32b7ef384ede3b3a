# Unit tests are criterion programs (tests/test_*.c); the rest are programs that print TAP; tests/run runs
# and counts them.

TEST_SRC  := $(wildcard tests/test_*.c)
TEST_BIN  := $(TEST_SRC:tests/%.c=$(B)/tests/%)
TEST_PKGS := $(CORE_PKGS) criterion

$(B)/tests/%: tests/%.c $(wildcard tests/harness.c tests/*.h) $(B)/libweir.so
	@echo "  CC    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Icore -Itests $(call pkg_cflags,$(TEST_PKGS)) $(CFLAGS) -Wno-pedantic -MMD -MP -o $@ \
		$(sort $< $(filter tests/harness.c,$^)) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -L$(B) -lweir $(call pkg_libs,$(TEST_PKGS)) -lpcap -lm

# Plugins that only tests use, beside them and out of the search path.
TEST_PLUGINS := $(patsubst tests/plugins/%.c,$(B)/tests/plugins/%.so,$(wildcard tests/plugins/*.c))

$(B)/tests/plugins/%.so: tests/plugins/%.c include/weir/plugin.h $(B)/libweir.so
	@echo "  CC    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(CPPFLAGS) $(CFLAGS) -fvisibility=hidden -o $@ $< $(LDFLAGS) -L$(B) -lweir

.PHONY: tests check quick asan tsan bench demo
tests: all $(TEST_BIN) $(TEST_PLUGINS)

check: deps
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)BUILD=$(B) tests/run unit pipelines corpus live

quick: tests
	$(Q)BUILD=$(B) tests/run unit pipelines

asan tsan: deps
	$(Q)$(MAKE) --no-print-directory VARIANT=$@ tests
	$(Q)BUILD=build-$@ tests/run unit pipelines corpus live
