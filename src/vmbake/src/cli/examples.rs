//! The examples at the end of each command's help. A test runs every line of them through the parser.

/// What the help of vmbake itself ends with.
pub(super) const FRONT: &str = "\
Examples:
  vmbake update node               # pin and prove the artifacts of kind node, in manifests/
  vmbake bake node                 # fetch them and the base image, and bake dist/node.debian-13.amd64.{raw,qcow2}
  vmbake boot dist/node.debian-13.amd64.qcow2 --ssh-key ~/.ssh/id_ed25519.pub --forward 2222:22

`vmbake help COMMAND` has examples of each command.

Environment:
  XDG_CACHE_HOME     the store is $XDG_CACHE_HOME/vmbake/store, by default below ~/.cache
  XDG_STATE_HOME     `pull` records versions in $XDG_STATE_HOME/vmbake/releases, by default below ~/.local/state
  XDG_CONFIG_HOME    the configuration is $XDG_CONFIG_HOME/vmbake/config.json, by default below ~/.config
  VMBAKE_MIRRORS     mirrors as for --mirror, separated by blanks
  VMBAKE_SHARED      shared store as for --shared; VMBAKE_SHARED_WRITE=1 is --shared-write
  SOURCE_DATE_EPOCH  time of the files that a bake makes, in seconds since 1970
  COSIGN_PASSWORD    password of a cosign.key
  GITHUB_TOKEN       is sent to api.github.com, and to nobody else
  DOCKER_CONFIG      folder of docker's config.json, with credentials for registries
  REGISTRY_AUTH_FILE credentials for registries, as podman keeps them
  https_proxy        proxy for what is not below one of the hosts in no_proxy
  SSL_CERT_FILE      authorities of TLS, in place of the system's

Exit codes:
  0  done; a check found nothing
  1  refused or failed, with the reason on stderr; or a check found something: lint, diff, preflight,
     layer check, store verify, update --check, verify image
  2  wrong usage";

pub(super) const UPDATE: &str = "\
Examples:
  vmbake update node                              # what is missing in the manifests of kind node
  vmbake update node --os debian-13 --arch amd64 --image base.qcow2   # with a base image of your own
  vmbake update node --at 2026-09-01              # packages as of that day, from snapshots of the archives
  vmbake update --check                           # what has a newer version? changes nothing
  vmbake update knd --only containerd             # this entry again, and no other
  vmbake update web                               # a layer of your own that asks for packages
  vmbake update web --explain libpq5              # why is that package in the image?";

pub(super) const MANIFEST_SHOW: &str = "\
Examples:
  vmbake manifest show manifests/node.debian-13.amd64.json
  vmbake manifest show manifests/node.debian-13.amd64.json --json";

pub(super) const CONVERT: &str = "\
Examples:
  vmbake convert dist/node.debian-13.amd64.qcow2 --format gce -o node.tar.gz     # for gcloud compute images create
  vmbake convert dist/node.debian-13.amd64.raw --format vhd -o node.vhd          # for a page blob of Azure
  vmbake convert dist/node.debian-13.amd64.qcow2 --format raw -o node.raw --json";

pub(super) const DEV_SYNC: &str = "\
Examples:
  vmbake dev sync root@192.0.2.10 --layers layers --dry-run
  vmbake dev sync dist/knd.debian-13.amd64.qcow2 --layers layers        # the machine of `vmbake boot`
  vmbake dev sync debian@web:2222 --layers mine --watch -- -i ~/.ssh/dev

Exit status: 0 if the machine has all of the layers, 1 if something failed or needs a new image.";

pub(super) const PODPLANE_MANIFEST: &str = "\
Examples:
  vmbake podplane manifest dist/knc.debian-13.amd64.qcow2 --url https://images.example/knc   # then serve dist/ there
  vmbake podplane manifest dist/knd.debian-13.arm64.qcow2 --url http://10.0.2.2:8000 -o knd.json";

