# Thin: every recipe calls cargo, vmbake or a script below qemu-tests.

KIND ?= node
OS   ?= debian-13
ARCH ?= amd64
OUT  ?= dist
# Of each fuzzer.
SECONDS ?= 60
# Programs per dialect of make shell-judge.
PROGRAMS ?= 10000
SEED ?= 1
# arm64 is baked and booted here too: make bake ARCH=arm64; its base is made below qemu-user, which takes minutes.
# A cloud image of your own: make bake BASE=debian-13-genericcloud-amd64.qcow2
BASE ?=

name     := $(KIND).$(OS).$(ARCH)
store    := target/store
vmbake   := target/release/vmbake
manifest := target/manifests/$(name).json
anchored := --sources manifests/sources.json
# Names the base image of OS and ARCH; the tests take that of Debian 13 for amd64.
amd64    := target/base-path
base     := $(amd64)$(filter-out .debian-13,.$(OS))$(filter-out .amd64,.$(ARCH))
# What tests were left out, and why.
export VMBAKE_SKIPPED := $(CURDIR)/target/skipped
# Tests of the crates see no settings of the user's own, and believe the folders that they make.
plain    := umask 022 && env -u VMBAKE_MIRRORS -u VMBAKE_SHARED -u VMBAKE_SHARED_WRITE -u SOURCE_DATE_EPOCH XDG_CONFIG_HOME=$(CURDIR)/target/config XDG_CACHE_HOME=$(CURDIR)/target/cache

# rustc that lints as well: what is built for use and for tests is linted on the way, and no crate is compiled a second time
# just for that.
export RUSTC_WORKSPACE_WRAPPER := $(shell command -v clippy-driver)

# In the order of the prerequisites: most recipes use both cores themselves.
.NOTPARALLEL:
.PHONY: help setup firstboot builder tools base manifest bake reference dist dist-test dist-repro update-manifests update-trust check deny workflows advisories test all-tests integration upstream cosign sign registry bundles sysext profiles recipe judge features sbom report docs examples dpkg scripts packages revision upgrade templates closure bases bases-quick mounts volumes kinds docker podplane dev-sync repro rebuild shared refuse offline archive preflight convert aws aws-all bench-publish kinds-images qemu-test qemu-test-all qemu-test-mutations shell-judge fuzz fuzz-compare fuzz-smoke bench bench-table bench-growth bench-parts bench-boot bench-travel

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Install the missing Debian packages and Rust targets
	@qemu-tests/setup.sh

firstboot: setup ## Build the static first-boot program for both architectures
	@qemu-tests/firstboot.sh

# What a bake runs, and no more. The example brings the features that tests have: no crate is compiled once more for those.
compile := cargo build --quiet --release -p vmbake --bin vmbake --example base-image
builder: firstboot ## Build vmbake
	$(compile)

tools: firstboot ## Build vmbake, and the programs that only tests and documents need
	cargo build --quiet --release --workspace --bins --examples

# The root file system of a base waits for the archive and the disk more than for a processor: it is made beside the compiler.
base: firstboot ## Build vmbake and a Debian base image, unless BASE names one
	@test -z "$(BASE)" || test -f "$(BASE)" || { echo "BASE=$(BASE): no such file" >&2; exit 1; }
	@umask 022 && mkdir -p target && { test -n "$(BASE)" || test -e "$$(cat $(base) 2>/dev/null)" || qemu-tests/base/build.sh --root-only --arch $(ARCH); } & root=$$!; \
	$(compile); compiled=$$?; wait $$root && test $$compiled = 0 && umask 022 && \
	{ test -n "$(BASE)" && realpath $(BASE) || qemu-tests/base/build.sh --arch $(ARCH); } > $(base)

manifest: base ## Pin and prove the artifacts of KIND, on that base image
	$(vmbake) update $(KIND) --os $(OS) --arch $(ARCH) $(anchored) --trust trust --manifests $(dir $(manifest)) --store $(store) --image "$$(cat $(base))"

bake: manifest ## Set up what is missing and bake KIND into OUT
	$(vmbake) fetch $(KIND) --os $(OS) --arch $(ARCH) $(anchored) --manifest $(manifest) --store $(store)
	$(vmbake) bake $(KIND) --os $(OS) --arch $(ARCH) $(anchored) --manifest $(manifest) --store $(store) --base "$$(cat $(base))" --out $(OUT) --offline --force

