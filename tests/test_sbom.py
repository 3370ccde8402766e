"""The SBOMs of a baked image are valid and correct.

spdx-tools and cyclonedx-python-lib check the format, packageurl each package URL, dpkg-query the list of packages, python-debian and
license-expression the licenses; how trivy and grype find the distribution and source packages is reimplemented here from their
sources. The files of the image come from debugfs.
"""

import collections
import hashlib
import json
import logging
import pathlib
import re
import warnings

import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from debian.copyright import Copyright, NotMachineReadableError
from debian.deb822 import Deb822, PkgRelation
from license_expression import get_spdx_licensing
from packageurl import PackageURL
from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from harness.disk import partitions
from harness.paths import ROOT
from harness.report import case
from harness.run import must

# Debian's names that differ from SPDX, specified a second time.
DEBIAN = {"expat": "MIT", "artistic": "Artistic-1.0-Perl", "artistic-2": "Artistic-2.0", "cc0": "CC0-1.0", "apache-2": "Apache-2.0", "mpl-2": "MPL-2.0", "psf-2": "PSF-2.0"}
GNU = re.compile(r"(GFDL-NIV|GFDL|AGPL|LGPL|GPL)-?v?([0-9]+(?:\.[0-9]+)?)(\+|-or-later|-only)?", re.IGNORECASE)


@pytest.fixture(autouse=True)
def quiet():
    """Without complaints of the modules about unusual but valid fields."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def spdx(release, name):
    return json.loads((release / f"{name}.spdx.json").read_text())


@pytest.fixture(scope="module")
def cdx(release, name):
    return json.loads((release / f"{name}.cdx.json").read_text())


@pytest.fixture(scope="module")
def image(baked, tmp_path_factory):
    """dpkg's database and the documents of the packages, out of the root partition, by debugfs."""
    folder = tmp_path_factory.mktemp("files")
    for path in ["/var/lib/dpkg", "/usr/share/doc"]:
        must("debugfs", "-R", f"rdump {path} {folder}", f"{baked}?offset={partitions(baked)[1].start}")
    return folder


@pytest.mark.parametrize("disk", ["raw", "qcow2"])
@pytest.mark.parametrize(("form", "option"), [("spdx", "spdx-2.3"), ("cdx", "cyclonedx-1.6")])
def test_query(vmbake, release, name, disk, form, option):
    assert must(vmbake, "sbom", release / f"{name}.{disk}", "--format", option) == (release / f"{name}.{form}.json").read_text()


def cyclonedx(what, text):
    """CycloneDX, by the schema and the library of its project."""
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    case(f"{what}: the schema of CycloneDX 1.6 holds", error is None, error)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bom = Bom.from_json(json.loads(text))
        case(f"{what}: cyclonedx-python-lib reads it, and each dependency is there", bom.validate(), bom)


def test_program():
    """That of vmbake itself, which a release of the program has: every crate of the registry has a licence and the digest of Cargo.lock."""
    text = must(ROOT / "tools/release/sbom.py")
    cyclonedx("vmbake", text)
    components = json.loads(text)["components"]
    bare = [one["name"] for one in components if "licenses" not in one or ("hashes" not in one and not one["name"].startswith("vmbake-"))]
    case(f"vmbake: each of {len(components)} crates has its licence and digest", len(components) > 100 and not bare, bare)


def test_formats(release, name):
    """Both forms, by the libraries of their projects."""
    spdx, cdx = release / f"{name}.spdx.json", release / f"{name}.cdx.json"
    found = validate_full_spdx_document(parse_file(str(spdx)))
    case("spdx-tools finds the SPDX document valid", not found, found[:5])
    cyclonedx("the image", cdx.read_text())
    locators = [ref["referenceLocator"] for package in json.loads(spdx.read_text())["packages"] for ref in package.get("externalRefs", [])]
    odd = [purl for purl in locators if PackageURL.from_string(purl).to_string() != purl]
    case("packageurl has each package URL in the same form", locators and not odd, odd)
    components = json.loads(cdx.read_text())["components"]
    case("both have the same package URLs", {c["purl"] for c in components if "purl" in c} <= set(locators), "")


