# socksteer. `make help` lists the targets; everything that is built goes below $(O).

O ?= build
V ?= 0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
SYSCONFDIR ?= /etc
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
WERROR ?= 0
# Comma-separated sanitizers for everything that runs in user space; `make asan` sets it.
SANITIZE ?=
# 1 instruments for gcov; `make coverage` sets it.
COVERAGE ?= 0
# How long `make fuzz` runs each fuzzer.
FUZZ_SECONDS ?= 30

CLANG ?= clang
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= $(shell PATH=$$PATH:/usr/sbin:/sbin command -v bpftool || echo bpftool)
PKG_CONFIG ?= pkg-config
JOBS ?= $(shell nproc)

# What the program links. A library that a floor starts to use is added here and in scripts/setup.
LIBRARIES := libbpf libelf zlib smartcols jansson libcap-ng libsystemd inih ncursesw libmicrohttpd

FLOORS := base kernel steering daemon show cli

Q := $(if $(filter 1,$(V)),,@)
ifeq ($(V),1)
say = @:
else
say = @printf '  %-8s %s\n' $(1) $(patsubst $(O)/%,%,$(2))
endif

MACHINE := $(shell uname -m)
BPF_ARCH := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(MACHINE)))

# --- Sources -------------------------------------------------------------------------------------