reference: tools ## Write docs/cli.md, and the man pages into target/man, from what --help prints
	target/release/examples/reference docs/cli.md target/man

# Beside target/dist, which is cargo's folder of the profile of that name, and OUT, where images go.
packages := target/packages
dist: tools ## Write static programs and Debian packages of vmbake for amd64 and arm64, with digests, into target/packages
	qemu-tests/dist/build.sh $(packages)

dist-test: dist base ## Run them in bare roots of Debian 12 and 13; other architectures by qemu-user
	qemu-tests/checks/dist.sh $(packages) $(vmbake) "$$(cat $(amd64))"

dist-repro: dist ## Build them once more in another folder, and compare every byte
	qemu-tests/checks/dist-repro.sh $(packages)

update-manifests: builder ## Pin and prove what upstreams publish now, for every kind, system and architecture
	$(vmbake) update $(anchored) --trust trust

update-trust: builder ## Fetch the trust anchors again; asks before it replaces one
	$(vmbake) trust update --trust trust

check: firstboot deny workflows ## rustfmt, clippy, rustdoc, ruff, unit tests, licences and sources of dependencies, workflows
	qemu-tests/checks/ruff.sh
	cargo fmt --all --check
	@[ -n "$$RUSTC_WORKSPACE_WRAPPER" ] || { echo "clippy is missing: rustup component add clippy" >&2; exit 1; }
	@echo "cargo build, with clippy: must say nothing"
	@said=$$(cargo build --quiet --release --workspace --all-targets --color always 2>&1) && [ -z "$$said" ] || { echo "$$said" >&2; exit 1; }
	qemu-tests/checks/rustdoc.py
	tools/crates.py --check
	$(plain) cargo test --quiet --release --workspace --lib --bins

graph: ## Draw the dependencies of the crates into docs/architecture.md
	tools/crates.py

deny: setup ## Ask cargo-deny about licences, duplicates and sources of the dependencies, offline
	qemu-tests/checks/deny.sh

workflows: setup ## Check that workflows pin actions and containers, and that jobs with write permissions run nothing just built
	@said=$$(qemu-tests/checks/workflows.py) || { echo "$$said" | grep -v '^ok: ' >&2; exit 1; }

advisories: setup ## Ask it about known vulnerabilities, whose database it fetches
	qemu-tests/checks/deny.sh advisories

# An emulated machine keeps one core busy for minutes, and nodes in containers mostly wait: the other tests run at the same time. None of them
# writes to the images of the kinds.
of_kinds    = qemu-tests/checks/kinds.py $(vmbake) "$$base" && qemu-tests/checks/docker_load.py target/kinds/knc.$(OS).amd64.raw
of_podplane = qemu-tests/checks/podplane.py $(vmbake) "$$base"
beside := sign registry bundles sysext profiles aws docs examples sbom report bases-quick dpkg templates mounts repro rebuild shared refuse offline archive preflight
test: ## All tests; of the machines, knc. Tells at its end what was left out
	@mkdir -p target && : >$(VMBAKE_SKIPPED)
	@umask 022 && $(MAKE) --no-print-directory all-tests
	@if [ -s $(VMBAKE_SKIPPED) ]; then echo "passed, but these were skipped:"; sed 's/^/  /' $(VMBAKE_SKIPPED); else echo "passed; nothing was skipped"; fi

all-tests: check integration upstream cosign judge kinds-images
	qemu-tests/checks/format.py
	qemu-tests/checks/traffic.py
	@base="$$(cat $(amd64))"; { qemu-tests/run.py --case knc --images target/kinds && $(of_kinds) && $(of_podplane); } & boot=$$!; \
	$(MAKE) --no-print-directory $(beside); others=$$?; wait $$boot && exit $$others

# Many of these tests wait for other processes, so more of them run than there are processors.
integration: base ## Tests of the crates against real tools
	$(plain) RUST_TEST_THREADS=$$((2 * $$(nproc))) VMBAKE_TEST_BASE="$$(cat $(amd64))" cargo test --quiet --release --workspace
	qemu-tests/checks/firstboot.sh

upstream: builder ## Resolve and fetch from release sites on loopback, and attack them
	qemu-tests/checks/upstream.py $(vmbake)

cosign: builder ## Ask cosign about the signatures that vmbake judges
	qemu-tests/checks/cosign.sh $(vmbake)

