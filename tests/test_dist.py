"""The static programs and Debian packages of `make dist`, in bare roots of Debian 12 and 13 for amd64 and arm64: no compiler, and no libraries beyond
the base system. `harness/bare_root.sh` checks them there; programs of other architectures run by qemu-user. lintian of Debian 13 checks the packages.
"""

import subprocess

import pytest

from harness.paths import BASE_IMAGE, HARNESS, TARGET
from harness.run import must, run

pytestmark = [pytest.mark.slow, pytest.mark.needs("mmdebstrap")]
OWN = must("dpkg", "--print-architecture").strip()


@pytest.fixture(scope="module")
def packages():
    folder = TARGET / "packages"
    if not folder.exists():
        pytest.fail(f"{folder} is missing: run `make dist`", pytrace=False)
    return folder


@pytest.fixture
def in_root(work):
    """Runs hooks of mmdebstrap in a minimal root, of which nothing is kept; returns their output."""
    # Without root, mmdebstrap works as a subordinate user.
    work.chmod(0o755)

    def in_root(suite, arch, *options):
        must(BASE_IMAGE / "apt-root.sh", work / "apt", arch, suite)
        # It prints what hooks print to its stderr.
        return must("mmdebstrap", "--quiet", "--variant=minbase", f"--architectures={arch}", '--aptopt=APT::Install-Recommends "false"',
                    "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg", "--format=null", *options,
                    suite, "/dev/null", work / "apt/sources.list", capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    return in_root


def test_dist_digests(packages):
    """SHA256SUMS names every file."""
    must("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=packages)
    listed = [line.split()[1] for line in (packages / "SHA256SUMS").read_text().splitlines()]
    assert sorted([*listed, "SHA256SUMS"]) == sorted(file.name for file in packages.iterdir())


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_dist_root(packages, vmbake, base, work, in_root, arch, suite):
    """The program's output is that of the ordinary program; the package installs, and leaves nothing when it is purged."""
    if arch != OWN and (done := run(BASE_IMAGE / "binfmt.sh", arch)).returncode:
        pytest.skip(done.stderr)
    asked = work / "asked"
    asked.mkdir()
    for name, words in {"version": ["--version", "--json"], "layers": ["layer", "list"], "inspected": ["inspect", base, "--json"]}.items():
        (asked / name).write_text(must(vmbake, *words))
    [program], [package] = packages.glob(f"vmbake-*-{arch}"), packages.glob(f"vmbake_*_{arch}.deb")
    said = in_root(suite, arch, f"--customize-hook=copy-in {asked} /",
                   f"--customize-hook=copy-in {program} {package} {base} {HARNESS / 'bare_root.sh'} /asked",
                   f'--customize-hook=chroot "$1" /bin/bash /asked/bare_root.sh {arch} {base.name}')
    print(said)
    assert "ok: nothing is left once it is purged\n" in said


def test_dist_lintian(packages, in_root):
    said = in_root("trixie", OWN, "--include=lintian", f"--customize-hook=copy-in {packages} /",
                   "--customize-hook=chroot \"$1\" sh -c 'lintian --allow-root --fail-on error,warning --display-level \">=warning\" /packages/*.deb'",
                   '--customize-hook=echo "ok: lintian"')
    assert "ok: lintian\n" in said, said
