#!/usr/bin/env python3
"""Prints the settings of units, or of systemd's daemons, with the kinds of their values, from the source of systemd.

usage: tools/unit_settings.py SYSTEMD > src/layer/src/check/syntax/units/settings.txt
       tools/unit_settings.py --daemons SYSTEMD > src/layer/src/check/syntax/units/daemons.txt

SYSTEMD is the unpacked source package of systemd in Debian 13.
"""

import re
import sys
from pathlib import Path

# Modes of links, whose table is made from a header of Linux when systemd is built.
LINK_MODES = (
    "100000basecr-full 100000basecr2-full 100000basecr4-full 100000basedr-full 100000basedr2-full 100000basekr-full 100000basekr2-full "
    "100000basekr4-full 100000baselr-er-fr-full 100000baselr2-er2-fr2-full 100000baselr4-er4-full 100000basesr-full 100000basesr2-full "
    "100000basesr4-full 10000basecr-full 10000baseer-full 10000basekr-full 10000basekx4-full 10000baselr-full 10000baselrm-full "
    "10000baser-fec 10000basesr-full 10000baset-full 1000basekx-full 1000baset-full 1000baset-half 1000baset1-full 1000basex-full "
    "100basefx-full 100basefx-half 100baset-full 100baset-half 100baset1-full 10baset-full 10baset-half 10baset1brr-full 10baset1l-full "
    "10baset1s-full 10baset1s-half 10baset1s-p2mp-half 200000basecr-full 200000basecr2-full 200000basecr4-full 200000basedr-2-full "
    "200000basedr-full 200000basedr2-full 200000basedr4-full 200000basekr-full 200000basekr2-full 200000basekr4-full "
    "200000baselr2-er2-fr2-full 200000baselr4-er4-fr4-full 200000basesr-full 200000basesr2-full 200000basesr4-full 200000basevr-full "
    "20000basekr2-full 20000basemld2-full 25000basecr-full 25000basekr-full 25000basesr-full 2500baset-full 2500basex-full "
    "400000basecr2-full 400000basecr4-full 400000basecr8-full 400000basedr2-2-full 400000basedr2-full 400000basedr4-full "
    "400000basedr8-full 400000basekr2-full 400000basekr4-full 400000basekr8-full 400000baselr4-er4-fr4-full 400000baselr8-er8-fr8-full "
    "400000basesr2-full 400000basesr4-full 400000basesr8-full 400000basevr2-full 40000basecr4-full 40000basekr4-full 40000baselr4-full "
    "40000basesr4-full 50000basecr-full 50000basecr2-full 50000basedr-full 50000basekr-full 50000basekr2-full 50000baselr-er-fr-full "
    "50000basesr-full 50000basesr2-full 5000baset-full 56000basecr4-full 56000basekr4-full 56000baselr4-full 56000basesr4-full "
    "800000basecr4-full 800000basecr8-full 800000basedr4-2-full 800000basedr4-full 800000basedr8-2-full 800000basedr8-full "
    "800000basekr4-full 800000basekr8-full 800000basesr4-full 800000basesr8-full 800000basevr4-full 800000basevr8-full asym-pause aui "
    "autonegotiation backplane bnc fec-baser fec-llrs fec-none fec-rs fibre mii pause tp"
)

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
    "nsec": "nanoseconds",
    "personality": "words? x86 x86-64 arm arm64",
    "timer": "time?",
    "unit_path_printf": "path?",
    "path_spec": "path?",
    "unit_condition_path": "condition?",
    "unit_env_file": "file?",
    "working_directory": "directory?",
    "namespace_path_strv": "paths?",
    "temporary_filesystems": "mounts?",
    "unit_mounts_for": "links?",
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
    "socket_protocol": "caseless udplite sctp mptcp",
    "exec_mount_propagation_flag": "words? shared slave private",
    "restrict_namespaces": "list? bool cgroup ipc net mnt pid time user uts",
    "capability_set": "capabilities?",
    "syscall_filter": "syscalls?",
    "syscall_log": "syscalls? plain",
    "private_pids": "words bool",
    "exec_cpu_sched_policy": "words? other batch idle fifo rr ..3 5 7",
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
    "exec_cpu_sched_prio": "integer 0 99",
    "rlimit": "limit",
    "memory_limit": "memory?",
    "iec_size": "amount",
    "cpu_quota": "quota?",
    "unit_deps": "units?",
    "trigger_unit": "unit",
    "unit_slice": "unit slice",
    "socket_service": "started service",
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
    "bpf_foreign_program": "program? {bpf_cgroup_attach_type}",
    "cgroup_nft_set": "sets? cgroup user group",
    "socket_bindtodevice": "interface?",
    "socket_timestamping": "words bool off us usec µs μs ns nsec",
    "unit_path_strv_printf": "links?",
    "fdname": "label?",
    "reboot_parameter": "parameter? 255",
    "root_image_options": "options? {partition_designator}",
    "image_policy": "policy? {partition_designator}",
    "log_filter_patterns": "pattern?",
    "exec_secure_bits": "each? keep-caps keep-caps-locked no-setuid-fixup no-setuid-fixup-locked noroot noroot-locked",
    "exec_selinux_context": "text?",
    "exec_apparmor_profile": "text?",
    "exec_smack_process_label": "text?",
    "cpu_shares": "integer? 2 262144",
    "blockio_weight": "integer? 10 1000",
    "blockio_device_weight": "weighted? 10 1000",
    "blockio_bandwidth": "rated?",
    "io_device_weight": "weighted? 1 10000",
    "string": "any",
    "mount_node": "text?",
    "exec": "commands?",
    "NULL": "install",
    "warn_compat": "ignored",
    "obsolete_unit_deps": "ignored",
}

