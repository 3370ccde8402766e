//! Parameters of `Defaults`, with the types of sudoers(5) for sudo 1.9: each known name with a value of its type.

use super::lexer::is_duration;
use super::{shown, split};

/// Flags, which have no value.
const FLAGS: &str = "\
    always_query_group_plugin always_set_home authenticate case_insensitive_group case_insensitive_user closefrom_override compress_io \
    env_editor env_reset exec_background fast_glob fqdn ignore_audit_errors ignore_dot ignore_iolog_errors ignore_local_sudoers \
    ignore_logfile_errors ignore_unknown_defaults insults intercept intercept_allow_setid intercept_authenticate intercept_verify \
    iolog_flush log_allowed log_denied log_exit_status log_host log_input log_output log_passwords log_server_keepalive \
    log_server_verify log_stderr log_stdin log_stdout log_subcmds log_ttyin log_ttyout log_year long_otp_prompt mail_all_cmnds \
    mail_always mail_badpass mail_no_host mail_no_perms mail_no_user match_group_by_gid netgroup_tuple noexec noninteractive_auth \
    pam_acct_mgmt pam_rhost pam_ruser pam_session pam_setcred passprompt_override path_info preserve_groups pwfeedback requiretty \
    root_sudo rootpw runas_allow_unknown_id runas_check_shell runaspw selinux set_home set_logname set_utmp setenv shell_noargs \
    stay_setuid sudoedit_checkdir sudoedit_follow syslog_pid targetpw tty_tickets umask_override use_netgroups use_pty \
    user_command_timeouts utmp_runas visiblepw";

const LECTURES: &[&str] = &["always", "never", "once"];
const PASSWORDS: &[&str] = &["all", "always", "any", "never"];
const FACILITIES: &[&str] = &[
    "auth", "authpriv", "daemon", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
    "user",
];
const PRIORITIES: &[&str] = &["alert", "crit", "debug", "emerg", "err", "info", "none", "notice", "warning"];

/// The type of a value.
#[derive(Clone, Copy)]
enum Kind {
    Integer,
    /// Octal permissions.
    Mode,
    /// Minutes, perhaps with a fraction; a negative number for no limit.
    Minutes,
    /// A duration such as `1d2h`.
    Duration,
    /// A number, `infinity`, `user` or `default`, or two of them with a comma.
    Resource,
    Text,
    /// An absolute path.
    Path,
    /// An absolute path, one in the home of a user, or `*`.
    Directory,
    /// Words, to which `+=` adds and from which `-=` takes away.
    List,
    OneOf(&'static [&'static str]),
}

/// Parameters that have a value, by types, and whether `!` may be before them.
const VALUED: &[(&str, Kind, bool)] = &[
    ("passwd_tries syslog_maxlen closefrom maxseq", Kind::Integer, false),
    ("loglinelen", Kind::Integer, true),
    ("iolog_mode", Kind::Mode, false),
    ("umask", Kind::Mode, true),
    ("passwd_timeout timestamp_timeout", Kind::Minutes, true),
    ("command_timeout log_server_timeout", Kind::Duration, true),
    (
        "rlimit_as rlimit_core rlimit_cpu rlimit_data rlimit_fsize rlimit_locks rlimit_memlock rlimit_nofile rlimit_nproc rlimit_rss \
         rlimit_stack",
        Kind::Resource,
        true,
    ),
    (
        "authfail_message badpass_message group_plugin iolog_file mailsub pam_askpass_service pam_login_service pam_service passprompt \
         role runas_default sudoers_locale timestampowner type",
        Kind::Text,
        false,
    ),
    ("exempt_group iolog_group iolog_user mailerflags mailfrom mailto secure_path", Kind::Text, true),
    ("editor iolog_dir lecture_status_dir timestampdir", Kind::Path, false),
    (
        "admin_flag env_file lecture_file log_server_cabundle log_server_peer_cert log_server_peer_key logfile mailerpath \
         restricted_env_file",
        Kind::Path,
        true,
    ),
    ("runchroot runcwd", Kind::Directory, true),
    ("env_check env_delete env_keep log_servers", Kind::List, true),
    ("lecture", Kind::OneOf(LECTURES), true),
    ("listpw verifypw", Kind::OneOf(PASSWORDS), true),
    ("syslog", Kind::OneOf(FACILITIES), true),
    ("syslog_badpri syslog_goodpri", Kind::OneOf(PRIORITIES), false),
    ("timestamp_type", Kind::OneOf(&["global", "kernel", "ppid", "tty"]), false),
    ("log_format", Kind::OneOf(&["json", "sudo"]), false),
    ("fdexec", Kind::OneOf(&["always", "digest_only", "never"]), true),
    ("intercept_type", Kind::OneOf(&["dso", "trace"]), false),
];

