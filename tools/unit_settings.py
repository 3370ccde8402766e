#!/usr/bin/env python3
"""Prints the settings of units, or of systemd's daemons, with the kinds of their values, from the source of systemd.

usage: tools/unit_settings.py SYSTEMD > src/layer/src/check/syntax/units/settings.txt
       tools/unit_settings.py --daemons SYSTEMD > src/layer/src/check/syntax/units/daemons.txt

SYSTEMD is the unpacked source package of systemd in Debian 13.
"""

import re
import sys
from pathlib import Path

# Kinds of the parsers that do not read one word of a table. `?` allows an empty value, and `{NAME}` are the words of a table.
KINDS = {
    "bool": "words bool",
    "job_mode_isolate": "words bool",
    "tristate": "words? bool",
    "sec": "time",
    "sec_fix_0": "time",
    "sec_def_infinity": "time?",
    "job_timeout_sec": "time",
    "job_running_timeout_sec": "time",
    "service_timeout": "time",
    "service_timeout_abort": "time?",
    "nsec": "time",
    "timer": "time?",
    "unit_path_printf": "path?",
    "path_spec": "path?",
    "unit_condition_path": "condition?",
    "unit_env_file": "file?",
    "working_directory": "directory?",
    "namespace_path_strv": "paths?",
    "temporary_filesystems": "paths?",
    "unit_mounts_for": "paths?",
    "exec_directories": "names?",
    "mode": "mode",
    "socket_listen": "address?",
    "signal": "signal",
    "user_group_compat": "account?",
    "user_group_strv_compat": "accounts?",
    "tasks_max": "tasks?",
    "cg_cpu_weight": "words? idle weight",
    "in_addr_prefixes": "networks?",
    "long": "integer -9223372036854775807 9223372036854775807",
    "socket_bind": "words bool default both ipv6-only",
    "socket_protocol": "words udplite sctp mptcp",
    "exec_mount_propagation_flag": "words? shared slave private",
    "restrict_namespaces": "list? bool cgroup ipc net mnt pid time user uts",
    "capability_set": "capabilities?",
    "syscall_filter": "syscalls?",
    "syscall_log": "syscalls?",
    "private_pids": "words bool",
    "exec_nice": "integer? -20 19",
    "exec_oom_score_adjust": "integer? -1000 1000",
    "exec_io_priority": "integer? 0 7",
    "swap_priority": "integer? -1 32767",
    "unsigned": "integer 0 4294967295",
    "int": "integer -2147483648 2147483647",
    "cg_weight": "integer? 1 10000",
    "exit_status": "integer? 0 255",
    "set_status": "statuses?",
    "device_allow": "device?",
    "cgroup_socket_bind": "ports?",
    "exec_cpu_sched_prio": "integer? 0 99",
    "rlimit": "limit",
    "memory_limit": "memory?",
    "iec_size": "size",
    "cpu_quota": "quota?",
    "unit_deps": "units?",
    "trigger_unit": "unit",
    "unit_slice": "unit slice",
    "socket_service": "unit service",
    "service_sockets": "units? socket",
    "environ": "variables?",
    "address_families": "families?",
    "unit_string_printf": "text?",
    "unit_condition_string": "text?",
    "syscall_errno": "errno?",
    "syscall_archs": "each? native x86 x86-64 x32 arm arm64 loongarch64 mips mips64 mips64-n32 mips-le mips64-le"
    " mips64-le-n32 parisc parisc64 ppc ppc64 ppc64-le riscv64 s390 s390x",
    "exec_cpu_affinity": "affinity?",
    "allowed_cpuset": "processors?",
    "numa_mask": "nodes?",
    "load_credential": "loaded?",
    "set_credential": "credential?",
    "import_credential": "imported?",
    "pass_environ": "names_of_variables?",
    "unset_environ": "unset?",
    "io_limit": "rated?",
    "io_device_weight": "weighted?",
    "io_device_latency": "latency?",
    "delegate": "each? bool {cgroup_controller}",
    "disable_controllers": "each? {cgroup_controller}",
    "delegate_subgroup": "group?",
    "bind_paths": "binds?",
    "mount_images": "images? {partition_designator}",
    "extension_images": "extensions? {partition_designator}",
    "exec_input_data": "data?",
    "exec_input_text": "input?",
    "log_namespace": "namespace?",
    "log_extra_fields": "fields?",
    "pid_file": "pidfile?",
    "bus_name": "bus",
    "open_file": "opened?",
    "managed_oom_mem_pressure_limit": "percent?",
    "managed_oom_mem_pressure_duration_sec": "duration?",
    "exec_root_hash": "hash?",
    "exec_root_hash_sig": "signature?",
    "tty_size": "integer? 0 4294967295",
    "documentation": "documentation?",
    "colon_separated_paths": "search?",
    "exec_coredump_filter": "each? default all {coredump_filter} hexadecimal",
    "restrict_filesystems": "filesystems?",
    "restrict_network_interfaces": "interfaces?",
    "ip_filter_bpf_progs": "absolute?",
    "bpf_foreign_program": "program?",
    "cgroup_nft_set": "sets?",
    "socket_bindtodevice": "interface?",
    "socket_timestamping": "words bool off us usec µs μs ns nsec",
    "unit_path_strv_printf": "links?",
    "fdname": "label?",
    "warn_compat": "ignored",
    "obsolete_unit_deps": "ignored",
}