# Keys that only units of these types support.
SUPPORTED = {
    **dict.fromkeys(("Delegate", "DelegateSubgroup"), {"Service", "Scope"}),
    **dict.fromkeys(
        ("ManagedOOMSwap", "ManagedOOMMemoryPressure", "ManagedOOMMemoryPressureLimit", "ManagedOOMMemoryPressureDurationSec"),
        {"Service", "Scope", "Slice"},
    ),
}

# Keys whose parser reads several kinds.
KEYS = {
    "ListenSpecial": "path?",
    "ListenUSBFunction": "node?",
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
    "ListenFIFO": "node?",
    "ListenMessageQueue": "node?",
    "ListenSequentialPacket": "address? unix",
    "ConfigurationDirectory": "names? plain",
    "OnCalendar": "calendar?",
}

# Parsers of words whose table has another name.
NAMES = {"log_facility": "log_facility_unshifted", "exec_io_class": "ioprio_class", "exec_cpu_sched_policy": "sched_policy"}

# Parsers of words that take an empty value.
OPTIONAL = {"kill_mode", "managed_oom_mode", "exec_io_class", "exec_cpu_sched_policy", "numa_policy", "ip_tos"}

# Largest numbers in place of words, as the source writes them.
MAXIMA = {"LOG_DEBUG": 7, "LOG_FAC(~0)": 127, "IOPRIO_N_CLASSES": 3, "UINT8_MAX": 255, "255": 255, "0xff": 255, "INT_MAX": 2147483647}

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

# Kinds of the parsers of these files alone.
U32 = "4294967295"
DAEMON_KINDS = {
    **dict.fromkeys(("bool", "color", "location", "time", "crash_reboot", "prefix_boolean", "dhcp_send_hostname"), "words bool"),
    **dict.fromkeys(
        (
            "tristate",
            "required_for_online",
            "sr_iov_boolean",
            "uint32_flag",
            "uint32_invert_flag",
            "route_metric_boolean",
            "can_control_mode",
            "cake_tristate",
            "controlled_delay_bool",
            "fair_queueing_bool",
            "fair_queueing_controlled_delay_bool",
            "generic_random_early_detection_bool",
            "macsec_sa_activate",
            "macsec_use_for_encoding",
        ),
        "words? bool",
    ),
    # Words.
    "log_level": "words {log_level}",
    "level2": "levels {log_level}",
    "target": "words {log_target}",
    "show_status": "words bool auto error",
    "protect_system_pid1": "words? auto bool",
    "output_restricted": "words inherit null tty kmsg kmsg+console journal journal+console syslog syslog+console",
    "emergency_action": "words {emergency_action}",
    "handle_action_sleep": "each? suspend hibernate hybrid-sleep suspend-then-hibernate",
    "sleep_mode": "any",
    "numa_policy": "words? {mpol}",
    "syscall_archs": KINDS["syscall_archs"],
    "multicast_router": "words negative query permanent temporary",
    "mdi": "words? mdi straight mdi-x mdix crossover auto",
    "wol": "each? off phy unicast multicast broadcast arp magic secureon",
    "advertise": f"each? {LINK_MODES}",
    "sr_iov_num_vfs": "integer? 0 2147483647",
    "sr_iov_vlan_proto": "words? 802.1Q 802.1ad",
    "sr_iov_link_state": "words? auto bool",
    "mac_address_policy": "words {mac_address_policy}",
    "vlanprotocol": "words? 802.1ad 802.1AD 802.1q 802.1Q",
    "dhcp": "words bool ipv4 ipv6 both none v4 v6",
    "lldp_multicast_mode": "words? bool nearest-bridge non-tpmr-bridge customer-bridge",
    "ipv6_link_local_address_gen_mode": "words {ipv6_link_local_address_gen_mode}",
    "link_local_address_family": "words bool ipv4 ipv6",
    "required_family_for_online": "words ipv4 ipv6 both any",
    "ip_masquerade": "words? bool ipv4 ipv6 both",
    "keep_configuration": "words? {keep_configuration} dhcp dhcp-on-stop",
    "router_prefix_delegation": "words bool static dhcpv6 yes",
    "ipv4ll": "words bool fallback",
    "address_dad": "words? bool ipv4 ipv6 both none",
    "address_lifetime": "words? 0 infinity forever",
    "dhcp_fallback_lease_lifetime": "words? infinity forever",
    "routing_policy_rule_family": "words? ipv4 ipv6 both",
    "routing_policy_rule_action": "words {fr_act_type}",
    "nexthop_family": "words? ipv4 ipv6",
    "route_preference": "words low medium high",
    "route_type": "words {route_type}",
    "address_scope": "words? {route_scope}",
    "route_scope": "words {route_scope}",
    "route_protocol": "words {route_protocol}",
    "dhcp_ip_service_type": "words? none CS4 CS6",
    "dhcp_pd_prefix_route_type": "words? none unreachable prohibit blackhole throw",
    "router_preference": "words high medium normal default low",
    "fdb_ntf_flags": "words {ntf_flags}",
    "cake_compensation_mode": "words? {cake_compensation_mode}",
    "cake_flow_isolation_mode": "words? {cake_flow_isolation_mode}",
    "cake_priority_queueing_preset": "words? {cake_priority_queueing_preset}",
    "cake_ack_filter": "words? {cake_ack_filter}",
    "erspan_direction": "words? ingress egress",
    "l2tp_session_l2spec": "words {l2tp_l2spec_type}",
    "netdev_kind": "words {netdev_kind}",
    "wlan_iftype": "words? {nl80211_iftype}",
    # Numbers.
    "n_autovts": "integer 0 15",
    "oom_score_adjust": "integer? -1000 1000",
    "crash_chvt": "integer|bool -2147483648 2147483647",
    "int": "integer -2147483648 2147483647",
    **dict.fromkeys(("vxlan_ttl", "geneve_ttl"), "integer|inherit 0 255"),
    "uint8": "integer 0 255",
    **dict.fromkeys(("uint16", "wireguard_keepalive"), "integer 0 65535"),
    **dict.fromkeys(("uint32", "unsigned", "iaid", "dhcp_route_metric", "route_priority", "prefix_metric"), f"integer 0 {U32}"),
    "wireguard_keepalive": "integer|off 0 65535",
    "ndisc_route_metric": "metrics",
    "uint64": "integer 0 9223372036854775807",
    "link_group": "integer? 0 2147483647",
    "sr_iov_uint32": f"integer? 0 {U32}",
    "rx_tx_queues": "integer? 1 4096",
    "txqueuelen": "integer? 0 4294967294",
    "ring_buffer_or_channel": f"integer?|max 1 {U32}",
    "coalesce_u32": f"integer? 0 {U32}",
    **dict.fromkeys(
        (
            "controlled_delay_u32",
            "pfifo_size",
            "fair_queueing_u32",
            "fair_queueing_controlled_delay_u32",
            "heavy_hitter_filter_packet_limit",
            "hierarchy_token_bucket_u32",
            "hierarchy_token_bucket_class_u32",
            "network_emulator_packet_limit",
            "pie_packet_limit",
            "stochastic_fair_blue_u32",
            "bridge_fdb_max_learned",
            "wireguard_route_priority",
            "wireguard_peer_route_priority",
            "routing_policy_rule_priority",
        ),
        f"integer? 0 {U32}",
    ),
    **dict.fromkeys(("cake_fwmark", "fq_pie_packet_limit", "route_nexthop"), f"integer? 1 {U32}"),
    **dict.fromkeys(("routing_policy_rule_goto", "l2tp_tunnel_id", "l2tp_session_id"), f"integer 1 {U32}"),
    "macsec_packet_number": f"integer 0 {U32}",
    "ipv6_address_label": "integer? 0 4294967294",
    "route_metric_hop_limit": "integer? 1 255",
    "tcp_window": "integer 1 1023",
    "dhcp_max_attempts": "natural?|infinity 1",
    "dhcp_socket_priority": "integer? -2147483648 2147483647",
    "bridge_port_priority": "integer 0 63",
    **dict.fromkeys(("fdb_vlan_id", "mdb_vlan_id", "vlanid"), "integer 0 4094"),
    "default_port_vlanid": "integer|none 0 4094",
    "bridge_vlan_id": "integer?|negative 0 4094",
    **dict.fromkeys(("fdb_vxlan_vni", "geneve_vni"), "integer 0 16777215"),
    "can_termination": "integer?|bool 0 65535",
    "cake_overhead": "integer? -64 256",
    "cake_mpu": "integer? 1 256",
    **dict.fromkeys(("ets_u8", "generic_random_early_detection_u32"), "integer? 0 16"),
    "quick_fair_queueing_weight": "integer? 1 1023",
    "trivial_link_equalizer_id": "integer? 0 2147483647",
    "macvlan_broadcast_queue_size": "integer? 0 4294967294",
    "macvlan_broadcast_queue_threshold": "integer?|no 0 2147483647",
    "ipv6_flowlabel": "integer|inherit 0 1048575",
    **dict.fromkeys(("flow_label", "geneve_flow_label"), "integer 0 1048575"),
    "encap_limit": "integer|none 0 255",
    "ip_port": "integer? 1 65535",
    **dict.fromkeys(("macsec_port", "ad_actor_sys_prio"), "integer 1 65535"),
    "wireguard_listen_port": "integer?|auto 1 65535",
    "ipoib_pkey": "integer? 1 65535",
    "ad_user_port_key": "integer 0 1023",
    "erspan_version": "integer? 0 2",
    "erspan_index": "integer? 0 1048575",
    "erspan_hwid": "integer? 0 63",
    "ets_prio": "integers? 0 255",
    "dhcp_request_options": "integers? 1 254",
    "nexthop_group": "hops?",
    "bridge_vlan_id_range": "range? 0 4094",
    "routing_policy_rule_port_range": "range 1 65535",
    "routing_policy_rule_uid_range": "users",
    "port_range": "range 1 65535",
    "routing_policy_rule_fwmark": "mark",
    "tunnel_key": f"ip|0..{U32} 4",
    "vlan_qos_maps": "map?",
    "qdisc_handle": "hexadecimal? 4",
    "dhcp_pd_subnet_id": "hexadecimal?|auto 16",
    "hierarchy_token_bucket_default_class": "hexadecimal? 8",
    "qdisc_parent": "class|root|clsact|ingress",
    "tclass_parent": "class|root",
    "tclass_classid": "class?",
    # Sizes and shares.
    **dict.fromkeys(("iec_uint64", "iec_size"), "amount"),
    "si_uint64": "rate",
    "badadv_bandwidth": "rate 0 429496729599999",
    "iec_uint64_infinity": "amount|infinity",
    "tmpfs_size": "memory finite",
    "line_max": "amount?",
    "compress": "amount?|bool",
    "permyriad": "percentage",
    "permille": "permille",
    "network_emulator_rate": "percentage?",
    "can_bitrate": f"rate 1 {U32}",
    **dict.fromkeys(("bfifo_size", "drr_size", "fair_queueing_size", "hierarchy_token_bucket_class_size"), f"amount? 0 {U32}"),
    "fair_queueing_controlled_delay_size": "amount? 0 4294967294",
    "route_metric_advmss": f"amount? 1 {U32}",
    "quick_fair_queueing_max_packet": "amount? 512 65536",
    "ets_quanta": f"amounts? 1 {U32}",
    "fair_queueing_max_rate": "rate? 0 34359738367",
    **dict.fromkeys(("cake_bandwidth", "hierarchy_token_bucket_class_rate", "token_bucket_filter_rate"), "rate?"),
    "token_bucket_filter_size": "amount?",
    # Times; limits are microseconds.
    **dict.fromkeys(("sec", "sec_fix_0"), "time"),
    "nsec": "nanoseconds",
    "default_timeout_abort": "time?",
    "watchdog_sec": "time?|off|default",
    "duration": "duration?|0",
    "ignore_carrier_loss": "time?|bool",
    "coalesce_sec": f"span? 0 {U32}",
    **dict.fromkeys(
        ("controlled_delay_usec", "fair_queueing_controlled_delay_usec", "network_emulator_delay", "stochastic_fairness_queueing_perturb_period", "token_bucket_filter_latency"),
        "time?",
    ),
    "cake_rtt": f"span? 1 {U32}",
    "fair_queueing_usec": f"span? 0 {U32}",
    "can_time_quanta": f"nanoseconds 1 {U32}",
    "can_restart_usec": "span|infinity 0 4294967295000",
    "route_metric_tcp_rto": "span? 1 4294967295000",
    "router_lifetime": "span? 0 9000000000",
    "router_uint32_msec_usec": "span?|infinity 0 4294967295000",
    "router_home_agent_lifetime": "span? 1 65535000000",
    **dict.fromkeys(("prefix_lifetime", "route_prefix_lifetime"), "span|infinity 0 4294967294999999"),
    "pref64_prefix_lifetime": "span 0 65528000000",
    "dhcp_server_ipv6_only_preferred": "span?|infinity 300000000",
    # Addresses and names.
    "in_addr_non_null": "ip? 4 6 some",
    "ipv4ll_address": "ip? 4 local",
    "address": "prefix? 4 6",
    "gateway": "ip?|_dhcp4|_ipv6ra 4 6",
    "dns": "servers?",
    "dns_servers": "servers?",
    "dns_stub_listener_extra": "listener?",
    "ipv6_proxy_ndp_address": "ip? 6 some",
    "broadcast": "ip?|bool 4 some",
    "in_addr_data": "ip? 4 6",
    "in_addr_prefix": "prefix? 4 6",
    "ipv6_address_label_prefix": "prefix? 6",
    "route_destination": "prefix 4 6",
    "preferred_src": "ip 4 6",
    "multipath_route": "hop?",
    "dhcp6_pd_prefix_hint": "prefix 6 long",
    "dhcp_server_address": "prefix? 4 public",
    "dhcp_server_emit": "ips? 4 some _server_address",
    "dhcp_static_lease_address": "ip? 4 some",
    "fdb_destination": "ip 4 6",
    "mdb_group_address": "mac_or_ip 4 6",
    "radv_dns": "ips? 6 some _link_local",
    **dict.fromkeys(("prefix", "route_prefix"), "prefix 6"),
    "6rd_prefix": "prefix 6 long",
    "pref64_prefix": "prefix 6 length translated",
    **dict.fromkeys(("address_generation_type", "prefix_token"), "token?"),
    "tunnel_local_address": "ip?|any|ipv4_link_local|ipv6_link_local|dhcp4|dhcp6|slaac 4 6",
    "l2tp_tunnel_local_address": "hop?|auto|static|dynamic some",
    "tunnel_remote_address": "ip?|any 4 6",
    "l2tp_tunnel_remote_address": "ip? 4 6 some",
    "fou_tunnel_address": "ip 4 6",
    "vxlan_address": "ip?|ipv4_link_local|ipv6_link_local|dhcp4|dhcp6|slaac 4 6 single",
    "geneve_address": "ip 4 6 single",
    "arp_ip_target_address": "ips? 4",
    "wireguard_allowed_ips": "masks? 4 6",
    "wireguard_endpoint": "endpoint",
    **dict.fromkeys(("hw_addr",), "mac? any"),
    "hw_addrs": "macs? any",
    "ether_addrs": "macs?",
    "netdev_hw_addr": "mac?|none",
    **dict.fromkeys(("fdb_hwaddr", "macsec_hw_address"), "mac"),
    "ad_actor_system": "mac single",
    "sr_iov_mac": "mac?",
    "dhcp_static_lease_hwaddr": "mac? single",
    **dict.fromkeys(("ifname",), "ifname?"),
    **dict.fromkeys(("stacked_netdev", "l2tp_session_name"), "ifname"),
    "ifnames": "ifnames?",
    "uplink": "link?|:none|:auto",
    "fdb_interface": "link?",
    "match_ifnames": "patterns?",
    "servers": "hosts?",
    "ntp": "hosts?",
    **dict.fromkeys(("domains", "search_domains"), "domains?"),
    "dnssec_negative_trust_anchors": "domains? any",
    "radv_search_domains": "suffixes?",
    "hostname": "hostname?",
    "dns_name": "host?",
    "timezone": "zone?",
    "mud_url": "url? http",
    # Tables of routes, and protocols, may have names of the machine.
    **dict.fromkeys(("route_table", "routing_policy_rule_table", "dhcp_or_ra_route_table"), "table"),
    **dict.fromkeys(("wireguard_route_table", "wireguard_peer_route_table"), "table?|0|no|n|false|f|off"),
    "ip_protocol": "protocol?",
    "route_table_names": "tables?",
    # Data.
    **dict.fromkeys(("network_duid_type", "duid_type", "manager_duid_type"), "duid"),
    **dict.fromkeys(("network_duid_rawdata", "duid_rawdata", "manager_duid_rawdata"), "raw?"),
    "dhcp_send_option": "option?",
    "nft_set": "sets? address prefix ifindex",
    **dict.fromkeys(("wireguard_private_key", "wireguard_peer_key"), "key?"),
    "macsec_key": "bytes_of 16 16",
    "macsec_key_id": "bytes_of? 0 16",
    "match_property": "properties?",
    "udev_property": "properties?",
    "udev_property_name": "names_of_variables?",
    "rps_cpu_mask": "processors?|disable|all",
    "environ": "variables?",
    **dict.fromkeys(("cpu_affinity2",), "processors?"),
    "numa_mask": "nodes?",
    "capability_set": "capabilities?",
    "rlimit": "limit",
    "tasks_max": "tasks?",
    "mode": "mode",
    "calendar": "calendar?",
    "path": "path?",
    **dict.fromkeys(("path_or_ignore",), "path?|-"),
    **dict.fromkeys(("macsec_key_file", "wireguard_private_key_file", "wireguard_peer_key_file"), "node?"),
    "forward_to_socket": "address?",
    "ifalias": "ascii? 255",
    **dict.fromkeys(("address_label", "dhcp_label"), "ascii? 15"),
    "dhcp_server_relay_agent_suboption": "circuit?",
    **dict.fromkeys(("strv", "match_strv"), "strings?"),
    "dhcp_user_or_vendor_class": "strings? escaped",
    # Any text, and conditions that are false for an unknown one.
    **dict.fromkeys(
        (
            "net_condition",
            "wiphy",
            "wol_password",
        ),
        "any",
    ),
    **dict.fromkeys(("warn_compat", "compat_user_tasks_max"), "ignored"),
    "ip_forward_deprecated": "ignored",
}

