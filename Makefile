# gpusort: make && sudo make install && make installcheck
#
# PG_CONFIG names the server to build for; COPT=-Werror makes warnings errors;
# CUDA_ARCHS names the devices, and WITH_CUDA=no builds for none: see
# service/Makefile.  Packages say CUDA_ARCHS=all.  scripts/test runs all the tests.

MODULE_big = gpusort
EXTENSION = gpusort
DATA = gpusort--1.0.sql
PGFILEDESC = "gpusort - ORDER BY at the speed of the hardware"

# in the order of a row's way: see src/gpusort.c
OBJS = \
	src/gpusort.o \
	src/sort_path.o \
	src/sort_plan.o \
	src/sort_choice.o \
	src/plan_limit.o \
	src/sort_limit.o \
	src/sort_cost.o \
	src/sort_node.o \
	src/sort_fetch.o \
	src/index_hook.o \
	src/index_build.o \
	src/index_parallel.o \
	src/index_gather.o \
	src/index_scan.o \
	src/index_sort.o \
	src/sort_parallel.o \
	src/sort_shared.o \
	src/sort_top.o \
	src/sort_load.o \
	src/sort_room.o \
	src/sort_hand_over.o \
	src/sort_few.o \
	src/sort_in_order.o \
	src/sort_row.o \
	src/sort_scan.o \
	src/sort_deform.o \
	src/sort_key.o \
	src/key_order.o \
	src/key_fields.o \
	src/key_bytes.o \
	src/key_numeric.o \
	src/key_collation.o \
	src/key_dictionary.o \
	src/key_levels.o \
	src/key_elements.o \
	src/key_abbreviation.o \
	src/sort_compare.o \
	src/sort_verify.o \
	src/sort_spill.o \
	src/sort_run.o \
	src/key_merge.o \
	src/engine_host.o \
	src/engine_choice.o \
	src/engine_cpu.o \
	src/word_sort.o \
	src/tail_sort.o \
	src/compare_sort.o \
	keys/key_pack.o \
	keys/radix_sort.o \
	wire/build_id.o \
	src/engine_service.o \
	src/service_client.o \
	src/supervisor.o \
	src/service_status.o \
	src/calibrate.o \
	src/sort_stock.o \
	src/index_load.o \
	src/index_order.o \
	src/index_tree.o \
	src/sort_explain.o

PG_CPPFLAGS = -I$(srcdir)/src -I$(srcdir)/keys -I$(srcdir)/wire
# Exports only what PostgreSQL calls.  PostgreSQL's own flags do so from 16 on.
PG_CPPFLAGS += -fvisibility=hidden '-DPGDLLEXPORT=__attribute__((visibility("default")))'
PG_CFLAGS = -Wextra -Wshadow -Winit-self \
	-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers

EXTRA_CLEAN = build/build_id

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
REGRESS_OPTS = --load-extension=gpusort
ISOLATION_OPTS = --load-extension=gpusort

PG_CONFIG ?= pg_config
PG_MAJOR := $(shell $(PG_CONFIG) --version 2>/dev/null | sed -E 's/[^0-9]*([0-9]+).*/\1/')
ifeq ($(PG_MAJOR),)
$(error $(PG_CONFIG) does not run: install postgresql-server-dev-15, or set PG_CONFIG)
endif
ifeq ($(filter 15,$(PG_MAJOR)),)
$(error gpusort supports PostgreSQL 15, but $(PG_CONFIG) is of PostgreSQL $(PG_MAJOR): set PG_CONFIG)
endif

# No bitcode for the server's JIT: it would inline calls of functions that are
# not exported, which end the session.  No function here is called a row.
override with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# every object depends on every header: builds take seconds, stale objects hours
$(OBJS): $(foreach dir,src keys wire,$(wildcard $(srcdir)/$(dir)/*.h))

# both programs are told of which sources they are
GPUSORT_BUILD_ID ?= $(shell '$(srcdir)/scripts/build-id')
wire/build_id.o wire/build_id.bc: override CPPFLAGS += -DGPUSORT_BUILD_ID='"$(GPUSORT_BUILD_ID)"'
wire/build_id.o wire/build_id.bc: build/build_id
build/build_id: FORCE
	@mkdir -p $(@D)
	@echo '$(GPUSORT_BUILD_ID)' | cmp -s - $@ || echo '$(GPUSORT_BUILD_ID)' > $@

# gpusortd, beside the server's programs
all: gpusortd
install: install-gpusortd
uninstall: uninstall-gpusortd
clean: clean-gpusortd

gpusortd:
	$(MAKE) -C $(srcdir)/service BUILD='$(CURDIR)/build' GPUSORT_BUILD_ID='$(GPUSORT_BUILD_ID)'

install-gpusortd: gpusortd
	$(MKDIR_P) '$(DESTDIR)$(bindir)'
	$(INSTALL_PROGRAM) build/gpusortd '$(DESTDIR)$(bindir)'

uninstall-gpusortd:
	rm -f '$(DESTDIR)$(bindir)/gpusortd'

clean-gpusortd:
	$(MAKE) -C $(srcdir)/service BUILD='$(CURDIR)/build' clean

.PHONY: gpusortd install-gpusortd uninstall-gpusortd clean-gpusortd FORCE
FORCE:
