# Each recipe calls cargo, vmbake, pytest or a script below tools.
KIND ?= node
OS   ?= debian-13
# arm64 is baked and booted here too: make bake ARCH=arm64; its base is made below qemu-user, which takes minutes.
ARCH ?= amd64
OUT ?= dist
# A cloud image of your own: make bake BASE=debian-13-genericcloud-amd64.qcow2
BASE ?=
# An expression of pytest -k: make test-e2e ONLY='sign or registry'
ONLY ?=
SECONDS ?= 60
PROGRAMS ?= 10000
SEED     ?= 1

name     := $(KIND).$(OS).$(ARCH)
store    := target/store
vmbake   := target/release/vmbake
manifest := target/manifests/$(name).json
packages := target/packages
anchored := --sources manifests/sources.json
amd64    := target/base-path
base     := $(amd64)$(filter-out .debian-13,.$(OS))$(filter-out .amd64,.$(ARCH))
export VMBAKE_SKIPPED := $(CURDIR)/target/skipped
export VMBAKE_TEST_NAME := $(name)
export VMBAKE_TEST_OUT := $(OUT)
# rustc that lints as well: what is built for use and for tests is linted on the way, and no crate is compiled a second time just for that.
export RUSTC_WORKSPACE_WRAPPER := $(shell command -v clippy-driver)
# Tests of the crates see no settings of the user's own, and believe the folders that they make.
plain    := umask 022 && env -u VMBAKE_MIRRORS -u VMBAKE_SHARED -u VMBAKE_SHARED_WRITE -u SOURCE_DATE_EPOCH XDG_CONFIG_HOME=$(CURDIR)/target/config XDG_CACHE_HOME=$(CURDIR)/target/cache
# What a bake runs, and no more. The example brings the features that tests have: no crate is compiled once more for those.
compile  := cargo build --quiet --release -p vmbake --bin vmbake --example base-image
python   := env PATH=$(CURDIR)/target/venv/bin:$(PATH)
pytest   := umask 022 && $(python) pytest --quiet

.NOTPARALLEL:
.PHONY: help setup venv firstboot builder tools base manifest bake kinds-images check lint test test-all test-e2e test-boot test-boot-all test-mutations test-features reproducible \
	compare-shells fuzz fuzz-compare bench dist dist-test dist-repro reference update-manifests update-trust advisories integration

help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18
setup: ## Install the missing Debian packages and Rust targets
	@tools/setup.sh
venv: setup ## Install the Python packages of the tests into target/venv
	@tools/venv.sh
firstboot: setup ## Build the static first-boot program for both architectures
	@tools/firstboot.sh
builder: firstboot ## Build vmbake
	$(compile)
tools: firstboot ## Build vmbake, and the programs that only tests and documents need
	cargo build --quiet --release --workspace --bins --examples
# The root file system of a base waits for the archive and the disk more than for a processor: it is built while the compiler runs.
base: firstboot ## Build vmbake and a Debian base image, unless BASE names one
	@test -z "$(BASE)" || test -f "$(BASE)" || { echo "BASE=$(BASE): no such file" >&2; exit 1; }
	@umask 022 && mkdir -p target && { test -n "$(BASE)" || test -e "$$(cat $(base) 2>/dev/null)" || tools/base-image/build.sh --root-only --arch $(ARCH); } & root=$$!; \
	$(compile); compiled=$$?; wait $$root && test $$compiled = 0 && umask 022 && \
	{ test -n "$(BASE)" && realpath $(BASE) || tools/base-image/build.sh --arch $(ARCH); } > $(base)
manifest: base ## Pin and prove the artifacts of KIND, on that base image
	$(vmbake) update $(KIND) --os $(OS) --arch $(ARCH) $(anchored) --trust trust --manifests $(dir $(manifest)) --store $(store) --image "$$(cat $(base))"
bake: manifest ## Bake KIND into OUT, after installing and building what is missing
	$(vmbake) fetch $(KIND) --os $(OS) --arch $(ARCH) $(anchored) --manifest $(manifest) --store $(store)
	$(vmbake) bake $(KIND) --os $(OS) --arch $(ARCH) $(anchored) --manifest $(manifest) --store $(store) --base "$$(cat $(base))" --out $(OUT) --offline --force
kinds-images: base builder venv ## Bake knd, knc and examples/k3s with artifacts from release sites on loopback, into target/kinds
	$(python) tests/harness/upstream/bake.py $(vmbake) "$$(cat $(amd64))"