sign: bake ## Sign the baked image; ask cosign, openssl and in-toto about it, and tamper with it
	qemu-tests/checks/sign.sh $(vmbake) $(OUT) $(name) $(store)

registry: bake ## Push the baked image to registries and pull it: kills, attacks, oras, skopeo, cosign
	qemu-tests/checks/registry.sh $(vmbake) $(OUT)/$(name).raw

bundles: bake ## Pack the bundles of examples, copy them by oras and skopeo, ask cosign, and bake a node with them on two stores
	qemu-tests/checks/bundles.sh $(vmbake) "$$(cat $(amd64))" $(manifest) $(store)

sysext: bake ## Make extensions of a bundle, and ask e2fsck, unsquashfs, veritysetup and systemd-dissect about them
	qemu-tests/checks/sysext.py $(vmbake) $(OUT)/$(name).raw

profiles: base ## Import a profile from release sites on loopback, bake it, attack the import, and try every provider and version of the support table
	qemu-tests/checks/profiles.py $(vmbake) "$$(cat $(amd64))" $(store)

recipe: bake ## Run the script of docs/ci.md from the bake to machine images, against a registry and a stand-in for AWS
	qemu-tests/aws/recipe.py $(vmbake) $(manifest) "$$(cat $(base))" $(store)

judge: bake ## Ask e2fsck, sgdisk, fsck.vfat and qemu-img about the baked image
	qemu-tests/checks/judge.sh $(OUT)/$(name)

features: base ## Compile and test vmbake without its optional features
	$(plain) VMBAKE_TEST_BASE="$$(cat $(amd64))" cargo test --quiet --release -p vmbake --no-default-features

sbom: bake ## Ask spdx-tools, cyclonedx-python-lib, dpkg-query and python-debian about the bills of materials of the image
	qemu-tests/checks/sbom.py $(vmbake) $(OUT) $(store) target/sbom

report: bake ## Open the page of the image, and hostile ones, in Debian's Chromium: search, keys, contrast, requests
	qemu-tests/checks/report_page.py $(vmbake) $(OUT) target/report

docs: bake ## Check every link of the documents, and run the commands in them
	qemu-tests/checks/docs.py $(vmbake) $(OUT) $(store)

examples: base ## Bake every example, and look for what it promises
	qemu-tests/checks/examples.py $(vmbake) "$$(cat $(amd64))" $(store)

dpkg: bake ## Compare the baked packages with what the real dpkg installs
	qemu-tests/checks/dpkg.sh "$$(dirname "$$(cat $(amd64))")/rootfs.tar" $(manifest) $(OUT)/$(name).raw $(store)

scripts: base tools ## Run the scripts of 500 packages by dash in a chroot and by src/shell, and compare what they do
	qemu-tests/checks/scripts.py target/release/examples/trace "$$(dirname "$$(cat $(amd64))")/rootfs.tar"

packages: base ## Bake each package of two lists by name, and compare the image with what the real dpkg makes of the same packages
	qemu-tests/checks/vendors.py $(vmbake) "$$(cat $(amd64))" "$$(dirname "$$(cat $(amd64))")/rootfs.tar"
	qemu-tests/checks/packages.py $(vmbake) "$$(cat $(amd64))" "$$(dirname "$$(cat $(amd64))")/rootfs.tar" --list qemu-tests/checks/packages.list --list qemu-tests/checks/packages.drawn

revision: bake tools ## Bake a node on a base that has its packages in an earlier revision, and compare the upgrade with that of the real dpkg
	qemu-tests/checks/revision.py $(vmbake) target/release/examples/base-image "$$(cat $(amd64))" "$$(dirname "$$(cat $(amd64))")/rootfs.tar" $(manifest) $(store)

upgrade: base ## Compare upgrades of real packages of the base, to those of sid, with what the real dpkg makes of them
	qemu-tests/checks/upgrade.py $(vmbake) "$$(cat $(amd64))" "$$(dirname "$$(cat $(amd64))")/rootfs.tar"

templates: builder ## Render templates of profiles by vmbake and by Go, compare constraints with Masterminds/semver, and ask cloud-init about user data
	qemu-tests/checks/templates.py $(vmbake)

closure: tools ## Compare the packages that vmbake chooses with those of apt-get, for 300 packages and both architectures
	qemu-tests/checks/closure.py target/release/examples/closure