BPF_SRC := $(wildcard bpf/*.bpf.c)
TEST_BPF_SRC := $(wildcard tests/kernel/*.bpf.c)
LIB_SRC := $(filter-out user/cli/main.c,$(foreach floor,$(FLOORS),$(wildcard user/$(floor)/*.c)))
MAIN_SRC := $(wildcard user/cli/main.c)
WORKER_SRC := $(wildcard user/worker/*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)
# Programs of their own, without which the rest is the parts of load.
BENCH_MAIN_SRC := tests/bench/load.c tests/bench/debugger.c
SUPPORT_SRC := $(wildcard tests/support/*.c)
UNIT_SRC := $(wildcard tests/unit/*.c)
KERNEL_SRC := $(filter-out %.bpf.c,$(wildcard tests/kernel/*.c))
APPS_SRC := $(wildcard tests/apps/*.c)
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
C_SRC := $(LIB_SRC) $(MAIN_SRC) $(WORKER_SRC) $(BENCH_SRC) $(SUPPORT_SRC) $(UNIT_SRC) $(KERNEL_SRC) \
	$(APPS_SRC)
HEADERS := $(wildcard include/*/*.h include/*/*.def bpf/*.h user/*/*.h tests/*/*.h)

objects = $(patsubst %.c,$(O)/obj/%.o,$(1))
BPF_OBJ := $(patsubst %.c,$(O)/bpf/%.o,$(notdir $(BPF_SRC)))
TEST_BPF_OBJ := $(patsubst %.c,$(O)/bpf/%.o,$(notdir $(TEST_BPF_SRC)))
skeletons = $(patsubst $(O)/bpf/%.bpf.o,$(O)/skel/%.skel.h,$(1))
SKELETONS := $(call skeletons,$(BPF_OBJ))
TEST_SKELETONS := $(call skeletons,$(TEST_BPF_OBJ))

LIB := $(O)/libsocksteer.a
# Everything of ours that test programs may call and that the program itself does not contain.
TEST_LIB := $(O)/libtest.a
TEST_LIB_SRC := $(SUPPORT_SRC) $(filter-out user/worker/main.c,$(WORKER_SRC)) \
	$(filter-out $(BENCH_MAIN_SRC),$(BENCH_SRC))

# A program is built once its sources exist, so that no half of the tree waits for the other.
PROGRAMS := $(if $(MAIN_SRC),$(O)/socksteer) $(if $(WORKER_SRC),$(O)/epoll-worker)
BENCHES := $(patsubst tests/%.c,$(O)/%,$(BENCH_MAIN_SRC))
TESTS := $(if $(UNIT_SRC),$(O)/tests/unit) $(if $(KERNEL_SRC),$(O)/tests/kernel) \
	$(if $(APPS_SRC),$(O)/tests/apps)
FUZZERS := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(FUZZ_SRC))

# --- Flags ---------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
	-Wcast-qual -Wwrite-strings -Wundef -Wformat=2 $(if $(filter 1,$(WERROR)),-Werror)
INSTRUMENT := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer) $(if $(filter 1,$(COVERAGE)),--coverage)

CFLAGS ?= -O2 -g
BASE_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -Iinclude -Iuser -I$(O)/skel
LIB_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(LIBRARIES) 2>/dev/null)
LIB_LDLIBS := $(shell $(PKG_CONFIG) --libs $(LIBRARIES) 2>/dev/null)
ALL_CFLAGS = $(CFLAGS) $(BASE_CFLAGS) $(LIB_CFLAGS) $(INSTRUMENT) $(EXTRA_$(firstword $(subst /, ,$(1))))
EXTRA_tests := -Itests -Itests/bench

# Clang does not look into the multiarch folder, where asm/types.h is, when the target is bpf. The kernel
# fixes the parameters of programs and callbacks, used or not.
BPF_CFLAGS := -target bpf -O2 -g -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror -D__TARGET_ARCH_$(BPF_ARCH) \
	-Iinclude -Ibpf -idirafter /usr/include/$(MACHINE)-linux-gnu

# --- Targets -------------------------------------------------------------------------------------

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

.PHONY: all
all: $(PROGRAMS) ## Build socksteer and epoll-worker

.PHONY: bench
bench: $(BENCHES) ## Build the load generator, and what else the scripts in tests/bench need

.PHONY: tests
tests: all bench $(TESTS) ## Build all test programs and what they run

.PHONY: test
test: ## Run the unit, kernel, apps and install tests on this kernel
	$(Q)scripts/test unit
	$(Q)scripts/test kernel
	$(Q)scripts/test apps
	$(Q)scripts/test install

.PHONY: asan
asan: ## Run the unit and kernel tests with address and undefined behaviour sanitizers
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) O=$(O)/asan SANITIZE=address,undefined tests
	$(Q)O=$(O)/asan SANITIZE=address,undefined scripts/test --sanitized unit
	$(Q)O=$(O)/asan SANITIZE=address,undefined scripts/test --sanitized kernel

.PHONY: coverage
coverage: ## Show which share of each file's lines the unit and kernel tests run
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) O=$(O)/coverage COVERAGE=1 tests
	$(Q)find $(O)/coverage -name '*.gcda' -delete
	$(Q)O=$(O)/coverage COVERAGE=1 scripts/test unit
	$(Q)O=$(O)/coverage COVERAGE=1 scripts/test kernel
	$(Q)find $(O)/coverage/obj/user -name '*.gcda' -exec gcov --stdout --json-format {} + | \
		jq -rs "$$COVERAGE_TABLE"

# A line of a header counts as run where any of the files that include it ran it.
define COVERAGE_TABLE
[.[].files[] | select(.file | startswith("/") or startswith("build/") | not)]
| group_by(.file)[]
| {file: .[0].file,
   lines: ([.[].lines[].line_number] | unique | length),
   run: ([.[].lines[] | select(.count > 0).line_number] | unique | length)}
| select(.lines > 0)
| "\(.run * 100 / .lines | floor) %\t\(.run)/\(.lines)\t\(.file)"
endef
export COVERAGE_TABLE

.PHONY: fuzz
fuzz: ## Build the fuzzers and run each for FUZZ_SECONDS
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) O=$(O)/libfuzzer CC=$(CLANG) \
		SANITIZE=address,fuzzer-no-link fuzzers
	$(Q)for fuzzer in $(patsubst $(O)/%,$(O)/libfuzzer/%,$(FUZZERS)); do \
		mkdir -p "$$fuzzer.corpus" && \
		"$$fuzzer" -max_total_time=$(FUZZ_SECONDS) -artifact_prefix="$$fuzzer-" "$$fuzzer.corpus" || exit 1; \
	done

.PHONY: fuzzers
fuzzers: $(FUZZERS)

.PHONY: stats
stats: $(BPF_OBJ) ## Compare the verifier's effort and the stack per BPF program with scripts/bpf-budget
	$(Q)scripts/bpf-stats $(BPF_OBJ)

.PHONY: lint
lint: lint-layers lint-shell lint-format lint-cppcheck lint-tidy ## Check format, layers, scripts and code

.PHONY: lint-layers
lint-layers:
	$(call say,LAYERS,.)
	$(Q)scripts/check-layers --self-test
	$(Q)scripts/check-layers

SHELL_SCRIPTS = $(shell grep -lE '^\#!.*[/ ](ba|da)?sh( |$$)' .ci/* scripts/* tests/*/* 2>/dev/null)

.PHONY: lint-shell
lint-shell:
	$(call say,SHELL,.)
	$(Q)shellcheck $(SHELL_SCRIPTS) scripts/socksteer.bash

FORMATTED = $(filter-out %.def,$(HEADERS)) $(C_SRC) $(FUZZ_SRC) $(BPF_SRC) $(TEST_BPF_SRC)

.PHONY: lint-format
lint-format:
	$(call say,FORMAT,.)
	$(Q)$(if $(FORMATTED),clang-format --dry-run -Werror $(FORMATTED))

