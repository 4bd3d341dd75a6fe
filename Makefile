# Each target works in a fresh clone. `make` builds bin/ibweave and bin/ibweave-papers, of two
# modules that go.work joins.

GO       ?= go
FUZZTIME ?= 10s
SOAKTIME ?= 10m
# Built from source on first use (about two minutes) and cached by go.
GOLANGCI ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
DEADCODE ?= $(GO) run golang.org/x/tools/cmd/deadcode@v0.52.0

.PHONY: build test test-all race lint fuzz soak bench bench-plugin figures pages update man reference licenses install uninstall deb test-deb rpm test-rpm static test-debian13 clean

# go.work joins this module and papers, and GOWORK=off in the environment would hide it.
unexport GOWORK
PACKAGES = ./... ./papers/...

# What the plugin is built with, from libopensm-dev and libibumad-dev.
OPENSM_HEADERS = $(and $(wildcard /usr/include/infiniband/opensm/osm_opensm.h),$(wildcard /usr/include/infiniband/umad.h))

# Further flags of go build.
BUILDFLAGS ?=

# The linter vets; and without debugging information a third of the link is saved.
TEST = $(GO) test -vet=off -ldflags=-w -timeout 30m

# The compiler for pages is built first, and embedded in the program.
build:
	GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w' -o bin/page.wasm ./cmd/ibweave-page
	gzip -9nc bin/page.wasm >cmd/ibweave/page.wasm.gz
	$(GO) build -trimpath $(BUILDFLAGS) -tags interactive -o bin/ibweave ./cmd/ibweave
	$(GO) build -trimpath $(BUILDFLAGS) -o bin/ibweave-papers ./papers/cmd/ibweave-papers
ifneq ($(OPENSM_HEADERS),)
	$(GO) build -trimpath $(BUILDFLAGS) -tags opensm -buildmode=c-shared -o bin/libibweave-opensm.so ./cmd/ibweave-opensm
	rm -f bin/libibweave-opensm.h
else
	@echo 'no plugin for OpenSM: it needs the headers of libopensm-dev and libibumad-dev'
endif
	rm -rf bin/man bin/completion
	mkdir -p bin/completion
	for program in ibweave ibweave-papers; do \
		bin/$$program man -o bin/man && \
		bin/$$program completion bash >bin/completion/$$program.bash && \
		bin/$$program completion zsh >bin/completion/_$$program && \
		bin/$$program completion fish >bin/completion/$$program.fish || exit 1; \
	done

# The tests run the real OpenSM, ibsim, infiniband-diags and ibdmchk.
test:
	scripts/install-tools.sh
	RAPID_CHECKS=$${RAPID_CHECKS:-34} $(TEST) $(PACKAGES)

# Those of make test with about three times as many random cases, with the papers' simulations, and
# with those that start Chromium, Firefox, Slurm, Prometheus, groff and jq, then the packages, and the plugin in the OpenSM of Debian 13, where that installs; as root.
test-all: build
	scripts/install-tools.sh all
	IBWEAVE_TESTS=all $(TEST) -count=1 $(PACKAGES)
	scripts/test-deb.sh
	scripts/test-rpm.sh
	scripts/debian13.sh --where-possible

# The rooms that spread their work over goroutines, except those whose tests
# wait for OpenSM: more cases take more of the same ways.
race:
	$(TEST) -race -short ./internal/files ./lft ./mesh ./mft ./audit/quality ./sminterface/mad ./cmd/ibweave-opensm/plugin ./updown ./verify ./audit/whatif
	$(TEST) -race ./sminterface/umad

lint:
	GOLANGCI="$(GOLANGCI)" DEADCODE="$(DEADCODE)" scripts/lint.sh

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

soak:
	scripts/soak.sh $(SOAKTIME)

bench: build
	scripts/install-tools.sh
	scripts/bench.sh
	$(GO) test ./compile -run '^$$' -bench Multicast

bench-plugin: build
	scripts/install-tools.sh
	scripts/bench-plugin.sh

# All figures of the papers, into bin/figures, and from there into docs/papers.
figures: BUILDFLAGS += -buildvcs=false # figures name the version, and not the commit
figures: build
	mkdir -p bin
	GO="$(GO)" scripts/figures.sh

# Tables and pictures of docs/papers from the figures in docs/papers/data.
pages:
	$(GO) test ./papers/reproduce -run "TestPages|TestJudges" -count=1 -args -update

# Takes what the commands print now into README.md and the examples; read the diff.
update:
	UPDATE_EXAMPLES=1 $(GO) test ./examples

man: build

# docs/reference, one page for each command, from what the commands say of themselves; those
# of ibweave-papers in docs/reference/papers.
reference:
	rm -rf docs/reference
	$(GO) run ./cmd/ibweave man --format markdown -o docs/reference
	$(GO) run ./papers/cmd/ibweave-papers man --format markdown -o docs/reference/papers

# The licences of what is linked in, for the packages.
licenses:
	mkdir -p bin
	GO="$(GO)" scripts/licenses.sh >bin/licenses.txt

