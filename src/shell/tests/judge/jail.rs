//! The real shells in a chroot: with the programs of the machine that programs of the grammar call, and nothing else.
//!
//! One driver, a script of dash, runs one program after another, each in a new directory, with limits on time, memory and file sizes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::left::{Left, of_host};
use super::{ARGS, Dialect};

/// What programs of the grammar call.
const PROGRAMS: &str = "dash bash awk mawk basename cat chgrp chmod chown cksum cmp comm cp cut date diff dirname du echo egrep \
    env expr false fgrep find fold getopt grep head id install join ln ls md5sum mkdir mkfifo mktemp mv nice nl od paste printf pwd \
    readlink realpath rev rm rmdir sed seq sh sha256sum sleep sort split stat tac tail tee test [ timeout touch tr true truncate tsort \
    uname unexpand expand uniq unlink wc which xargs yes";

/// Accounts, the same as those of the interpreter's tree.
pub const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/bin/sh\n";
pub const GROUP: &str = "root:x:0:\nadm:x:4:www-data\nwww-data:x:33:\n";

/// How long one program may take, which its limit on processor time does not bound when it waits.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs programs that it reads from standard input as `SHELL SLOT`, and removes what the one before it left in the root directory.
const DRIVER: &str = r#"
ulimit -t 2; ulimit -v 2000000; ulimit -f 40000; ulimit -c 0
umask 022
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
while read -r shell slot; do
    for path in /* /.[!.]*; do
        case "$path" in
            /bin | /lib | /lib64 | /usr | /etc | /dev | /proc | /tmp | /w | /s | /o) ;;
            *) rm -rf "$path" ;;
        esac
    done
    (cd "/w/$slot/p/q/d" && unset OLDPWD PWD && export HOME="/w/$slot/h" && exec "$shell" "/s/$slot" ARGS) \
        </dev/null >"/o/$slot" 2>/dev/null
    echo "$?"
done
"#;

/// The chroot.
pub struct Jail {
    root: PathBuf,
    /// Whether programs run as the real root, and so may change owners.
    pub as_root: bool,
    /// Whether there is a /proc, which process substitutions of bash need.
    pub has_proc: bool,
    pub programs: BTreeSet<String>,
}

impl Jail {
    /// Makes the chroot in an empty directory; the error is the reason why that does not work here.
    pub fn new(root: &Path) -> Result<Self, String> {
        let as_root = output("id", &["-u"]).is_some_and(|id| id.trim() == "0");
        let mut jail = Self { root: root.to_owned(), as_root, has_proc: true, programs: BTreeSet::new() };
        jail.fill().map_err(|error| format!("the chroot of the shells: {error}"))?;
        for shell in ["dash", "bash"] {
            if !jail.programs.contains(shell) {
                return Err(format!("{shell} is missing"));
            }
        }
        if jail.works() {
            return Ok(jail);
        }
        jail.has_proc = false;
        if jail.works() { Ok(jail) } else { Err("neither root nor a user namespace can enter a chroot".to_owned()) }
    }

    fn works(&self) -> bool {
        let mut command = self.enter("exec /bin/bash -c 'true >/dev/null && echo well'");
        command.stderr(Stdio::null()).output().is_ok_and(|ended| ended.stdout == b"well\n")
    }

    fn fill(&mut self) -> io::Result<()> {
        for directory in ["usr/bin", "usr/lib", "usr/lib64", "etc", "dev", "proc", "tmp", "w", "s", "o"] {
            fs::create_dir_all(self.root.join(directory))?;
        }
        for link in ["bin", "lib", "lib64"] {
            symlink(format!("usr/{link}"), self.root.join(link))?;
        }
        symlink("/proc/self/fd", self.root.join("dev/fd"))?;
        fs::set_permissions(self.root.join("tmp"), Permissions::from_mode(0o1777))?;
        fs::write(self.root.join("etc/passwd"), PASSWD)?;
        fs::write(self.root.join("etc/group"), GROUP)?;
        for name in PROGRAMS.split_whitespace() {
            self.add(name)?;
        }
        let null = self.root.join("dev/null");
        let made = self.as_root
            && Command::new("mknod").args(["-m", "666"]).arg(&null).args(["c", "1", "3"]).status()?.success();
        if !made {
            fs::write(null, "")?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str) -> io::Result<()> {
        let places = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
        let Some(found) = places.iter().find_map(|place| fs::canonicalize(place).ok()) else { return Ok(()) };
        fs::copy(&found, self.root.join("usr/bin").join(name))?;
        self.programs.insert(name.to_owned());
        let libraries = output("ldd", &[&found.to_string_lossy()]).unwrap_or_default();
        for word in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            let copy = self.root.join(word.trim_start_matches('/'));
            if !copy.exists() {
                fs::create_dir_all(copy.parent().unwrap())?;
                fs::copy(word, copy)?;
            }
        }
        Ok(())
    }

    /// A command that runs a text by dash inside.
    fn enter(&self, text: &str) -> Command {
        // A test that runs in the background has ignored signals, which shells would list.
        const CHROOT: &str =
            "exec env -i --default-signal PATH=/usr/sbin:/sbin:/usr/bin:/bin chroot \"$0\" /bin/dash -c \"$1\"";
        let null = if self.as_root { "" } else { "mount --bind /dev/null \"$0/dev/null\" && " };
        let proc = if self.has_proc { "mount --rbind /proc \"$0/proc\" && " } else { "" };
        let mut command = Command::new(if self.has_proc || !self.as_root { "unshare" } else { "env" });
        if !self.as_root {
            command.args(["--user", "--map-root-user"]);
        }
        if self.has_proc || !self.as_root {
            command.arg("--mount");
        }
        command.args(["dash", "-c", &format!("{null}{proc}{CHROOT}")]).arg(&self.root).arg(text);
        command
    }

    pub fn worker(&self, letter: char) -> Worker<'_> {
        Worker { jail: self, letter, driver: None }
    }
}

struct Driver {
    child: Child,
    statuses: Receiver<String>,
}

impl Driver {
    fn write(&mut self, lines: &str) -> std::io::Result<()> {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(lines.as_bytes())?;
        input.flush()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// One of the drivers that share the chroot.
pub struct Worker<'j> {
    jail: &'j Jail,
    letter: char,
    driver: Option<Driver>,
}

impl Worker<'_> {
    /// The name of a place for one program of a batch.
    pub fn slot(&self, index: usize) -> String {
        format!("{}{index:03}", self.letter)
    }

    /// What those of the programs leave; one that does not end has no entry.
    pub fn run(&mut self, dialect: Dialect, programs: &[String], wanted: &[usize]) -> BTreeMap<usize, Left> {
        for index in wanted {
            let slot = self.slot(*index);
            fs::write(self.jail.root.join("s").join(&slot), &programs[*index]).unwrap();
            let place = self.jail.root.join("w").join(&slot);
            for directory in ["p/q/d", "h"] {
                fs::create_dir_all(place.join(directory)).unwrap();
            }
        }
        self.send(dialect, wanted);
        let mut found = BTreeMap::new();
        for (count, index) in wanted.iter().enumerate() {
            let waiting = self.driver.as_ref().map(|driver| driver.statuses.recv_timeout(PATIENCE));
            let status = if let Some(Ok(line)) = waiting {
                line.trim().parse::<u8>().ok()
            } else {
                self.driver = None;
                self.send(dialect, &wanted[count + 1..]);
                None
            };
            found.extend(self.take(*index, status).map(|left| (*index, left)));
        }
        found
    }

    fn take(&self, index: usize, status: Option<u8>) -> Option<Left> {
        let slot = self.slot(index);
        let place = self.jail.root.join("w").join(&slot);
        let tree = of_host(&place, self.jail.as_root);
        let stdout = fs::read(self.jail.root.join("o").join(&slot)).unwrap_or_default();
        fs::remove_dir_all(place).unwrap();
        Some(Left { status: status?, stdout, tree })
    }

    fn send(&mut self, dialect: Dialect, slots: &[usize]) {
        let shell = if dialect == Dialect::Bash { "bash" } else { "dash" };
        let lines: String = slots.iter().map(|index| format!("{shell} {}\n", self.slot(*index))).collect();
        let driver = self.driver.get_or_insert_with(|| self.jail.drive());
        // A program may have ended the driver after its last status.
        if driver.write(&lines).is_err() {
            self.driver.insert(self.jail.drive()).write(&lines).unwrap();
        }
    }
}

impl Jail {
    fn drive(&self) -> Driver {
        let args: Vec<String> = ARGS.iter().map(|arg| format!("'{arg}'")).collect();
        let mut command = self.enter(&DRIVER.replace("ARGS", &args.join(" ")));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, statuses) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Driver { child, statuses }
    }
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let ended = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
    ended.status.success().then(|| String::from_utf8_lossy(&ended.stdout).into_owned())
}
