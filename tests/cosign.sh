#!/bin/bash
# cosign.sh VMBAKE: asks vmbake and cosign about the same signatures. They must agree, except where a case says why cosign
# judges otherwise. COSIGN names the program; without it the one of the machine is asked, or Debian 13's is fetched.
set -euo pipefail
[ $# = 1 ] || { echo "usage: cosign.sh VMBAKE" >&2; exit 2; }
vmbake=$(realpath "$1") here=$(dirname "$(realpath "$0")")
. "$here/skip.sh"
. "$here/../tools/cosign.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! find_cosign "$work"; then
    skip cosign.sh "no cosign, and Debian's cannot be fetched"
    exit
fi

/usr/bin/python3 - "$vmbake" "$cosign" "$here/.." "$work" <<'PY'
import base64, json, os, subprocess, sys
from pathlib import Path

vmbake, cosign, top, work = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
data = top / "src/vmbake/tests/data/sigstore"

# Nobody is asked but the files: every proxy is a closed port, and the home directory is empty.
nobody = "http://127.0.0.1:9"
base = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "TUF_ROOT": str(work / "home"), "http_proxy": nobody,
        "https_proxy": nobody, "HTTP_PROXY": nobody, "HTTPS_PROXY": nobody}


def run(program, args, env=base):
    done = subprocess.run([program, *map(str, args)], env=env, capture_output=True, text=True)
    if done.returncode not in (0, 1) or "panicked" in done.stderr:
        sys.exit(f"{program} {args}: exit status {done.returncode}\n{done.stderr}")
    return done.returncode == 0, " ".join((done.stdout + done.stderr).split())


def identity(case):
    if "key" in case:
        return ["--key", data / case["key"]]
    return ["--certificate-identity", case["identity"], "--certificate-oidc-issuer", case["issuer"]]


def ask_vmbake(case):
    args = ["verify", "sigstore" if "bundle" in case else "cosign", *identity(case)]
    for key in ("bundle", "signature", "certificate", "log_entry", "root"):
        if key in case:
            args += ["--" + {"root": "trusted-root"}.get(key, key).replace("_", "-"), data / case[key]]
    for key in ("predicate_type", "now"):
        if key in case:
            args += ["--" + key.replace("_", "-"), case[key]]
    if case.get("allow_no_log"):
        args += ["--allow-no-log"]
    return run(vmbake, args + [data / case["artifact"]])


def pem(kind, der):
    return f"-----BEGIN {kind}-----\n{der}\n-----END {kind}-----\n"


def anchors(root):
    """The environment by which cosign trusts what a trusted root trusts, for signatures without a bundle."""
    authorities = [c["rawBytes"] for ca in root["certificateAuthorities"] for c in ca["certChain"]["certificates"]]
    files = {"SIGSTORE_ROOT_FILE": "".join(pem("CERTIFICATE", c) for c in authorities),
             "SIGSTORE_REKOR_PUBLIC_KEY": pem("PUBLIC KEY", root["tlogs"][0]["publicKey"]["rawBytes"]),
             "SIGSTORE_CT_LOG_PUBLIC_KEY_FILE": pem("PUBLIC KEY", root["ctlogs"][0]["publicKey"]["rawBytes"])}
    for name, text in files.items():
        (work / name).write_text(text)
    return base | {name: str(work / name) for name in files}


def ask_cosign(case):
    root = data / case.get("root", "../../../../../trust/sigstore-root.json")
    args = ["verify-blob", "--offline", *identity(case)]
    if "bundle" in case:
        args += ["--new-bundle-format", "--trusted-root", root, "--bundle", data / case["bundle"]]
        return run(cosign, args + [data / case["artifact"]])
    signature, certificate = ((data / case[key]).read_text().strip() for key in ("signature", "certificate"))
    if certificate.startswith("-----"):
        certificate = base64.b64encode(certificate.encode() + b"\n").decode()
    (work / "sig").write_text(signature)
    (work / "cert").write_text(certificate)
    args += ["--signature", work / "sig", "--certificate", work / "cert"]
    if "log_entry" in case:
        # What cosign itself writes with --bundle: the promise of the log.
        [entry] = json.loads((data / case["log_entry"]).read_text()).values()
        payload = {key: entry[key] for key in ("body", "integratedTime", "logIndex", "logID")}
        promise = {"SignedEntryTimestamp": entry["verification"]["signedEntryTimestamp"], "Payload": payload}
        bundle = {"base64Signature": signature, "cert": certificate, "rekorBundle": promise}
        (work / "bundle").write_text(json.dumps(bundle))
        args += ["--bundle", work / "bundle"]
    elif case.get("allow_no_log"):
        args += ["--insecure-ignore-tlog"]
    return run(cosign, args + [data / case["artifact"]], anchors(json.loads(root.read_text())))


words, counts, failed = {True: "proven", False: "refused"}, {"agree": 0, "differ": 0}, False
for case in json.loads((data / "cases.json").read_text()):
    ours, our_reason = ask_vmbake(case)
    theirs, their_reason = ask_cosign(case)
    if ours != ("proven" in case):
        failed = True
        print(f"FAIL {case['name']}: vmbake says {words[ours]}: {our_reason}")
    elif ours == theirs:
        counts["agree"] += 1
    elif "cosign" in case:
        counts["differ"] += 1
        print(f"{case['name']}: {words[ours]}, and {words[theirs]} by cosign: it {case['cosign']}")
    else:
        failed = True
        print(f"FAIL {case['name']}: {words[ours]}, and {words[theirs]} by cosign: {their_reason}")
print(f"vmbake and cosign agree about {counts['agree']} signatures and differ about {counts['differ']} for known reasons")
sys.exit(failed)
PY
"$here/harness/signatures.py" "$vmbake" "$cosign"
