"""Fixtures: the program, the base, baked images and a temporary directory. The Makefile builds the inputs before it runs pytest."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from harness import documents, paths, report


def built(path, target):
    path = pathlib.Path(path)
    if not path.exists():
        pytest.fail(f"{path} is missing: run `make {target}`", pytrace=False)
    return path


@pytest.fixture(scope="session")
def vmbake():
    return built(paths.VMBAKE, "builder")


@pytest.fixture(scope="session")
def base():
    return built(built(paths.TARGET / "base-path", "base").read_text().strip(), "base")


@pytest.fixture(scope="session")
def base_arm64():
    return built(built(paths.TARGET / "base-path.arm64", "base ARCH=arm64").read_text().strip(), "base ARCH=arm64")


@pytest.fixture(scope="session")
def rootfs(base):
    """The root file system of the base."""
    return built(base.parent / "rootfs.tar", "base")


@pytest.fixture(scope="session")
def store():
    return built(paths.TARGET / "store", "bake")


@pytest.fixture(scope="session")
def name():
    """Of the baked node, and of the files of its release."""
    return os.environ.get("VMBAKE_TEST_NAME", "node.debian-13.amd64")


@pytest.fixture(scope="session")
def manifest(name):
    return built(paths.TARGET / f"manifests/{name}.json", "manifest")


@pytest.fixture(scope="session")
def release(name):
    """The directory of the baked images."""
    folder = paths.ROOT / os.environ.get("VMBAKE_TEST_OUT", "dist")
    built(folder / f"{name}.raw", "bake")
    return folder


@pytest.fixture(scope="session")
def baked(release, name):
    return release / f"{name}.raw"


@pytest.fixture(scope="session")
def kinds():
    """The directory of knd, knc and k3s, baked from the release sites on loopback."""
    built(paths.TARGET / "kinds/knc.debian-13.amd64.raw", "kinds-images")
    return paths.TARGET / "kinds"


@pytest.fixture(scope="session")
def examples():
    return built(paths.TARGET / "release/examples", "tools")


@pytest.fixture
def work():
    """A temporary directory for whole images."""
    with tempfile.TemporaryDirectory(prefix="vmbake-test.", dir="/var/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.fixture(scope="session")
def blobs(store):
    """A store with the same blobs."""
    with tempfile.TemporaryDirectory(prefix="docs-store.") as copy:
        shutil.copytree(store / "blobs", pathlib.Path(copy, "blobs"))
        yield copy


@pytest.fixture
def checkout(release, blobs, tmp_path):
    """A copy of the checkout, because commands may write to what they find; images are too large for that, and only read."""
    checkout = tmp_path / "checkout"
    shutil.copytree(paths.ROOT, checkout, symlinks=True, ignore=shutil.ignore_patterns(*documents.NOT_OURS))
    shutil.copytree(paths.ROOT / "target/manifests", checkout / "target/manifests")
    shutil.copy(paths.ROOT / "target/base-path", checkout / "target/base-path")
    (checkout / "target/store").symlink_to(blobs)
    (checkout / "dist").mkdir()
    for file in release.iterdir():
        (checkout / "dist" / file.name).symlink_to(file)
    return checkout


@pytest.fixture(autouse=True)
def cases():
    """Fails a test at its end if one of its cases failed, or one of a fixture that was made for it: the others run all the same."""
    yield
    found = report.failures[:]
    report.failures.clear()
    if found:
        pytest.fail(f"{len(found)} failed: {'; '.join(found)}", pytrace=False)


@pytest.fixture(autouse=True)
def programs(request):
    """Skips a test whose mark `needs` names a program that is missing, or root."""
    for mark in request.node.iter_markers("needs"):
        for program in mark.args:
            if os.getuid() != 0 if program == "root" else not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
                pytest.skip(f"needs {program}")


def debian_program(program, folder):
    """A program of the machine, or Debian 13's from its package, or nothing."""
    if found := os.environ.get(program.upper()) or shutil.which(program):
        return pathlib.Path(found)
    script = f'. "{paths.ROOT}/tools/cosign.sh"; find_program {program} "{folder}" >&2 && echo "$found"'
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip()) if done.returncode == 0 else None


def program_fixture(program):
    @pytest.fixture(scope="session", name=program)
    def fixture(tmp_path_factory):
        return debian_program(program, tmp_path_factory.mktemp(program)) or pytest.skip(f"no {program}, and Debian's cannot be fetched")

    return fixture


cosign, oras = program_fixture("cosign"), program_fixture("oras")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A skipped test is listed at the end of `make test`; in CI it failed."""
    outcome = yield
    if outcome.skipped:
        why = outcome.longrepr[2] if isinstance(outcome.longrepr, tuple) else str(outcome.longrepr)
        report.note_skipped(f"{item.nodeid}: {why}")
        if os.environ.get("CI"):
            outcome.outcome = "failed"
    return outcome