pub(super) const PREFLIGHT_AWS: &str = "\
Examples:
  vmbake preflight aws dist/node.debian-13.amd64.qcow2
  vmbake preflight aws debian-13-generic-arm64.qcow2 --json
  vmbake preflight aws new/node.debian-13.amd64.raw --parent old/node.debian-13.amd64.raw";

pub(super) const PUSH: &str = "\
Examples:
  vmbake push dist/node.debian-13.amd64.raw ghcr.io/example/node:1.0
  vmbake push dist/node.debian-13.{amd64,arm64}.raw ghcr.io/example/node:1.0 --tag latest --key release.key
  vmbake push dist/node.debian-13.amd64.raw localhost:5000/node:test --dry-run --json";

pub(super) const PULL: &str = "\
Examples:
  vmbake pull ghcr.io/example/node:1.0 --key release.pub --out images
  vmbake pull ghcr.io/example/node:1.1 --key release.pub --out images --from images/node.debian-13.amd64.raw
  vmbake pull localhost:5000/node:test --allow-unsigned --format qcow2";

pub(super) const FETCH: &str = "\
Examples:
  vmbake fetch node                               # everything that `vmbake bake node --offline` needs
  vmbake fetch knc knd --arch amd64,arm64 --store /srv/store
  vmbake fetch node --mirror https://github.com=https://mirror.example/github";

pub(super) const STORE_VERIFY: &str = "\
Examples:
  vmbake store verify
  vmbake store verify --store /srv/store --json";

pub(super) const STORE_GC: &str = "\
Examples:
  vmbake store gc --dry-run                       # what do the manifests in manifests/ not pin?
  vmbake store gc --manifests manifests --manifests /srv/manifests
  vmbake store gc --manifests manifests --manifests dist  # and what baking the images in dist again takes";

pub(super) const STORE_PATH: &str = "\
Examples:
  vmbake store path
  vmbake store path sha256:fad4f807a369677f0954bd4c61e56ddb2dd8b3f4aec30c3834c3165fc6d3c19f";

pub(super) const BAKE: &str = "\
Examples:
  vmbake bake node                                # on the base image that the manifest pins
  vmbake bake node --base debian-13-genericcloud-amd64.qcow2 --size 8G
  vmbake bake knc knd --arch amd64,arm64 --offline --out images --force
  vmbake bake node --layers layers --format qcow2 # with layers of your own, too
  vmbake bake node --with ghcr.io/acme/agent:1.0  # and a component that somebody else publishes
  vmbake bake node --builder-id https://ci.example.org/images   # who says so in the provenance
  vmbake bake node --json --progress json > baked.json   # for programs: the result, and on stderr each step as JSON";

pub(super) const PLAN: &str = "\
Examples:
  vmbake plan node knd knc --arch amd64,arm64     # a line for each image
  vmbake plan node knd knc --arch amd64,arm64 --json > plan.json   # with the matrix of GitHub Actions and GitLab";

pub(super) const KEY_GENERATE: &str = "\
Examples:
  vmbake key generate                             # release.key and release.pub
  vmbake key generate --out keys/images";

pub(super) const SIGN: &str = "\
Examples:
  vmbake sign dist --key release.key
  vmbake sign dist --key cosign.key               # asks $COSIGN_PASSWORD
  vmbake sign dist --key env://SIGNING_KEY --label ci";

pub(super) const INIT: &str = "\
Examples:
  vmbake init web
  vmbake init web --os debian-13 --layers images/layers";

pub(super) const BOOT: &str = "\
Examples:
  vmbake boot dist/node.debian-13.amd64.qcow2 --ssh-key ~/.ssh/id_ed25519.pub --forward 2222:22
  vmbake boot dist/knd.debian-13.amd64.qcow2 --user-data user-data --disk machine.qcow2
  vmbake boot dist/node.debian-13.amd64.raw --firmware direct --append systemd.log_level=debug --console
  vmbake boot dist/node.debian-13.amd64.qcow2 --check unit=containerd.service,tcp:22,no-failed-units --timeout 600
  vmbake boot debian-13-genericcloud-arm64.qcow2 -- -device virtio-rng-pci";

