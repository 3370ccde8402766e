"""Paths of the repository, its build outputs and the test harness."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "target"
TESTS = ROOT / "tests"
HARNESS = TESTS / "harness"
BASE_IMAGE = ROOT / "tools/base-image"
CASES = ROOT / "qemu-tests/cases"
VMBAKE = pathlib.Path(os.environ.get("VMBAKE", TARGET / "release/vmbake")).resolve()
