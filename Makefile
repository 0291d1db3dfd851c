# gpusort: make && sudo make install
#
# PG_CONFIG names the server to build for; COPT=-Werror makes warnings errors;
# CUDA_ARCHS names the devices, and WITH_CUDA=no builds for none: see
# src/gpusortd/Makefile.  Packages say CUDA_ARCHS=all.
#
# TEST_DOUBLES=yes makes a test build, which "make installcheck" needs: see
# test/doubles/README.md.  This is kept until "make clean", so that "make install" installs
# what was built; TEST_DOUBLES=no returns to the default build.  scripts/test makes a test
# build, installs it, and runs all the tests.

-include $(wildcard build/given)

MODULE_big = gpusort
EXTENSION = gpusort
# gpusort.control has the version; gpusortd derives its own, scripts/check-includes checks META.json and the packages
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/gpusort.control)
DATA = $(notdir $(wildcard $(srcdir)/gpusort--*.sql))
PGFILEDESC = "gpusort - ORDER BY at the speed of the hardware"

# the folders of the library, from the entry points down (DESIGN.md); src/gpusortd/ is a program of its own
FOLDERS = . sql plan node cluster index gin build sort read share store order run key collation client stats engine common
SOURCES = $(foreach folder,$(FOLDERS),$(sort $(wildcard $(srcdir)/src/$(folder)/*.c))) $(DOUBLES)
OBJS = $(patsubst $(srcdir)/%.c,%.o,$(subst /./,/,$(SOURCES)))

PG_CPPFLAGS = -I$(srcdir)/src -DGPUSORT_VERSION='"$(EXTVERSION)"'
# Exports only what PostgreSQL calls.  PostgreSQL's own flags do so from 16 on.
PG_CPPFLAGS += -fvisibility=hidden '-DPGDLLEXPORT=__attribute__((visibility("default")))'
PG_CFLAGS = -Wextra -Wshadow -Winit-self \
	-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
# Where a loop over rows lies must not depend on what is linked before it: 3,000 rows in order by
# two columns took 0.45 or 0.36 ms (AMD EPYC, Zen 5, 2026-11-28).
PG_CFLAGS += -falign-functions=64

ifeq ($(TEST_DOUBLES),yes)
DOUBLES = $(sort $(wildcard $(srcdir)/test/doubles/library/*.c))
PG_CPPFLAGS += -I$(srcdir)/test
# the linker replaces calls between objects, which link-time optimization would inline
PG_CFLAGS += -fno-lto
SHLIB_LINK += $(shell sed -n 's/^GS_WRAP(\(.*\));$$/-Wl,--wrap=\1/p' $(DOUBLES))
endif

EXTRA_CLEAN = build/build_id build/given $(wildcard test/doubles/library/*.o)

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
REGRESS_OPTS = --load-extension=gpusort
ISOLATION_OPTS = --load-extension=gpusort

PG_CONFIG ?= pg_config
PG_MAJOR := $(shell $(PG_CONFIG) --version 2>/dev/null | sed -E 's/[^0-9]*([0-9]+).*/\1/')
ifeq ($(PG_MAJOR),)
$(error $(PG_CONFIG) does not run: install its package postgresql-server-dev, or set PG_CONFIG)
endif
ifeq ($(filter 15 16 17 18 19,$(PG_MAJOR)),)
$(error gpusort supports PostgreSQL 15 to 19, but $(PG_CONFIG) is of PostgreSQL $(PG_MAJOR): set PG_CONFIG)
endif

# No bitcode for the server's JIT: it would inline calls of functions that are
# not exported, which end the session.  No function here is called a row.
override with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# every object depends on every header: builds take seconds, stale objects hours
$(OBJS): $(foreach folder,$(FOLDERS),$(wildcard $(srcdir)/src/$(folder)/*.h))
$(OBJS): $(if $(DOUBLES),$(wildcard $(srcdir)/test/doubles/*.h $(srcdir)/test/doubles/library/*.h))

# both programs are told of which sources they are
GPUSORT_BUILD_ID ?= $(shell '$(srcdir)/scripts/build-id' $(TEST_DOUBLES))
src/common/build_id.o: override CPPFLAGS += -DGPUSORT_BUILD_ID='"$(GPUSORT_BUILD_ID)"'
src/common/build_id.o: build/build_id
build/build_id: FORCE
	@mkdir -p $(@D)
	@echo '$(GPUSORT_BUILD_ID)' | cmp -s - $@ || echo '$(GPUSORT_BUILD_ID)' > $@
	@echo 'TEST_DOUBLES ?= $(TEST_DOUBLES)' > $(@D)/given

# gpusortd, beside the server's programs
all: gpusortd
install: install-gpusortd
uninstall: uninstall-gpusortd
clean: clean-gpusortd

gpusortd:
	$(MAKE) -C $(srcdir)/src/gpusortd BUILD='$(CURDIR)/build' GPUSORT_BUILD_ID='$(GPUSORT_BUILD_ID)' \
		TEST_DOUBLES='$(TEST_DOUBLES)'

install-gpusortd: gpusortd
	$(MKDIR_P) '$(DESTDIR)$(bindir)'
	$(INSTALL_PROGRAM) build/gpusortd '$(DESTDIR)$(bindir)'
	$(if $(DOUBLES),@echo 'This is a test build: it can be told to fail and to sort wrongly.')

uninstall-gpusortd:
	rm -f '$(DESTDIR)$(bindir)/gpusortd'

clean-gpusortd:
	$(MAKE) -C $(srcdir)/src/gpusortd BUILD='$(CURDIR)/build' clean

.PHONY: gpusortd install-gpusortd uninstall-gpusortd clean-gpusortd FORCE
FORCE:
