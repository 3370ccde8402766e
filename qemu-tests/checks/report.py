"""What a check reports: `ok: NAME` or `FAIL: NAME` with what was said, and which failed."""

failures = []


def case(name, ok, said=""):
    print(f"{'ok' if ok else 'FAIL'}: {name}", flush=True)
    if not ok:
        failures.append(name)
        print(str(said)[-4000:], flush=True)
