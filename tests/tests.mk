# Unit tests are criterion programs (tests/test_*.c); the rest are programs that print TAP; tests/run runs
# and counts them.

TEST_SRC  := $(filter-out $(foreach n,$(LEFT_OUT),$(wildcard tests/test_$(n)_*.c)),$(wildcard tests/test_*.c))
TEST_BIN  := $(TEST_SRC:tests/%.c=$(B)/tests/%)
TEST_PKGS := $(CORE_PKGS) criterion libxxhash
TEST_LIBS_test_afxdp_filter := -lbpf
TEST_LIBS_test_afxdp_ring   := $(B)/plugins/afxdp/umem.o -lxdp -lbpf

$(B)/tests/test_afxdp_ring: $(B)/plugins/afxdp/umem.o

$(B)/tests/%: tests/%.c $(wildcard tests/harness.c tests/*.h) $(B)/libweir.so
	@echo "  CC    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Icore -Itests $(call pkg_cflags,$(TEST_PKGS)) $(CFLAGS) -Wno-pedantic -MMD -MP -o $@ \
		$(sort $< $(filter tests/harness.c,$^)) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -L$(B) -lweir $(call pkg_libs,$(TEST_PKGS)) $(TEST_LIBS_$*) -lpcap -lm

# Plugins that only tests use, beside them and out of the search path.
TEST_PLUGINS := $(patsubst tests/plugins/%.c,$(B)/tests/plugins/%.so,$(wildcard tests/plugins/*.c))

$(B)/tests/plugins/numbers-live.so: tests/plugins/numbers.c
$(B)/tests/plugins/%.so: tests/plugins/%.c include/weir/plugin.h $(B)/libweir.so
	@echo "  CC    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(CPPFLAGS) $(CFLAGS) -fvisibility=hidden -o $@ $< $(LDFLAGS) -L$(B) -lweir

.PHONY: tests check soak quick asan tsan bench demo
tests: all $(TEST_BIN) $(TEST_PLUGINS) $(B)/tests/capdump $(if $(filter afxdp,$(PLUGINS)),$(B)/tests/bench/xsk_loop)

check: deps
	$(Q)$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=3
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)BUILD=$(B) tests/run unit pipelines corpus live soak

# What make check has of these is short.
SOAK_SECONDS ?= 300
soak: deps
	$(Q)$(MAKE) --no-print-directory tests
	$(Q)WEIR_SOAK=$(SOAK_SECONDS) BUILD=$(B) tests/run soak

demo: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)BUILD=$(B) tools/demo

# Weir beside other tools; BENCH="replay live" chooses, BENCH_RUNS=1 is a quick look.
BENCH_SRC := $(if $(filter afxdp,$(LEFT_OUT)),$(filter-out %/xsk_loop.c,$(wildcard tests/bench/*.c)),$(wildcard tests/bench/*.c))
BENCH_BIN := $(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(BENCH_SRC))
BENCH_LIBS_xsk_loop := -lxdp -lbpf

$(B)/tests/bench/%: tests/bench/%.c include/weir/stream.h
	@echo "  CC    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(LDFLAGS) -lpcap -lzmq $(BENCH_LIBS_$*)

bench: deps
	$(Q)$(MAKE) --no-print-directory all $(BENCH_BIN)
	$(Q)BUILD=$(B) PYTHONPATH=tests/lib PYTHONDONTWRITEBYTECODE=1 tests/bench/bench $(BENCH)

quick: tests
	$(Q)BUILD=$(B) tests/run unit pipelines

asan tsan: deps
	$(Q)$(MAKE) --no-print-directory VARIANT=$@ tests
	$(Q)BUILD=build-$@ tests/run unit pipelines corpus live

# Fuzzers are linked with all of the core, built by clang.  What one needs besides, objects of plugins,
# libraries and folders of inputs to start from, stands in FUZZ_OBJ_<name>, FUZZ_LIBS_<name> and FUZZ_SEEDS_<name>.

FUZZ_SECONDS ?= 60
FUZZ_NAMES   := $(patsubst tests/fuzz_%.c,%,$(wildcard tests/fuzz_*.c))
FUZZ_OBJ_stream := $(B)/plugins/zmq-source/message.o $(B)/plugins/zmq-source/streams.o
FUZZ_OBJ_dedup  := $(B)/plugins/dedup/key.o
FUZZ_OBJ_keys   := $(B)/plugins/pcap/keys.o
FUZZ_LIBS_dedup := -lxxhash
FUZZ_OBJ_pushdown  := $(B)/plugins/afpacket/program.o
FUZZ_LIBS_pushdown := -lpcap
FUZZ_SEEDS_text := pipelines

.SECONDEXPANSION:
$(B)/tests/fuzz_%: tests/fuzz_%.c tests/samples.h $(CORE_OBJ) $$(FUZZ_OBJ_$$*)
	@echo "  LINK  $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Icore -Itests $(call pkg_cflags,$(CORE_PKGS)) $(CFLAGS) -fsanitize=fuzzer -o $@ \
		$(filter %.c %.o,$^) $(LDFLAGS) $(call pkg_libs,$(CORE_PKGS)) $(FUZZ_LIBS_$*) -lm

# New inputs are kept in the build folder, so that the next run goes on from there.
.PHONY: fuzz fuzz-all $(FUZZ_NAMES:%=fuzz-%)
fuzz:
	$(Q)$(MAKE) --no-print-directory VARIANT=fuzz CC=clang fuzz-all
fuzz-all: $(FUZZ_NAMES:%=fuzz-%)
$(FUZZ_NAMES:%=fuzz-%): fuzz-%: $(B)/tests/fuzz_%
	@echo "  FUZZ  $*"
	@mkdir -p $(B)/inputs/$*
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 \
		-artifact_prefix=$(B)/inputs/$*- $(patsubst %,-dict=%,$(wildcard tests/fuzz_$*.dict)) \
		$(FUZZ_FLAGS) $(B)/inputs/$* $(wildcard $(FUZZ_SEEDS_$*)) >$(B)/inputs/$*.log 2>&1 || \
		{ tail -40 $(B)/inputs/$*.log; exit 1; }
	@sed -n 's/^stat::number_of_executed_units:/        inputs tried:/p' $(B)/inputs/$*.log