def test_files(vmbake, baked):
    """Every file, on demand: all are there with the digests that hashlib has. The libraries need minutes for so many: they get a few."""
    spdx = json.loads(must(vmbake, "sbom", baked, "--files"))
    cdx = json.loads(must(vmbake, "sbom", baked, "--files", "--format", "cyclonedx-1.6"))
    listed = [json.loads(line) for line in must(vmbake, "ls", baked, "/", "--recursive", "--json").splitlines()]
    regular = {entry.get("escaped_path", entry["path"].replace("\\", "\\x5c")) for entry in listed if entry["type"] == "regular file"}
    named = {file["fileName"].removeprefix(".") for file in spdx["files"]}
    components = {component["name"] for component in cdx["components"] if component["type"] == "file"}
    case(f"all {len(regular)} files are listed", named == regular == components, named ^ regular)
    digests = {file["SPDXID"]: {sum["algorithm"]: sum["checksumValue"] for sum in file["checksums"]} for file in spdx["files"]}
    code = hashlib.sha1("".join(sorted(found["SHA1"] for found in digests.values())).encode()).hexdigest()
    said = spdx["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"]
    case("hashlib has the same verification code", said == code, (said, code))
    wrong = []
    for file in spdx["files"][:: len(spdx["files"]) // 20]:
        content = must(vmbake, "cat", "--escaped", baked, file["fileName"][1:], text=False)
        if digests[file["SPDXID"]] != {"SHA1": hashlib.sha1(content).hexdigest(), "SHA256": hashlib.sha256(content).hexdigest()}:
            wrong.append(file["fileName"])
    case("hashlib has the same digests of 20 files", not wrong, wrong)
    few = {file["SPDXID"] for file in spdx["files"][:20]}
    spdx["files"] = spdx["files"][:20]
    spdx["relationships"] = [one for one in spdx["relationships"] if not one["relatedSpdxElement"].startswith("SPDXRef-File-") or one["relatedSpdxElement"] in few]
    found = validate_full_spdx_document(JsonLikeDictParser().parse(spdx))
    case("spdx-tools finds a document with files valid", not found, found[:5])
    cdx["components"] = [one for one in cdx["components"] if one["type"] != "file" or f"SPDXRef-{one['bom-ref']}" in few]
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(cdx))
    case("the schema of CycloneDX holds with files", error is None, error)


def test_packages(spdx, cdx, image):
    """The packages, by dpkg-query, and the requirements of trivy and grype: trivy/pkg/sbom/spdx/unmarshal.go, syft/format/internal/spdxutil."""
    fields = ["Package", "Version", "Architecture", "source:Package", "source:Version", "db:Status-Abbrev"]
    rows = must("dpkg-query", f"--admindir={image}/dpkg", "--show", "--showformat", "\\t".join(f"${{{field}}}" for field in fields) + "\\n")
    rows = [row.split("\t") for row in rows.splitlines()]
    expected = {tuple(row[:5]) for row in rows if row[5][1] not in "nc"}
    named = [package for package in spdx["packages"] if package.get("sourceInfo", "").startswith("built package from: ")]
    found = set()
    for package in named:
        purl = package["externalRefs"][0]["referenceLocator"]
        source, version = package["sourceInfo"].removeprefix("built package from: ").split(" ")
        found.add((package["name"], package["versionInfo"], re.search(r"[?&]arch=([^&]*)", purl)[1], source, version))
    case("dpkg-query lists the same packages, with the same sources", expected and found == expected, found ^ expected)
    systems = [package for package in spdx["packages"] if package["SPDXID"].startswith("SPDXRef-OperatingSystem")]
    case("trivy finds one distribution", [(s["name"], s["versionInfo"]) for s in systems] == [("debian", "13")], systems)
    purls = [ref for package in named for ref in package["externalRefs"]]
    right = all(ref["referenceCategory"] == "PACKAGE-MANAGER" and "distro=debian-13" in ref["referenceLocator"] for ref in purls)
    case("grype finds the distribution of each package", right and len(purls) == len(named), purls[:3])
    system = [c for c in cdx["components"] if c["type"] == "operating-system"]
    case("CycloneDX has the distribution", [(s["name"], s["version"]) for s in system] == [("debian", "13")], system)
    libraries = {c["bom-ref"]: {p["name"]: p["value"] for p in c.get("properties", [])} for c in cdx["components"]}
    trivy = set()
    for package in named:
        said = {key.removeprefix("aquasecurity:trivy:"): value for key, value in libraries[package["SPDXID"].removeprefix("SPDXRef-")].items()}
        epoch, revision = said.get("SrcEpoch"), said.get("SrcRelease")
        version = (f"{epoch}:" if epoch else "") + said["SrcVersion"] + (f"-{revision}" if revision else "")
        trivy.add((package["name"], said["SrcName"], version))
    case("trivy finds the same sources in CycloneDX", trivy == {(row[0], row[3], row[4]) for row in expected}, trivy)


def of_base(vmbake, base):
    """Names and versions of the packages that the base image has, by its own dpkg database."""
    stanzas = must(vmbake, "cat", base, "/var/lib/dpkg/status").split("\n\n")
    fields = [dict(re.findall(r"^(Package|Version): (.*)$", stanza, re.MULTILINE)) for stanza in stanzas]
    return {(found["Package"], found["Version"]) for found in fields if "Version" in found}