bases: bake ## Bake a node on bases as other people have them: partitions, containers, packages, journals
	qemu-tests/checks/bases.py $(vmbake) "$$(cat $(amd64))" $(manifest) $(store)

bases-quick: bake ## Those bases that take seconds to make
	qemu-tests/checks/bases.py $(vmbake) "$$(cat $(amd64))" $(manifest) $(store) --quick

mounts: builder ## Compare what the kernel sees in a base that it filled and in the image baked from it
	qemu-tests/checks/mounts.sh $(vmbake)

volumes: tools ## Read the test volumes of e2fsprogs, ext2 to ext4, and compare with debugfs; takes some minutes
	qemu-tests/checks/volumes.py target/release/examples/tree

kinds: base builder ## Bake knd and knc for both architectures, and compare them with nodes that the real tools install
	base="$$(cat $(amd64))"; $(of_kinds)

docker: kinds-images ## Load the container images of knc into Debian's Docker
	command -v dockerd >/dev/null || apt-get -qq install -y --no-install-recommends docker.io
	qemu-tests/checks/docker_load.py target/kinds/knc.debian-13.amd64.raw --daemon

podplane: base builder ## Bake knc for Podplane's command line, and download and start it as that does
	base="$$(cat $(amd64))"; $(of_podplane)

dev-sync: kinds-images ## Send changed layers to a baked node over ssh
	qemu-tests/checks/dev_sync.py $(vmbake) target/kinds/knd.debian-13.amd64.raw

repro: bake ## Bake twice under different conditions and compare every byte
	qemu-tests/checks/repro.sh $(vmbake) "$$(cat $(amd64))" $(manifest) $(store)

refuse: bake ## Bake from bad inputs: each must fail cleanly
	qemu-tests/checks/refuse.sh $(vmbake) "$$(cat $(amd64))" $(manifest) $(store)

rebuild: bake ## Bake the baked image again as a stranger would: another user, an empty store that a mirror on loopback fills
	qemu-tests/checks/rebuild.sh $(vmbake) "$$(cat $(amd64))" $(OUT) $(name) $(store)

shared: bake ## Share blobs between ten machines by a registry, ask plan what is to be done, and collect garbage there
	qemu-tests/checks/shared.py $(vmbake) "$$(cat $(amd64))" $(manifest) $(store)

archive: bake ## Carry a node to a site without a network, bake it there, and apply a delta
	qemu-tests/checks/archive.py $(vmbake) "$$(cat $(amd64))" $(manifest) $(store) $(OUT) manifests/sources.json

preflight: bake ## Take one thing at a time from the baked image, and ask preflight what is missing
	qemu-tests/checks/preflight.py $(vmbake) $(OUT)/$(name).raw

aws: builder ## Publish small disks to a stand-in for AWS: releases, copies, faults, rights, gc
	qemu-tests/aws/crosscheck.py
	qemu-tests/aws/publish.py $(vmbake)

aws-all: builder ## The same with 20 kills, requests that are never answered, and each action of the IAM policy left out
	qemu-tests/aws/crosscheck.py
	qemu-tests/aws/publish.py $(vmbake) --all

convert: bake ## Convert the baked image for clouds, and ask GNU tar and qemu-img about the files
	qemu-tests/checks/convert.py $(vmbake) $(OUT)/$(name)

offline: bake ## Bake offline below strace: no socket
	qemu-tests/checks/offline.sh $(vmbake) "$$(cat $(amd64))" $(manifest) $(store)

kinds-images: base builder ## Bake knd, knc and examples/k3s with artifacts from release sites on loopback, into target/kinds
	qemu-tests/upstream/bake.py $(vmbake) "$$(cat $(amd64))"

# Below emulation node and knd add five minutes to `make test`, and have nothing that knc does not have but for SeaBIOS.
qemu-test: bake kinds-images ## Boot node and knd under SeaBIOS and knc under OVMF
	qemu-tests/checks/format.py
	qemu-tests/checks/traffic.py
	qemu-tests/run.py --quick --jobs 3 --images $(OUT) --images target/kinds