# Keys whose parser reads several kinds.
DAEMON_KEYS = {
    "SR-IOV.VLANId": "integer? 1 4095",
    "MACsecTransmitAssociation.PacketNumber": f"integer 1 {U32}",
    "HierarchyTokenBucketClass.OverheadBytes": "amount? 0 65535",
    "VXLAN.Group": "ip? 4 6 multicast",
    "VXLAN.Remote": "ip? 4 6 single",
    "FooOverUDP.Protocol": "protocol? any",
    **dict.fromkeys(("DHCPPrefixDelegation.UplinkInterface", "DHCPv6PrefixDelegation.UplinkInterface"), "link?|:self|:auto"),
    "Network.Gateway": "ip? 4 6",
    "Network.IPv6SendRA": "words bool",
    "DHCPv6.SendOption": "option? 65535",
    "DHCPv6.SendVendorOption": "option? vendor",
    "VirtualFunction": "integer? 0 2147483646",
    "SuppressPrefixLength": "integer? 0 128",
    "SuppressInterfaceGroup": "integer? 0 2147483647",
    "IPv6StableSecretAddress": "ip? 6 some",
    **dict.fromkeys(("BootServerAddress", "RelayTarget", "Router", "RequestAddress"), "ip? 4 some"),
}

# Kinds of parsers that depend on their argument: a family of addresses, or what a text may have.
FAMILIES = {
    ("mtu", "AF_UNSPEC"): f"amount 0 {U32}",
    ("mtu", "0"): f"amount 0 {U32}",
    ("mtu", "AF_INET"): f"amount 68 {U32}",
    ("mtu", "AF_INET6"): f"amount 1280 {U32}",
    ("in_addr_prefixes", "AF_INET"): "networks? 4",
    ("in_addr_prefixes", "AF_INET6"): "networks? 6",
    ("string", "0"): "any",
    ("string", "CONFIG_PARSE_STRING_ASCII"): "ascii? 4096",
    ("string", "CONFIG_PARSE_STRING_SAFE"): "safe?",
    ("string", "CONFIG_PARSE_STRING_SAFE_AND_ASCII"): "safe? ascii",
}