pub(super) const LAYER_CHECK: &str = "\
Examples:
  vmbake layer check layers/node
  vmbake layer check layers/*";

pub(super) const LAYER_LIST: &str = "\
Examples:
  vmbake layer list
  vmbake layer list --layers layers --json";

pub(super) const LAYER_RELEASE: &str = "\
Examples:
  vmbake layer release layers/node";

pub(super) const SCHEMA_LAYER: &str = "\
Examples:
  vmbake schema layer > layer.schema.json         # for the editor's completion and checks";

pub(super) const SCHEMA_INPUTS: &str = "\
Examples:
  vmbake schema inputs > inputs.schema.json";

pub(super) const SCHEMA_POLICY: &str = "\
Examples:
  vmbake schema policy > policy.schema.json";

pub(super) const SCHEMA_RULES: &str = "\
Examples:
  vmbake schema rules > rules.schema.json";

pub(super) const SCHEMA_BUNDLE: &str = "\
Examples:
  vmbake schema bundle > bundle.schema.json";

pub(super) const DELTA: &str = "\
Examples:
  vmbake delta before/node.debian-13.amd64.raw dist/node.debian-13.amd64.raw -o node.delta --key release.key
  vmbake delta before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2 -o node.delta --json";

pub(super) const APPLY: &str = "\
Examples:
  vmbake apply node.delta --base node.debian-13.amd64.raw -o new/node.debian-13.amd64.raw --key release.pub
  vmbake apply node.delta --base node.debian-13.amd64.qcow2 -o node.raw --format raw";

pub(super) const ARCHIVE_CREATE: &str = "\
Examples:
  vmbake archive create node -o node.tar                        # all that baking node takes
  vmbake archive create dist/node.debian-13.amd64.qcow2 --images -o image.tar
  vmbake archive create node --since node.tar --split 4G -o next.tar";

pub(super) const ARCHIVE_VERIFY: &str = "\
Examples:
  vmbake archive verify node.tar
  vmbake archive verify node.tar --json           # also of parts, node.tar.000 and so on";

pub(super) const ARCHIVE_LIST: &str = "\
Examples:
  vmbake archive list node.tar";

pub(super) const ARCHIVE_IMPORT: &str = "\
Examples:
  vmbake archive import node.tar --store /srv/store --inputs-to inputs";

pub(super) const ARCHIVE_APPLY: &str = "\
Examples:
  vmbake archive apply node.tar --store /srv/store --inputs-to inputs --out dist
  vmbake archive apply image.tar --out dist";

#[cfg(feature = "aws")]
pub(super) const PUBLISH_AWS: &str = "\
Examples:
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --dry-run
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --region eu-central-1 --copy-to us-east-1,eu-west-1
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --key release.pub --launch-permission 123456789012 \\
      --ssm-parameter /images/node/latest --json";

#[cfg(feature = "aws")]
pub(super) const PUBLISH_AWS_GC: &str = "\
Examples:
  vmbake publish aws gc --family node --keep 5 --dry-run
  vmbake publish aws gc --family node --keep 5 --region eu-central-1 --yes";
pub(super) const BUNDLE_INIT: &str = "\
Examples:
  vmbake bundle init agent --publisher acme";

pub(super) const BUNDLE_PACK: &str = "\
Examples:
  vmbake bundle pack agent -o agent.oci           # a folder
  vmbake bundle pack agent -o agent.tar --key acme.key";

pub(super) const BUNDLE_CHECK: &str = "\
Examples:
  vmbake bundle check agent
  vmbake bundle check oci://ghcr.io/acme/agent:1.0";

pub(super) const BUNDLE_INSPECT: &str = "\
Examples:
  vmbake bundle inspect agent.oci
  vmbake bundle inspect oci://ghcr.io/acme/agent:1.0 --json";

pub(super) const BUNDLE_PUSH: &str = "\
Examples:
  vmbake bundle push agent.oci oci://ghcr.io/acme/agent";

pub(super) const BUNDLE_VERIFY: &str = "\
Examples:
  vmbake bundle verify agent.oci --key acme.pub
  vmbake bundle verify oci://ghcr.io/acme/agent:1.0 --publisher acme";

pub(super) const BUNDLE_TRUST: &str = "\
Examples:
  vmbake bundle trust oci://ghcr.io/acme/agent:1.0 --key acme.pub";

pub(super) const BUNDLE_PLAN: &str = "\
Examples:
  vmbake bundle plan node --with agent.oci
  vmbake bundle plan node --with ghcr.io/acme/agent:1.0 --json";

pub(super) const BUNDLE_UPGRADE: &str = "\
Examples:
  vmbake bundle upgrade node --dry-run
  vmbake bundle upgrade node acme.agent
  vmbake bundle upgrade node --with ghcr.io/acme/agent:1.1";

pub(super) const BUNDLE_SYSEXT: &str = "\
Examples:
  vmbake bundle sysext agent.oci -o acme-agent.raw
  vmbake bundle sysext agent.oci --format squashfs --verity -o acme-agent.raw
  vmbake bundle sysext ghcr.io/acme/agent:1.0 --confext --arch arm64 -o acme-agent.raw";

pub(super) const INSPECT: &str = "\
Examples:
  vmbake inspect dist/node.debian-13.amd64.qcow2
  vmbake inspect disk.raw --partition 2 --json";

pub(super) const LINT: &str = "\
Examples:
  vmbake lint dist/node.debian-13.amd64.qcow2
  vmbake lint disk.raw --partition 2 --json";

pub(super) const LS: &str = "\
Examples:
  vmbake ls dist/node.debian-13.amd64.qcow2 /etc
  vmbake ls dist/node.debian-13.amd64.qcow2 / -R --json
  vmbake ls disk.raw --partition 15               # the EFI system partition";

pub(super) const CAT: &str = "\
Examples:
  vmbake cat dist/node.debian-13.amd64.qcow2 /etc/os-release
  vmbake cat disk.raw --escaped '/var/log/caf\\xe9'";

pub(super) const EXPLAIN: &str = "\
Examples:
  vmbake explain dist/node.debian-13.amd64.qcow2 /usr/sbin/runc
  vmbake explain image.raw /etc/passwd --record dist/node.debian-13.amd64.origin.json";

pub(super) const DIFF: &str = "\
Examples:
  vmbake diff before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2
  vmbake diff before.raw after.raw --times --json
  vmbake diff before.raw after.raw --blocks       # what would a delta carry?";

pub(super) const SBOM: &str = "\
Examples:
  vmbake sbom dist/node.debian-13.amd64.qcow2 > node.spdx.json
  vmbake sbom debian-13-genericcloud-amd64.qcow2 --format cyclonedx-1.6 > debian.cdx.json";

pub(super) const CHANGELOG: &str = "\
Examples:
  vmbake changelog before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2 > CHANGES.md
  vmbake changelog before/node.debian-13.amd64.spdx.json dist/node.debian-13.amd64.spdx.json   # without the images";

pub(super) const REPORT: &str = "\
Examples:
  vmbake report dist/node.debian-13.amd64.qcow2 -o node.html
  vmbake report dist/node.debian-13.amd64.qcow2 --compare before/node.debian-13.amd64.qcow2 --verify -o node.html --force";

pub(super) const USER_DATA_RENDER: &str = "\
Examples:
  vmbake user-data render --kind node --ssh-key ~/.ssh/id_ed25519.pub > user-data
  vmbake user-data render --kind knd --env settings.env --nonce nonce --ca ca.pem --provider aws > user-data
  vmbake user-data render --kind knc --template nstance --set PROVIDER_KIND=aws --set AWS_ACCOUNT_ID=123456789012 > knc.user-data";

pub(super) const USER_DATA_KEYS: &str = "\
Examples:
  vmbake user-data keys --kind knd
  vmbake user-data keys --kind knd --json";

pub(super) const PROFILE_RENDER: &str = "\
Examples:
  vmbake profile render examples/profiles/debian.yaml --machine-deployment examples/profiles/deployment.yaml \\
      --set server-url=https://api.example.org:6443 --set api-server-token=token --set kubernetes-ca-bundle=ca.pem
  vmbake profile render examples/profiles/debian.yaml --machine-deployment examples/profiles/deployment.yaml \\
      --set server-url=https://api.example.org:6443 --set api-server-token=token --set kubernetes-ca-bundle=ca.pem \\
      --user-data bootstrap > user-data";

pub(super) const PROFILE_IMPORT: &str = "\
Examples:
  vmbake profile import examples/profiles/debian.yaml --machine-deployment examples/profiles/deployment.yaml --out workers
  vmbake profile import osp-ubuntu.yaml --as debian-13 --machine-deployment workers.yaml --rules rules.json --out workers";

pub(super) const PROFILE_DIFF: &str = "\
Examples:
  vmbake profile diff example-debian-workers-0a1b2c3d example-debian-workers-4e5f6a7b --dir workers";

pub(super) const PROFILE_LIST: &str = "\
Examples:
  vmbake profile list
  vmbake profile list --json";

pub(super) const PROFILE_MATERIALS: &str = "\
Examples:
  vmbake profile materials example-debian-workers-0a1b2c3d --dir workers
  vmbake profile materials example-debian-workers-0a1b2c3d --dir workers -o workers.tar";

pub(super) const TRUST_SHOW: &str = "\
Examples:
  vmbake trust show
  vmbake trust show --trust trust --sources manifests/sources.json";

pub(super) const TRUST_UPDATE: &str = "\
Examples:
  vmbake trust update                             # asks before it replaces a file in trust/
  vmbake trust update --trust trust --only debian-archive.asc --yes";

pub(super) const VERIFY_IMAGE: &str = "\
Examples:
  vmbake verify image dist --key release.pub
  vmbake verify image dist/node.debian-13.amd64.qcow2 --policy policy.json --json
  vmbake verify image dist --key release.pub --rebuild        # is it what its inputs lead to?
  vmbake verify image dist --certificate-identity https://github.com/example/images/.github/workflows/release.yml@refs/heads/main \\
      --certificate-oidc-issuer https://token.actions.githubusercontent.com";

pub(super) const VERIFY_APT: &str = "\
Examples:
  vmbake verify apt --keyring trust/debian-archive.asc --suite trixie --component main --arch amd64 --package runc /srv/debian";

pub(super) const VERIFY_CHECKSUM: &str = "\
Examples:
  vmbake verify checksum --sums SHA256SUMS containerd-2.1.4-linux-amd64.tar.gz
  vmbake verify checksum --sums SHA512SUMS --algorithm sha512 debian-13-genericcloud-amd64.qcow2";

pub(super) const VERIFY_SIGSTORE: &str = "\
Examples:
  vmbake verify sigstore --bundle app.sigstore.json --certificate-identity release@example.org \\
      --certificate-oidc-issuer https://accounts.example.org app.tar.gz
  vmbake verify sigstore --bundle app.sigstore.json --key cosign.pub app.tar.gz";

pub(super) const VERIFY_COSIGN: &str = "\
Examples:
  vmbake verify cosign --signature kubelet.sig --certificate kubelet.cert --log-entry entry.json \\
      --certificate-identity krel-staging@k8s-releng-prod.iam.gserviceaccount.com \\
      --certificate-oidc-issuer https://accounts.google.com kubelet";

pub(super) const VERIFY_OCI: &str = "\
Examples:
  vmbake verify oci --platform linux/amd64 \\
      --digest sha256:8aa48c2df3cc3ace73655a988463850b5ccec4d56e182e4985aaa3347a1ebabf layout";

pub(super) const COMPLETIONS: &str = "\
Examples:
  vmbake completions bash > ~/.local/share/bash-completion/completions/vmbake
  vmbake completions zsh > ~/.zfunc/_vmbake
  vmbake completions fish > ~/.config/fish/completions/vmbake.fish";
