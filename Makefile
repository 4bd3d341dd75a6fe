# Each target works in a fresh clone. `make` builds bin/ibweave.

GO       ?= go
FUZZTIME ?= 10s
SOAKTIME ?= 10m
# Built from source on first use (about two minutes) and cached by go.
GOLANGCI ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: build test race lint fuzz soak bench update man clean

# What the plugin is built with, from libopensm-dev and libibumad-dev.
OPENSM_HEADERS = $(and $(wildcard /usr/include/infiniband/opensm/osm_opensm.h),$(wildcard /usr/include/infiniband/umad.h))

build:
	$(GO) build -trimpath -o bin/ibweave ./cmd/ibweave
ifneq ($(OPENSM_HEADERS),)
	$(GO) build -trimpath -tags opensm -buildmode=c-shared -o bin/libibweave-opensm.so ./cmd/ibweave-opensm
	rm -f bin/libibweave-opensm.h
else
	@echo 'no plugin for OpenSM: it needs the headers of libopensm-dev and libibumad-dev'
endif

# The tests run the real OpenSM, ibsim, infiniband-diags and ibdmchk.
test:
	scripts/install-tools.sh
	$(GO) test ./...

# The rooms that spread their work over goroutines, but for those whose tests
# wait for OpenSM.
race:
	$(GO) test -race ./lft ./mesh ./mft ./updown ./verify

lint:
	GOLANGCI="$(GOLANGCI)" scripts/lint.sh

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

soak:
	scripts/soak.sh $(SOAKTIME)

bench: build
	scripts/install-tools.sh
	scripts/bench.sh
	$(GO) test ./compile -run '^$$' -bench Multicast

# Takes what the commands print now into README.md and the examples; read the diff.
update:
	UPDATE_EXAMPLES=1 $(GO) test ./examples

man: build
	bin/ibweave man -o bin/man

clean:
	rm -rf bin