# Sections that the table has, but for which systemd does not look there.
MISSING = {(".network", "IPoIB")}


def tables(source: Path) -> dict[str, list[str]]:
    """The words of all string tables by their names, with `bool` for booleans and `..MAX` for numbers that are words too."""
    found: dict[str, list[str]] = {}
    booleans: set[str] = set()
    numbers: dict[str, int] = {}
    for path in sorted((source / "src").rglob("*.c")):
        text = path.read_text(errors="replace")
        for name, body in re.findall(r"const char ?\* ?const (\w+)_table\[[^]]*\] = \{(.*?)\};", text, re.S):
            found.setdefault(name, re.findall(r'=\s*"([^"]*)"', body))
        numbers |= {name: MAXIMA[most] for name, most in re.findall(r"_WITH_FALLBACK\((\w+), int, (.*)\);", text) if most in MAXIMA}
        booleans |= set(re.findall(r"_WITH_BOOLEAN\((\w+),", text))
    for name in booleans & found.keys():
        found[name] = ["bool", *(word for word in found[name] if word not in ("yes", "no"))]
    for name in numbers.keys() & found.keys():
        found[name].append(f"..{numbers[name]}")
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


def sections(source: Path) -> dict[str, tuple[str, str]]:
    """The parsers of the settings of sections that networkd reads together, by their names in the source."""
    found = {}
    for path in sorted((source / "src/network").rglob("*.c")):
        pattern = r"\[(\w+)\]\s*=\s*\{\s*\.parser = config_parse_(\w+),\s*\.ltype = (\w+)"
        found.update({name: (parser, kind) for name, parser, kind in re.findall(pattern, path.read_text())})
    return found