qemu-test-all: bake kinds-images ## Run all cases in qemu: lives, power cuts, networks; takes about an hour below emulation
	$(MAKE) --no-print-directory bake KIND=node ARCH=arm64 BASE=
	$(MAKE) --no-print-directory revision
	qemu-tests/checks/bundles.sh $(vmbake) "$$(cat $(amd64))" $(manifest) $(store) --boot
	qemu-tests/checks/sysext.py $(vmbake) $(OUT)/$(name).raw --boot
	qemu-tests/checks/docs.py $(vmbake) $(OUT) $(store) --boot docs/bundles.md
	qemu-tests/checks/profiles.py $(vmbake) "$$(cat $(amd64))" $(store) --boot
	qemu-tests/checks/dev_sync.py --qemu $(vmbake) target/kinds/knd.$(OS).amd64.raw
	$(MAKE) --no-print-directory docker
	qemu-tests/checks/examples.py --boot $(vmbake) "$$(cat $(amd64))" $(store)
	qemu-tests/checks/examples.py --boot --arch arm64 --only web $(vmbake) "$$(cat $(amd64).arm64)" $(store)
	qemu-tests/upstream/bake.py $(vmbake) "$$(cat $(amd64).arm64)" arm64
	for kind in knd knc; do $(vmbake) boot target/kinds/$$kind.$(OS).arm64.raw --network isolated --timeout 1200 --check unit=containerd.service,no-failed-units || exit; done
	$(vmbake) boot target/kinds/k3s.$(OS).amd64.raw --network isolated --timeout 1200 --check unit=k3s.service,no-failed-units
	$(MAKE) --no-print-directory bake KIND=node OS=debian-12 BASE="$$(qemu-tests/base/build.sh --suite bookworm --also netbase)"
	$(vmbake) boot $(OUT)/node.debian-12.amd64.raw --network isolated --timeout 1200 --check unit=containerd.service,no-failed-units
	qemu-tests/run.py --images $(OUT) --images target/kinds
	qemu-tests/powercut.py target/kinds/knc.$(OS).amd64.raw

qemu-test-mutations: bake kinds-images ## Make faults in machines and images: each must be noticed
	qemu-tests/mutations.py $(OUT) target/kinds

shell-judge: tools ## Compare the shell with dash and bash: PROGRAMS generated programs of each
	for dialect in dash bash; do target/release/examples/generated --dialect $$dialect --programs $(PROGRAMS) --seed $(SEED) --jobs $$(nproc) --refusals || failed=1; done; test -z "$$failed"

fuzz: tools ## Fuzz every parser of what is not ours, SECONDS for each
	qemu-tests/fuzz.sh $(SECONDS)

fuzz-compare: tools ## Damage qcow2, ext4 and tar, SECONDS each, and compare what vmbake reads with what qemu-img, debugfs and GNU tar do
	qemu-tests/fuzz-compare.py $(SECONDS)

fuzz-smoke: tools ## Both, 20 seconds for each
	qemu-tests/fuzz.sh 20
	qemu-tests/fuzz-compare.py 20

bench: bench-table bench-growth bench-parts bench-boot bench-travel bench-publish ## All measurements; takes more than an hour, on a machine that does nothing else

bench-table: base builder ## Compare bakes, queries and memory with cp, qemu-img and the ordinary ways; fails when a bar is missed
	arm64=$$(qemu-tests/base/foreign.sh arm64) && qemu-tests/bench/table.py $(vmbake) "$$(cat $(amd64))" --arm64 "$$arm64"

bench-growth: base ## Bake more and more files, bytes and layers, and plot what that costs, into docs/bench
	qemu-tests/bench/growth.py $(vmbake) "$$(cat $(amd64))"

# A crate outside of the workspace, built beside it.
bench-parts: firstboot ## Measure single parts with criterion: trees, clusters, archives, digests
	cargo bench --quiet --manifest-path src/bench/Cargo.toml --target-dir target

bench-travel: base builder ## Compare pushes, pulls, deltas and archives with zstd, oras, curl and cp; fails when a bar is missed
	qemu-tests/bench/travel.sh $(vmbake) "$$(cat $(amd64))" $(store)

bench-publish: bake ## Compare publications to AWS with sha256sum, coldsnap and a generator of load; fails when a bar is missed
	qemu-tests/aws/bench.py $(vmbake) $(OUT)/$(name).raw

bench-boot: kinds-images ## Compare a fetch with curl and sha256sum, a first boot with a shell script and with a download
	qemu-tests/bench/fetch.sh $(vmbake)
	qemu-tests/bench/firstboot.py target/firstboot/amd64/firstboot
	qemu-tests/bench/boot.py $(vmbake) "$$(cat $(amd64))"
