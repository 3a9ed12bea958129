# Everything is pure Go; a C compiler is needed only by tests -race.
export CGO_ENABLED = 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOFLAGS_BUILD = -trimpath -ldflags="-s -w -buildid= -X main.version=$(VERSION)"
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: run session test build guests dist check fuzz bench soak clean conformance

run: build ## build everything and serve MCP over HTTP on the loopback
	bin/skill serve --http

session: build ## hold a real session with the binary, and show it
	go run ./examples/session bin/skill

test: build ## every test; says loudly what it had to leave out
	@sh .ci/test

build: guests ## the WASM guests, then bin/skill
	go build $(GOFLAGS_BUILD) -o bin/skill ./cmd/skill

guests: ## compile the built-in WASM skills and the examples, reproducibly
	go run ./skills/build

dist: guests ## bin for every platform, with checksums
	@mkdir -p dist
	@for p in $(PLATFORMS); do \
	  os=$${p%/*}; arch=$${p#*/}; ext=; [ $$os = windows ] && ext=.exe; \
	  echo "dist/skill-$$os-$$arch$$ext"; \
	  GOOS=$$os GOARCH=$$arch go build $(GOFLAGS_BUILD) -o dist/skill-$$os-$$arch$$ext ./cmd/skill || exit 1; \
	done
	@cd dist && if command -v sha256sum >/dev/null; then sha256sum skill-*; else shasum -a 256 skill-*; fi > SHA256SUMS

check: test ## the whole gate; leaves the work tree clean
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	@for os in darwin windows; do echo "vet $$os"; GOOS=$$os go vet ./... || exit 1; done
	@test -z "$$(git status --porcelain)" || { git status --short; echo "the work tree is not clean"; exit 1; }

fuzz: ## every fuzz target for 20 seconds
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read f; do \
	  for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$f); do \
	    echo "$$t in $$(dirname $$f)"; go test -run='^$$' -fuzz="^$$t$$" -fuzztime=20s $$(dirname $$f) || exit 1; \
	  done; done

bench: guests ## medians and ratios, side by side in one run
	go run ./bench

soak: guests ## keeps the server busy for at most 10 minutes; fails if it grows
	go run ./bench/soak

conformance: build ## what others wrote to judge MCP servers, against bin/skill; the README keeps its table
	go run ./examples/conformance/suite -readme README.md $(if $(filter true,$(CI)),,-write) bin/skill

clean:
	rm -rf bin dist skills/dist/*/ skills/dist/*.json examples/*/*.wasm