def enums(source: Path) -> dict[str, tuple[str, bool]]:
    """The tables of the parsers of one word or of several, with their files, by the names of the parsers."""
    found = {}
    for path in sorted((source / "src").rglob("*.c")):
        pattern = r"DEFINE_CONFIG_PARSE_ENUM(V?)(\w*)\(\s*config_parse_(\w+),\s*(\w+),"
        for several, default, name, table in re.findall(pattern, path.read_text(errors="replace")):
            kind = "each?" if several else "words?" if default else "words"
            found[name] = f"{kind} {{{table}}}"
    return found


def daemons(source: Path) -> None:
    """Prints the settings of daemons and networks."""
    words, inner, parsers_of_words = tables(source), sections(source), enums(source)
    print("# Settings of systemd's daemons in systemd 257, printed by tools/unit_settings.py.")
    for name, place in DAEMONS.items():
        text = (source / "src" / place).read_text()
        pattern = (
            r'\{ "(\w+)",\s*"(\w+)",\s*(?:/\*.*?\*/)?\s*(?:config_parse_)?(\w+),\s*([^,]+),'
            if place.endswith(".c")
            else r"^([\w-]+)\.([\w-]+),\s*(?:config_parse_)?(\w+),\s*([^,]+),"
        )
        found: dict[str, dict[str, str]] = {}
        for section, key, parser, argument in re.findall(pattern, text, re.M):
            if (name, section) in MISSING:
                continue
            argument = argument.split("|")[-1].strip()
            is_metric = parser == "route_section" and inner.get(argument, ("",))[0] == "route_metric"
            while argument in inner and parser not in DAEMON_KINDS and (parser, argument) not in FAMILIES:
                parser, argument = inner[argument]
            kind = KEYS.get(key.removeprefix("Default")) if parser == "rlimit" else None
            kind = kind or DAEMON_KEYS.get(f"{section}.{key}") or DAEMON_KEYS.get(key) or FAMILIES.get((parser, argument)) or DAEMON_KINDS.get(parser) or parsers_of_words.get(parser)
            if kind and is_metric and not kind.split(" ")[0].split("|")[0].endswith("?"):
                kind = re.sub(r"^(\w+)", r"\1?", kind)
            if kind is None:
                sys.exit(f"{name} {section}.{key}: the parser {parser} has no kind")
            kind = re.sub(r"\{(\w+)\}", lambda table: " ".join(words[table[1]]), kind)
            found.setdefault(section, {}).setdefault(key, kind)
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
            if not table:
                sys.exit(f"{section}.{key}: the parser {parser} has no kind")
            kind = " ".join([name, *table, *ADDED.get(parser, [])])
        if section not in SUPPORTED.get(key, {section}):
            kind = "unsupported"
        print(key, re.sub(r"\{(\w+)\}", lambda table: " ".join(words[table[1]]), kind))


if __name__ == "__main__":
    main()
