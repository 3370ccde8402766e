//! Nothing remains after a machine ends.

use super::*;

#[test]
fn a_machine_that_is_killed_leaves_nothing() {
    if !have(&["sgdisk", "qemu-system-x86_64"]) {
        return;
    }
    let lab = Lab::new();
    let before = state(&lab.path("disk.raw"));
    for (signal, killed) in [(Signal::INT, false), (Signal::TERM, false), (Signal::KILL, true)] {
        let machine = lab.machine(&["disk.raw", "--disk", "kept"]);
        // The process that was started is qemu now.
        let program = fs::read_link(format!("/proc/{}/exe", machine.0.id())).unwrap();
        assert!(program.ends_with("qemu-system-x86_64"), "{}", program.display());
        assert_eq!(machine.end(signal).code().is_none(), killed);
        assert!(lab.nothing_left());
        assert_eq!(state(&lab.path("disk.raw")), before);
    }
}

#[test]
fn the_kernel_of_an_image_starts() {
    if !have(&["sgdisk", "qemu-system-x86_64"]) {
        return;
    }
    let Some(base) = base() else { return };
    let lab = Lab::new();
    let before = state(&base);
    let mut command = lab.command(&["--firmware", "direct", "--append", "earlyprintk=ttyS0 vmbake.test panic=-1"]);
    command.args(["--accel", "tcg", "--network", "isolated", "--size", "+1G"]).arg(&base).args(["--", "-no-reboot"]);
    let mut qemu = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut console = BufReader::new(qemu.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = console.find(|line| line.contains("Command line:"));
    let machine = Machine(qemu);
    let said = said.expect("the kernel says how it was started");
    assert!(said.contains("root=") && said.contains(" vmbake.test panic=-1"), "{said}");
    assert!(machine.end(Signal::INT).code().is_some());
    assert!(lab.nothing_left());
    assert_eq!(state(&base), before);
}