# Criterion's macros say nothing to cppcheck: tests that use it are left to clang-tidy. It does not see that an
# attribute frees, hence no memleak.
CPPCHECKED = $(LIB_SRC) $(MAIN_SRC) $(WORKER_SRC) $(BENCH_SRC) $(SUPPORT_SRC)

.PHONY: lint-cppcheck
lint-cppcheck:
	$(call say,CPPCHECK,.)
	$(Q)mkdir -p $(O)/cppcheck
	$(Q)[ -z "$(strip $(CPPCHECKED))" ] || cppcheck --quiet -j$(JOBS) --cppcheck-build-dir=$(O)/cppcheck \
		--error-exitcode=1 --inline-suppr --enable=warning,performance,portability --std=c11 -D_GNU_SOURCE \
		--suppress=missingIncludeSystem --suppress=memleak -Iinclude -Iuser -Itests -Itests/bench $(CPPCHECKED)

# One stamp per file, so that a second run checks only what has changed.
.PHONY: lint-tidy
lint-tidy: compdb
	$(Q)$(MAKE) --no-print-directory --output-sync=target --keep-going -j$(JOBS) tidy

.PHONY: tidy
tidy: $(patsubst %.c,$(O)/tidy/%.ok,$(C_SRC))

# Of the analyzers only gcc's knows that an attribute can free, so memory is left to it (and leaks, where it does
# not follow a pointer into the caller's structure, to the sanitizers).
ANALYZE := gcc -O1 -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-use-of-uninitialized-value -Werror

$(O)/tidy/%.ok: %.c .clang-tidy $(wildcard tests/.clang-tidy) $(HEADERS) | $(SKELETONS) $(TEST_SKELETONS)
	$(call say,TIDY,$<)
	$(Q)mkdir -p $(@D)
	$(Q)clang-tidy -p $(O) --quiet $< >$@.log 2>&1 || { grep -v 'warnings\? generated' $@.log; exit 1; }
	$(Q)$(if $(filter user/%,$<),$(ANALYZE) $(BASE_CFLAGS) $(LIB_CFLAGS) -c $< -o /dev/null)
	$(Q)touch $@

.PHONY: format
format: ## Rewrite the sources in the project's format
	$(Q)$(if $(FORMATTED),clang-format -i $(FORMATTED))

.PHONY: compdb
compdb: $(O)/compile_commands.json ## Write compile_commands.json for clang's tools

# A path for the shell, whatever is in it.
quote = '$(subst ','\'',$(1))'
installed = $(call quote,$(DESTDIR)$(1))

# A configuration that is there is the administrator's: it is not overwritten, and removed only when it still
# is the sample.
CONFIG := $(call installed,$(SYSCONFDIR)/socksteer.conf)
CONFIG_SAMPLE := $(wildcard scripts/socksteer.conf)

.PHONY: install
install: all ## Install below DESTDIR and PREFIX: program, unit, man pages, completion, sample configuration
	install -D -m 755 $(O)/socksteer $(call installed,$(BINDIR)/socksteer)
	install -D -m 644 scripts/socksteer.8 $(call installed,$(MANDIR)/man8/socksteer.8)
	install -D -m 644 scripts/socksteer.conf.5 $(call installed,$(MANDIR)/man5/socksteer.conf.5)
	install -D -m 644 scripts/socksteer.bash $(call installed,$(COMPLETIONDIR)/socksteer)
	install -d $(call installed,$(UNITDIR))
	sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|' scripts/socksteer.service \
		>$(call installed,$(UNITDIR)/socksteer.service)
	chmod 644 $(call installed,$(UNITDIR)/socksteer.service)
	$(if $(CONFIG_SAMPLE),[ -e $(CONFIG) ] || install -D -m 644 $(CONFIG_SAMPLE) $(CONFIG))

.PHONY: uninstall
uninstall: ## Remove what install has put there, empty folders too; a configuration that was changed stays
	rm -f $(call installed,$(BINDIR)/socksteer) $(call installed,$(MANDIR)/man8/socksteer.8) \
		$(call installed,$(MANDIR)/man5/socksteer.conf.5) $(call installed,$(COMPLETIONDIR)/socksteer) \
		$(call installed,$(UNITDIR)/socksteer.service)
	$(if $(CONFIG_SAMPLE),! cmp -s $(CONFIG_SAMPLE) $(CONFIG) || rm $(CONFIG))
	$(Q)scripts/remove-empty $(call quote,$(if $(DESTDIR),$(DESTDIR),$(PREFIX)/..)) \
		$(call installed,$(BINDIR)) $(call installed,$(MANDIR)/man8) $(call installed,$(MANDIR)/man5) \
		$(call installed,$(COMPLETIONDIR)) $(call installed,$(UNITDIR)) $(call installed,$(SYSCONFDIR))