def test_digests(vmbake, base, spdx, release, name, store):
    """Debs that were installed have their digests, and the base's have none."""
    entries, old = json.loads((release / f"{name}.json").read_text())["vmconfig"]["dependencies"], of_base(vmbake, base)
    # Packages that the base has in the pinned version are not installed again.
    pinned = {entry["digest"].removeprefix("sha256:") for name, entry in entries.items() if (name, entry["version"]) not in old}
    named = {p["name"]: p["checksums"][0]["checksumValue"] for p in spdx["packages"] if p.get("sourceInfo") and p.get("checksums")}
    case("each artifact that was installed has its digest", set(named.values()) == pinned, set(named.values()) ^ pinned)
    wrong = []
    for name, digest in named.items():
        blob = pathlib.Path(store, "blobs/sha256", digest)
        content = blob.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest or must("dpkg-deb", "--field", blob, "Package").strip() != name:
            wrong.append(name)
    case("dpkg-deb has the same names for these digests", named and not wrong, wrong)


def test_dependencies(spdx, image):
    """Each dependency that dpkg knows is one of the document, by python-debian."""
    with open(f"{image}/dpkg/status", encoding="utf-8") as file:
        status = {stanza["Package"]: stanza for stanza in Deb822.iter_paragraphs(file)}
    provided = {name: {name} | {relation[0]["name"] for relation in PkgRelation.parse_relations(s.get("Provides", "")) if relation[0]["name"]}
                for name, s in status.items()}
    names = {package["SPDXID"]: package["name"] for package in spdx["packages"]}
    edges = collections.defaultdict(set)
    for relation in spdx["relationships"]:
        if relation["relationshipType"] == "DEPENDS_ON":
            edges[names[relation["spdxElementId"]]].add(names[relation["relatedSpdxElement"]])
    lacking, groups = [], 0
    for name, stanza in status.items():
        reached = set().union(*(provided[target] for target in edges[name]), set())
        for field in ["Depends", "Pre-Depends"]:
            for group in PkgRelation.parse_relations(stanza.get(field, "")):
                wanted = {relation["name"] for relation in group}
                if stanza["Status"].endswith(" installed") and "" not in wanted:
                    groups += 1
                    lacking += [] if wanted & reached else [(name, wanted)]
    case(f"all {groups} dependencies are there", groups > 100 and not lacking, lacking)


def atoms(synopsis, index):
    """The licences of a synopsis, in small letters."""
    for atom in re.split(r"\s*,?\s+(?:and/or|and|or)\s+|,\s+|\s*\|\s*", synopsis.strip(), flags=re.IGNORECASE):
        plain = " ".join(atom.split())
        licence, _, exception = plain.partition(" with ")
        known = plain.lower() in DEBIAN and DEBIAN[plain.lower()]
        if exception and (parts := (next(atoms(licence, index)), exception.lower().replace(" exception", "-exception"))):
            if all(part in index for part in parts):
                yield from parts
                continue
        if found := GNU.fullmatch(plain):
            family, version, end = found.groups()
            version = version if "." in version else version + ".0"
            middle = "-no-invariants" if family.upper() == "GFDL-NIV" else ""
            spelled = f"{family.upper().removesuffix('-NIV')}-{version}{middle}-{'or-later' if end in ('+', '-or-later') else 'only'}"
            known = spelled if spelled.lower() in index else known
        yield (known or plain).lower()


def test_licences(spdx, image):
    """The licences, by python-debian: of all packages whose copyright file is machine-readable."""
    licensing = get_spdx_licensing()
    index = {str(symbol.key).lower() for symbol in licensing.known_symbols.values()}
    own = {info["licenseId"]: info for info in spdx["hasExtractedLicensingInfos"]}
    compared, wrong, free = 0, [], []
    for package in (package for package in spdx["packages"] if package.get("sourceInfo")):
        path = pathlib.Path(image, "doc", package["name"], "copyright")
        declared = package["licenseDeclared"]
        if not path.exists():
            wrong += [] if declared == "NOASSERTION" else [(package["name"], declared)]
            continue
        text = path.read_text(errors="replace")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                document = Copyright(text.splitlines(), strict=False)
        except NotMachineReadableError:
            free += [package["name"]] if declared in own and own[declared]["extractedText"] == text.strip() else [wrong.append((package["name"], declared))]
            continue
        said = [paragraph.license for paragraph in document.all_files_paragraphs()] + [document.header.license]
        expected = {atom for licence in said if licence is not None and licence.synopsis for atom in atoms(licence.synopsis, index)}
        keys = licensing.license_keys(declared) if declared != "NOASSERTION" else []
        found = {" ".join(own[key]["name"].split()).lower() if key in own else key.lower().removesuffix("+") for key in keys}
        expected = {atom if atom in found else atom.removesuffix("+") for atom in expected}
        compared += 1
        if found != expected:
            wrong.append((package["name"], found ^ expected))
    case(f"python-debian reads the same licences in {compared} packages, {len(free)} others have their whole text", compared >= 50 and not wrong, wrong)