# `make && sudo make install`, see docs/install.md. OpenSM takes plugins from the
# dynamic linker's path only, hence LIBDIR; it reads /etc/opensm whatever PREFIX is.
PREFIX     ?= /usr/local
DESTDIR    ?=
SYSCONFDIR ?= /etc
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib$(addprefix /,$(shell gcc -print-multiarch 2>/dev/null))
MANDIR     ?= $(PREFIX)/share/man
BASHDIR    ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR     ?= $(PREFIX)/share/zsh/site-functions
FISHDIR    ?= $(PREFIX)/share/fish/vendor_completions.d
UNITDIR    ?= $(PREFIX)/lib/systemd/system
LDCONFIG   ?= ldconfig
INSTALL    ?= install

CONFIG  = $(DESTDIR)$(SYSCONFDIR)/opensm/ibweave.yaml
ROTATE  = $(DESTDIR)$(SYSCONFDIR)/logrotate.d/ibweave-opensm
DROP_IN = $(DESTDIR)$(UNITDIR)/opensm@.service.d/ibweave.conf

install:
	@test -x bin/ibweave || { echo 'nothing is built: run make first' >&2; exit 1; }
	$(INSTALL) -d $(DESTDIR)$(MANDIR)/man1
	$(INSTALL) -m 644 bin/man/*.1 $(DESTDIR)$(MANDIR)/man1
	for program in ibweave ibweave-papers; do \
		$(INSTALL) -D -m 755 bin/$$program $(DESTDIR)$(BINDIR)/$$program && \
		$(INSTALL) -D -m 644 bin/completion/$$program.bash $(DESTDIR)$(BASHDIR)/$$program && \
		$(INSTALL) -D -m 644 bin/completion/_$$program $(DESTDIR)$(ZSHDIR)/_$$program && \
		$(INSTALL) -D -m 644 bin/completion/$$program.fish $(DESTDIR)$(FISHDIR)/$$program.fish || exit 1; \
	done
ifneq ($(wildcard bin/libibweave-opensm.so),)
	$(INSTALL) -D -m 644 bin/libibweave-opensm.so $(DESTDIR)$(LIBDIR)/libibweave-opensm.so
	test -e $(CONFIG) || $(INSTALL) -D -m 644 cmd/ibweave-opensm/ibweave.yaml $(CONFIG)
	test -e $(ROTATE) || $(INSTALL) -D -m 644 cmd/ibweave-opensm/ibweave.logrotate $(ROTATE)
	$(INSTALL) -D -m 644 cmd/ibweave-opensm/ibweave.service.conf $(DROP_IN)
	test -n '$(DESTDIR)' || $(LDCONFIG)
else
	@echo 'no plugin for OpenSM was built, and none is installed'
endif

# Leaves configuration that somebody has changed.
uninstall:
	rm -f $(DESTDIR)$(BINDIR)/ibweave $(DESTDIR)$(BINDIR)/ibweave-papers $(DESTDIR)$(LIBDIR)/libibweave-opensm.so
	rm -f $(DESTDIR)$(MANDIR)/man1/ibweave.1 $(DESTDIR)$(MANDIR)/man1/ibweave-*.1
	for program in ibweave ibweave-papers; do \
		rm -f $(DESTDIR)$(BASHDIR)/$$program $(DESTDIR)$(ZSHDIR)/_$$program $(DESTDIR)$(FISHDIR)/$$program.fish; \
	done
	rm -f $(DROP_IN)
	-rmdir $(dir $(DROP_IN)) 2>/dev/null
	if cmp -s cmd/ibweave-opensm/ibweave.yaml $(CONFIG); then rm $(CONFIG); fi
	if cmp -s cmd/ibweave-opensm/ibweave.logrotate $(ROTATE); then rm $(ROTATE); fi
	test -n '$(DESTDIR)' || $(LDCONFIG)

# Debian packages in bin/deb.
deb:
	scripts/deb.sh bin/deb

test-deb:
	scripts/install-tools.sh all
	scripts/test-deb.sh

# RPMs in bin/rpm.
rpm:
	scripts/rpm.sh bin/rpm

test-rpm:
	scripts/install-tools.sh all
	scripts/test-rpm.sh

# One file of each program that needs no library, for each system and architecture of TARGETS, with
# SHA-256 sums, in bin/static.
TARGETS ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64
static:
	rm -rf bin/static
	GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w' -o bin/page.wasm ./cmd/ibweave-page
	gzip -9nc bin/page.wasm >cmd/ibweave/page.wasm.gz
	for target in $(TARGETS); do \
		name=$$(sed -n 's/^const Version = "\(.*\)"$$/\1/p' compile/outdir/manifest.go)-$$target; \
		export CGO_ENABLED=0 GOOS=$${target%-*} GOARCH=$${target#*-}; \
		$(GO) build -trimpath -ldflags='-s -w' -tags interactive -o bin/static/ibweave-$$name ./cmd/ibweave && \
		$(GO) build -trimpath -ldflags='-s -w' -o bin/static/ibweave-papers-$$name ./papers/cmd/ibweave-papers || exit 1; \
	done
	cd bin/static && sha256sum ibweave-* >SHA256SUMS

# The plugin in the OpenSM of Debian 13, which is installed into bin/debian13; as root.
test-debian13:
	scripts/debian13.sh

clean:
	rm -rf bin