# Keys whose parser reads several kinds.
KEYS = {
    "ListenFIFO": "path?",
    "ListenSpecial": "path?",
    "ListenUSBFunction": "path?",
    "ListenNetlink": "netlink? {netlink_family}",
    "SetCredentialEncrypted": "credential? encrypted",
    "LimitCPU": "limit time",
    "LimitRTTIME": "limit microseconds",
    "LimitNICE": "limit nice",
    **dict.fromkeys(
        ("LimitFSIZE", "LimitDATA", "LimitSTACK", "LimitCORE", "LimitRSS", "LimitAS", "LimitMEMLOCK", "LimitMSGQUEUE"),
        "limit bytes",
    ),
    # Settings of memory that may be zero.
    **dict.fromkeys(
        (
            "MemoryMin",
            "MemoryLow",
            "StartupMemoryLow",
            "DefaultMemoryMin",
            "DefaultMemoryLow",
            "MemorySwapMax",
            "StartupMemorySwapMax",
            "MemoryZSwapMax",
            "StartupMemoryZSwapMax",
        ),
        "size?",
    ),
    "ListenMessageQueue": "path?",
    "OnCalendar": "any",
}

# Parsers of words whose table has another name.
NAMES = {"log_facility": "log_facility_unshifted", "exec_io_class": "ioprio_class", "exec_cpu_sched_policy": "sched_policy", "personality": "architecture"}

# Parsers of words that take an empty value.
OPTIONAL = {"kill_mode", "managed_oom_mode", "exec_io_class", "exec_cpu_sched_policy", "numa_policy", "ip_tos", "personality"}

# Words that a parser takes in addition to its table; those that end with `:` or `/` are the begin of a value.
ADDED = {
    "exec_input": ["fd:", "file:/"],
    "exec_output": ["syslog", "syslog+console", "fd:", "file:/", "append:/", "truncate:/"],
}

# Files of daemons and of networks, by the end of their names, and the table in the source that has their settings.
DAEMONS = {
    "system.conf": "core/main.c",
    "user.conf": "core/main.c",
    "coredump.conf": "coredump/coredump.c",
    "journal-remote.conf": "journal-remote/journal-remote-main.c",
    "journal-upload.conf": "journal-remote/journal-upload.c",
    "journald.conf": "journal/journald-gperf.gperf",
    "logind.conf": "login/logind-gperf.gperf",
    "networkd.conf": "network/networkd-gperf.gperf",
    "oomd.conf": "oom/oomd.c",
    "pstore.conf": "pstore/pstore.c",
    "resolved.conf": "resolve/resolved-gperf.gperf",
    "sleep.conf": "shared/sleep-config.c",
    "timesyncd.conf": "timesync/timesyncd-gperf.gperf",
    ".link": "udev/net/link-config-gperf.gperf",
    ".netdev": "network/netdev/netdev-gperf.gperf",
    ".network": "network/networkd-network-gperf.gperf",
}

# Kinds of the parsers of these files alone. Those of other parsers are not judged, unless units have them too.
DAEMON_KINDS = {
    "iec_uint64": "bytes",
    "iec_uint64_infinity": "size",
    "tmpfs_size": "size",
    "permyriad": "percent",
    "duration": "duration",
    "uint8": "integer 0 255",
    "uint16": "integer 0 65535",
    "uint32": "integer 0 4294967295",
    "uint64": "integer 0 9223372036854775807",
    **{name: KINDS[name] for name in ("bool", "tristate", "sec", "sec_fix_0", "unsigned", "int", "rlimit", "tasks_max", "mode", "warn_compat")},
}