/// Values that are words may be left out of these.
const OPTIONAL: [&str; 5] = ["fdexec", "lecture", "listpw", "syslog", "verifypw"];

/// Parameters with commas between them: `name`, `!name`, and `name=value` with `+` or `-` before the sign.
pub fn check(text: &str) -> Result<(), String> {
    split(text, ',').into_iter().try_for_each(|parameter| one(parameter.trim()))
}

fn one(text: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("Defaults: expected {why}, found {}", shown(text)));
    let end = text.find(|char: char| !(char.is_ascii_lowercase() || char.is_ascii_digit() || "!_ \t".contains(char)));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let (name, rest) = (name.trim(), rest.trim_start());
    let (is_negated, name) = (name.starts_with('!'), name.trim_start_matches(['!', ' ', '\t']));
    let known = VALUED.iter().find(|(names, ..)| names.split_whitespace().any(|known| known == name));
    let Some((_, kind, has_negation)) = known else {
        return match (FLAGS.split_whitespace().any(|flag| flag == name), rest.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => wrong("a parameter without a value"),
            (false, _) => wrong("a parameter that sudoers(5) lists"),
        };
    };
    if rest.is_empty() {
        return match (is_negated, *has_negation, OPTIONAL.contains(&name)) {
            (true, true, _) | (false, _, true) => Ok(()),
            (true, false, _) => wrong("a parameter without `!`, as this one has no negation"),
            (false, ..) => wrong("`=` and a value after the parameter"),
        };
    }
    let sign = if matches!(kind, Kind::List) { rest.trim_start_matches(['+', '-']) } else { rest };
    let Some(raw) = sign.strip_prefix('=').filter(|_| rest.len() - sign.len() < 2 && !is_negated) else {
        return wrong("a parameter, or one followed by `=` and a value");
    };
    match value(raw.trim()) {
        None => wrong("one word as the value, or text in double quotes"),
        Some(value) if !kind.admits(value) => wrong(&kind.expected()),
        Some(_) => Ok(()),
    }
}

/// A value without its quotes.
fn value(raw: &str) -> Option<&str> {
    if let Some(inner) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        // A backslash at the end would be before the quote.
        let is_whole = !inner.is_empty() && !inner.replace("\\\"", "").contains('"') && !inner.ends_with('\\');
        return is_whole.then_some(inner);
    }
    let mut escaped = false;
    let is_word = raw.chars().all(|char| {
        let is_fine = escaped || !"\"= \t".contains(char);
        escaped = char == '\\' && !escaped;
        is_fine
    });
    (is_word && !escaped && !raw.is_empty() && !raw.starts_with(['#', '!', '\''])).then_some(raw)
}

impl Kind {
    /// What a value of the type is.
    fn expected(self) -> String {
        match self {
            Self::Integer => "a number as the value",
            Self::Mode => "an octal mode up to 0777 as the value",
            Self::Minutes => "a number of minutes as the value",
            Self::Duration => "a duration such as 30 or 1d2h as the value",
            Self::Resource => "a number, `infinity`, `user` or `default`, or two of them with a comma, as the value",
            Self::Text | Self::List => "text as the value",
            Self::Path => "an absolute path as the value",
            Self::Directory => "a path that starts with `/` or `~`, or `*`, as the value",
            Self::OneOf(words) => return format!("one of {} as the value", words.join(", ")),
        }
        .to_owned()
    }

    fn admits(self, value: &str) -> bool {
        match self {
            Self::Integer => is_number(value),
            Self::Mode => value.len() <= 5 && u32::from_str_radix(value, 8).is_ok_and(|mode| mode <= 0o777),
            Self::Minutes => {
                let (whole, part) = value.strip_prefix('-').unwrap_or(value).split_once('.').unwrap_or((value, "0"));
                is_number(whole.trim_start_matches('-')) && is_number(part)
            }
            Self::Duration => is_duration(value),
            Self::Resource => {
                let is_limit = |text: &str| ["default", "infinity", "user"].contains(&text) || is_number(text);
                value.splitn(2, ',').all(is_limit)
            }
            Self::Text | Self::List => true,
            Self::Path => value.starts_with('/'),
            Self::Directory => value.starts_with(['/', '~']) || value == "*",
            Self::OneOf(words) => words.contains(&value),
        }
    }
}

/// Digits of a number that fits.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i32>().is_ok()
}
