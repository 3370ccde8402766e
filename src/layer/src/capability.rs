//! File capabilities (capabilities(7)): the text format of setcap(8) in, the value of the extended attribute out. Numbers are
//! little-endian.

/// The extended attribute.
pub const ATTRIBUTE: &[u8] = b"security.capability";

/// Version 2 of the attribute: a word with this revision and the effective bit, then permitted and inheritable bits, low words first.
const REVISION: u32 = 0x0200_0000;
const EFFECTIVE: u32 = 1;

/// The capabilities in the order of their numbers (linux/capability.h).
const NAMES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// The value for clauses such as `cap_net_raw,cap_net_admin+ep` or `cap_chown=p-e`; effective is one bit for all.
pub fn attribute(text: &str) -> Option<Vec<u8>> {
    let (mut permitted, mut inheritable, mut effective) = (0_u64, 0_u64, 0_u64);
    for clause in text.split_whitespace() {
        let (names, actions) = clause.split_at(clause.find(['+', '-', '='])?);
        let bits = names.split(',').try_fold(0_u64, |bits, name| {
            let name = name.strip_prefix("cap_")?;
            Some(bits | 1_u64 << NAMES.iter().position(|known| *known == name)?)
        })?;
        let mut raises = true;
        for (at, char) in actions.char_indices() {
            let sets = match char {
                '+' | '-' => {
                    raises = char == '+';
                    continue;
                }
                // It clears all three first.
                '=' if at == 0 => {
                    [&mut permitted, &mut inheritable, &mut effective].into_iter().for_each(|set| *set &= !bits);
                    continue;
                }
                'p' => &mut permitted,
                'i' => &mut inheritable,
                'e' => &mut effective,
                _ => return None,
            };
            *sets = if raises { *sets | bits } else { *sets & !bits };
        }
    }
    if effective != 0 && effective != permitted | inheritable {
        return None;
    }
    let magic = REVISION | if effective == 0 { 0 } else { EFFECTIVE };
    let [permitted, inheritable] = [permitted, inheritable].map(u64::to_le_bytes);
    let low = [permitted, inheritable].concat();
    let words = [low.get(..4)?, low.get(8..12)?, low.get(4..8)?, low.get(12..16)?].concat();
    Some([magic.to_le_bytes().to_vec(), words].concat())
}

#[cfg(test)]
mod tests {
    use super::attribute;

    /// The values that setcap of libcap 2.75 writes.
    #[test]
    fn attributes_are_those_of_setcap() {
        for (text, expected) in [
            ("cap_net_raw+ep", "0100000200200000000000000000000000000000"),
            ("cap_net_bind_service=+ep", "0100000200040000000000000000000000000000"),
            ("cap_net_raw,cap_net_admin=eip", "0100000200300000003000000000000000000000"),
            ("cap_net_bind_service=+ep cap_net_raw=+ep", "0100000200240000000000000000000000000000"),
            ("cap_net_raw-epi", "0000000200000000000000000000000000000000"),
            ("cap_net_raw,cap_chown=ep cap_chown-ep", "0100000200200000000000000000000000000000"),
            ("cap_net_raw=eip-i", "0100000200200000000000000000000000000000"),
            ("cap_chown=p", "0000000201000000000000000000000000000000"),
            ("cap_dac_override+ep cap_sys_admin+ep", "0100000202002000000000000000000000000000"),
        ] {
            let found: String = attribute(text).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, expected, "{text}");
        }
        for text in [
            "cap_foo+ep",
            "cap_net_raw+e=p",
            "net_raw+ep",
            "cap_net_raw",
            "cap_net_raw+x",
            "cap_setuid=ep cap_setgid+i",
        ] {
            assert_eq!(attribute(text), None, "{text}");
        }
    }
}
