//! Packages that are configured on the first boot: adds a unit that runs `dpkg --configure --pending`.

use super::MergeError;
use super::place::Target;

const UNIT: &str = "vmbake-configure-packages.service";

/// While this file exists, there is something to configure.
const PENDING: &str = "/var/lib/vmbake/configure-packages";

/// What starts dpkg. Whatever else installs packages on a first boot waits for it, as there is one lock for all.
const TEXT: &str = "\
[Unit]
Description=Configure the packages deferred to the first boot
ConditionPathExists=/var/lib/vmbake/configure-packages
Before=apt-daily.service apt-daily-upgrade.service unattended-upgrades.service cloud-config.service

[Service]
Type=oneshot
RemainAfterExit=yes
Environment=DEBIAN_FRONTEND=noninteractive
ExecStart=/usr/bin/dpkg --configure --pending
ExecStartPost=/usr/bin/rm -f /var/lib/vmbake/configure-packages

[Install]
WantedBy=multi-user.target
";

/// Brings the unit, enabled, and what makes it run.
pub(super) fn apply(target: &mut Target) -> Result<(), MergeError> {
    let (file, wants) = (format!("/usr/lib/systemd/system/{UNIT}"), "/etc/systemd/system/multi-user.target.wants");
    let meta = target.meta(0o644);
    target.file(&file, meta, TEXT.as_bytes().to_vec())?;
    target.symlink(&format!("{wants}/{UNIT}"), &file)?;
    target.empty(PENDING)
}