check: firstboot lint ## Lint, build without warnings, render the documentation of the crates, run the unit tests
	@[ -n "$$RUSTC_WORKSPACE_WRAPPER" ] || { echo "clippy is missing: rustup component add clippy" >&2; exit 1; }
	@said=$$(cargo build --quiet --release --workspace --all-targets --color always 2>&1) && [ -z "$$said" ] || { echo "$$said" >&2; exit 1; }
	tools/rustdoc.py
	tools/crates.py --check
	$(plain) cargo test --quiet --release --workspace --lib --bins
lint: venv ## Check formatting, Python (ruff, types), spelling, licenses and sources of dependencies, and workflows
	cargo fmt --all --check
	$(python) ruff check --quiet .
	$(python) basedpyright --level error
	$(python) tools/words.py
	tools/deny.sh
	@said=$$($(python) tools/workflows.py) || { echo "$$said" | grep -v '^ok: ' >&2; exit 1; }
test: ## Run all tests except slow ones, with one boot (knc), and list skipped tests at the end
	@mkdir -p target && : >$(VMBAKE_SKIPPED) && umask 022 && $(MAKE) --no-print-directory test-all
	@if [ -s $(VMBAKE_SKIPPED) ]; then echo "passed, but these were skipped:"; sed 's/^/  /' $(VMBAKE_SKIPPED); else echo "passed; nothing was skipped"; fi
# An emulated machine keeps one core busy for minutes: the other tests run at the same time, and none writes to the images of the kinds.
test-all: check integration bake kinds-images venv
	@{ $(pytest) -m 'boot and not slow'; } & boot=$$!; ($(pytest) -m 'not boot and not slow'); others=$$?; wait $$boot && exit $$others
integration: base
	$(plain) RUST_TEST_THREADS=$$((2 * $$(nproc))) VMBAKE_TEST_BASE="$$(cat $(amd64))" cargo test --quiet --release --workspace
test-e2e: bake kinds-images tools ## Test whole images with real tools and stand-ins; ONLY selects tests, including slow ones
	$(pytest) $(if $(ONLY),-k '$(ONLY)',-m 'not slow')
test-features: base ## Compile and test vmbake without its optional features
	$(plain) VMBAKE_TEST_BASE="$$(cat $(amd64))" cargo test --quiet --release -p vmbake --no-default-features
reproducible: bake venv ## Bake twice under different conditions and compare every byte
	$(pytest) -k reproducible
test-boot: bake kinds-images ## Boot node and knd under SeaBIOS and knc under OVMF
	$(python) qemu-tests/run.py --quick --jobs 3 --images $(OUT) --images target/kinds
test-boot-all: bake kinds-images tools ## Run all boot tests, including power cuts; takes about an hour under emulation
	$(python) OUT=$(OUT) OS=$(OS) qemu-tests/all.sh
test-mutations: bake kinds-images ## Inject faults into machines and images: each must be detected
	$(python) qemu-tests/mutations.py $(OUT) target/kinds
compare-shells: tools ## Compare the shell with dash and bash: PROGRAMS generated programs of each
	for dialect in dash bash; do target/release/examples/generated --dialect $$dialect --programs $(PROGRAMS) --seed $(SEED) --jobs $$(nproc) --refusals || failed=1; done; test -z "$$failed"
fuzz: tools ## Fuzz all parsers of external input, SECONDS each
	tools/fuzz/run.sh $(SECONDS)
fuzz-compare: tools venv ## Compare how vmbake and qemu-img, debugfs and GNU tar read damaged input, SECONDS each
	$(python) tools/fuzz/compare.py $(SECONDS)
bench: bench-table bench-growth bench-parts bench-boot bench-travel bench-publish ## Run all measurements, on an otherwise idle machine; takes more than an hour
bench-%: bake kinds-images ## Run one of them: table, growth, parts, boot, travel or publish
	$(python) bench/run.sh $* $(vmbake) "$$(cat $(amd64))" $(store) $(OUT)/$(name).raw
dist: tools ## Write static programs and Debian packages of vmbake for amd64 and arm64, with digests, into target/packages
	tools/release/build.sh $(packages)
dist-test: dist base venv ## Run the packages in minimal roots of Debian 12 and 13, other architectures with qemu-user
	$(pytest) tests/test_dist.py
dist-repro: dist ## Build the packages again in another directory, and compare every byte
	tools/release/reproduce.sh $(packages)
reference: tools ## Write docs/cli.md, man pages into target/man, and the graph of the crates into docs/architecture.md
	target/release/examples/reference docs/cli.md target/man
	tools/crates.py
update-manifests: builder ## Pin missing artifacts and base images for every kind, system and architecture
	$(vmbake) update $(anchored) --trust trust
update-trust: builder ## Download the trust anchors again, and confirm before replacing one
	$(vmbake) trust update --trust trust
advisories: setup ## Check dependencies for known vulnerabilities; downloads the RustSec database
	tools/deny.sh advisories