.PHONY: clean
clean: ## Remove everything that was built
	$(Q)rm -rf $(O)

.PHONY: help
help: ## Show this list
	$(Q)awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile

# --- Rules ---------------------------------------------------------------------------------------

# The stamp changes when a compiler or a flag does, and everything that was built with the old ones with it.
# -Werror stays out: it changes no object, and going back and forth must not build everything anew.
.PHONY: FORCE
FLAGS := $(CC) $(CFLAGS) $(filter-out -Werror,$(BASE_CFLAGS)) $(LIB_CFLAGS) $(INSTRUMENT) $(LDFLAGS) \
	$(LIB_LDLIBS) $(CLANG) $(BPF_CFLAGS)
$(O)/flags: FORCE
	$(Q)$(PKG_CONFIG) --exists --print-errors $(LIBRARIES) || \
		{ echo 'Libraries are missing: scripts/setup installs them.' >&2; exit 1; }
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@

define compile_bpf
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@
endef

$(O)/bpf/%.bpf.o: bpf/%.bpf.c $(O)/flags
	$(compile_bpf)

$(O)/bpf/%.bpf.o: tests/kernel/%.bpf.c $(O)/flags
	$(compile_bpf)

# The pragma and the marks keep the project's warnings and checks out of generated code.
$(O)/skel/%.skel.h: $(O)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D)
	$(Q)printf '#pragma GCC system_header\n/* NOLINTBEGIN */\n' >$@
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf >>$@
	$(Q)echo '/* NOLINTEND */' >>$@

$(O)/obj/%.o: %.c $(O)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(call ALL_CFLAGS,$<) -MMD -MP -c $< -o $@

# Only what may include a skeleton waits for it.
$(call objects,$(LIB_SRC) $(MAIN_SRC)): | $(SKELETONS)
$(call objects,$(SUPPORT_SRC) $(UNIT_SRC) $(KERNEL_SRC) $(APPS_SRC)): | $(SKELETONS) $(TEST_SKELETONS)

define archive
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)
endef

$(LIB): $(call objects,$(LIB_SRC))
	$(archive)

$(TEST_LIB): $(call objects,$(TEST_LIB_SRC))
	$(archive)

define link
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(INSTRUMENT) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(1)
endef

$(O)/socksteer: $(call objects,$(MAIN_SRC)) $(LIB)
	$(call link,$(LIB_LDLIBS))

# These two may use the lowest floor and nothing else of the program, and so need no library.
BASE_OBJ := $(call objects,$(wildcard user/base/*.c))

$(O)/epoll-worker: $(call objects,$(WORKER_SRC)) $(BASE_OBJ)
	$(call link)

$(O)/bench/load: $(call objects,tests/bench/load.c $(filter-out $(BENCH_MAIN_SRC),$(BENCH_SRC))) $(BASE_OBJ)
	$(call link,-lm)

$(O)/bench/debugger: $(call objects,tests/bench/debugger.c)
	$(call link)

$(O)/tests/unit: $(call objects,$(UNIT_SRC))
$(O)/tests/kernel: $(call objects,$(KERNEL_SRC))
$(O)/tests/apps: $(call objects,$(APPS_SRC))
$(O)/tests/unit $(O)/tests/kernel $(O)/tests/apps: $(TEST_LIB) $(LIB)
	$(call link,$(LIB_LDLIBS) -lcriterion -lm)

$(O)/fuzz/%: $(O)/obj/tests/fuzz/%.o $(TEST_LIB) $(LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer,address -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIB_LDLIBS) -lm

quoted = "$(subst ",\",$(1))"
define compdb_entry
{"directory": $(call quoted,$(CURDIR)), "file": $(call quoted,$(1)), "command": $(call quoted,$(2) -c $(1))},

endef

$(O)/compile_commands.json: $(O)/flags $(C_SRC) $(BPF_SRC) Makefile | $(SKELETONS) $(TEST_SKELETONS)
	$(file >$@.tmp,[$(foreach src,$(C_SRC),$(call compdb_entry,$(src),$(CC) $(call ALL_CFLAGS,$(src))))$(foreach \
		src,$(BPF_SRC) $(TEST_BPF_SRC),$(call compdb_entry,$(src),$(CLANG) $(BPF_CFLAGS)))])
	$(Q)sed -z 's/,\n*\]/]/' $@.tmp >$@ && rm $@.tmp

-include $(patsubst %.o,%.d,$(call objects,$(C_SRC) $(FUZZ_SRC)) $(BPF_OBJ) $(TEST_BPF_OBJ))