def tables(source: Path) -> dict[str, list[str]]:
    """The words of all string tables by their names, with `bool` and `number` for those that are words too."""
    found: dict[str, list[str]] = {}
    booleans: set[str] = set()
    numbers: set[str] = set()
    for path in sorted((source / "src").rglob("*.c")):
        text = path.read_text(errors="replace")
        for name, body in re.findall(r"const char ?\* ?const (\w+)_table\[[^]]*\] = \{(.*?)\};", text, re.S):
            found.setdefault(name, re.findall(r'=\s*"([^"]*)"', body))
        numbers |= set(re.findall(r"_WITH_FALLBACK\((\w+),", text))
        booleans |= set(re.findall(r"_WITH_BOOLEAN\((\w+),", text))
    for name in booleans & found.keys():
        found[name] = ["bool", *(word for word in found[name] if word not in ("yes", "no"))]
    for name in numbers & found.keys():
        found[name].append("number")
    return found


def parsers(source: Path) -> dict[str, str]:
    """The tables of the parsers of one word."""
    text = (source / "src/core/load-fragment.c").read_text()
    return dict(re.findall(r"DEFINE_CONFIG_PARSE_ENUM\w*\(config_parse_(\w+),\s*(\w+),", text))


def expanded(template: str) -> str:
    """The template with its macros and all features, without their alternatives."""
    template = re.sub(r"\{%-? else -?%\}.*?(?=\{%-? endif)", "", template, flags=re.S)
    macros = dict(re.findall(r"\{%-? macro (\w+)\(type\) -?%\}(.*?)\{%-? endmacro -?%\}", template, re.S))
    rest = re.sub(r"\{%-? macro .*?endmacro -?%\}", "", template, flags=re.S)
    return re.sub(r"\{\{-? *(\w+)\('(\w+)'\) *-?\}\}", lambda call: macros[call[1]].replace("{{type}}", call[2]), rest)


def daemons(source: Path) -> None:
    """Prints the settings of daemons and networks. systemd takes an empty value of most, so all may be empty."""
    words = tables(source)
    enums: dict[str, set[str]] = {}
    for path in sorted((source / "src").rglob("*.c")):
        for name, table in re.findall(r"DEFINE_CONFIG_PARSE_ENUM\(config_parse_(\w+),\s*(\w+),", path.read_text(errors="replace")):
            enums.setdefault(name, set()).add(table)
    counts: dict[str, int] = {}
    for path in (source / "src").rglob("*.c"):
        for name in re.findall(r"const char ?\* ?const (\w+)_table\[", path.read_text(errors="replace")):
            counts[name] = counts.get(name, 0) + 1
    print("# Settings of systemd's daemons in systemd 257, printed by tools/unit_settings.py.")
    for name, place in DAEMONS.items():
        text = (source / "src" / place).read_text()
        pattern = r'\{ "(\w+)",\s*"(\w+)",\s*(?:/\*.*?\*/)?\s*(?:config_parse_)?(\w+),' if place.endswith(".c") else r"^([\w-]+)\.(\w+),\s*(?:config_parse_)?(\w+),"
        found: dict[str, dict[str, str]] = {}
        for section, key, parser in re.findall(pattern, text, re.M):
            kind = KEYS.get(key.removeprefix("Default")) if parser == "rlimit" else None
            kind = kind or DAEMON_KINDS.get(parser)
            tables_of = enums.get(parser, set())
            if kind is None and len(tables_of) == 1 and counts.get(table := next(iter(tables_of))) == 1 and table in words:
                kind = " ".join(["words", *words[table]])
            if kind and kind != "ignored" and not kind.split(" ")[0].endswith("?"):
                first, *rest = kind.split(" ")
                kind = " ".join([f"{first}?", *rest])
            found.setdefault(section, {}).setdefault(key, kind or "any")
        print(f"{{{name}}}")
        for section, keys in found.items():
            print(f"[{section}]")
            for key, kind in keys.items():
                print(key, kind)


def main() -> None:
    if sys.argv[1] == "--daemons":
        daemons(Path(sys.argv[2]))
        return
    source = Path(sys.argv[1])
    words, parser_tables = tables(source), parsers(source)
    text = expanded((source / "src/core/load-fragment-gperf.gperf.in").read_text())
    print("# Settings of units in systemd 257, printed by tools/unit_settings.py.")
    last = ""
    for section, key, parser in re.findall(r"^(\w+)\.(\w+),\s*(?:config_parse_)?(\w+),", text, re.M):
        if section != last:
            print(f"[{section}]")
            last = section
        kind = KEYS.get(key, KINDS.get(parser))
        if kind is None:
            table = words.get(NAMES.get(parser, parser_tables.get(parser, parser)))
            name = "words?" if parser in OPTIONAL else "words"
            kind = " ".join([name, *table, *ADDED.get(parser, [])]) if table else "any"
        print(key, re.sub(r"\{(\w+)\}", lambda table: " ".join(words[table[1]]), kind))


if __name__ == "__main__":
    main()
