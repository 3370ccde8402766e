//! Times of timers, as `OnCalendar=` has them (systemd.time(7)). What passes is what `systemd-analyze calendar` accepts, with any word that
//! looks like the name of a time zone.

/// Shorthands for a whole expression.
const SHORTHANDS: [&str; 13] = [
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "annually",
    "anually",
    "yearly",
    "biannually",
    "bi-annually",
    "semiannually",
    "semi-annually",
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Years that systemd takes.
const YEARS: (u64, u64) = (1970, 2199);

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// Largest number in an expression (`INT_MAX`).
const MAX: u64 = 0x7fff_ffff;

/// A value, a range or a repetition of them.
#[derive(Clone, Copy)]
struct Component {
    start: u64,
    stop: Option<u64>,
    repeat: u64,
}

type Chain = Vec<Component>;

/// Whether systemd accepts an expression.
pub(super) fn is_valid(text: &str) -> bool {
    let text = without_zone(text);
    if SHORTHANDS.iter().any(|known| known.eq_ignore_ascii_case(text)) {
        return true;
    }
    !text.is_empty() && expression(text).is_some()
}

/// The name of a time zone at the end of an expression, which the image must have. It has UTC in any case.
pub fn calendar_zone(text: &str) -> Option<&str> {
    let zone = text.strip_prefix(without_zone(text))?.trim_start();
    (!zone.is_empty() && !zone.eq_ignore_ascii_case("utc")).then_some(zone)
}

/// An expression without the time zone at its end.
fn without_zone(text: &str) -> &str {
    let Some((before, last)) = text.rsplit_once(' ') else { return text };
    let is_zone = last.eq_ignore_ascii_case("utc")
        || last.starts_with(|first: char| first.is_ascii_alphabetic())
            && (last.contains('/') || last.starts_with(|first: char| first.is_ascii_uppercase()))
            && weekdays(last).is_none_or(|rest| rest == last);
    if is_zone { before } else { text }
}

/// Weekdays, a date and a time, of which one is enough.
fn expression(text: &str) -> Option<()> {
    let text = weekdays(text)?;
    let text = date(text)?;
    let (text, is_complete) = (text.0, text.1);
    match is_complete || text.is_empty() {
        true => text.is_empty().then_some(()),
        false => time(text),
    }
}

/// What follows the weekdays: nothing is taken where none are there.
fn weekdays(text: &str) -> Option<&str> {
    let (mut rest, mut range_start, mut is_first) = (text, None, true);
    loop {
        let lower = rest.to_ascii_lowercase();
        let found = WEEKDAYS.iter().enumerate().find_map(|(number, name)| {
            let name = if lower.starts_with(name) { name } else { &name[..3] };
            lower.starts_with(name).then_some((number, name.len()))
        });
        let Some((number, len)) = found else { return is_first.then_some(text) };
        if range_start.is_some_and(|start| start > number) {
            return None;
        }
        rest = rest.get(len..)?;
        if rest.is_empty() {
            return Some(rest);
        }
        if let Some(next) = rest.strip_prefix("..").or_else(|| rest.strip_prefix('-')) {
            if range_start.is_some() || next.is_empty() || next.starts_with(' ') {
                return None;
            }
            (range_start, rest) = (Some(number), next);
        } else if let Some(next) = rest.strip_prefix(',') {
            (range_start, rest) = (None, next);
        } else if !rest.starts_with(' ') {
            return None;
        }
        if rest.is_empty() || rest.starts_with(' ') {
            return Some(rest.trim_start_matches(' '));
        }
        is_first = false;
    }
}

/// What follows a date, and whether no time may follow. Nothing is taken where a time is.
fn date(text: &str) -> Option<(&str, bool)> {
    if text.is_empty() {
        return Some((text, true));
    }
    if let Some(seconds) = text.strip_prefix('@') {
        let (_, rest) = number(seconds, false)?;
        return Some((rest, true));
    }
    let (first, rest) = chain(text, false)?;
    if rest.is_empty() || rest.starts_with(':') {
        return Some((text, false));
    }
    let separated = |rest: &str| rest.starts_with(['-', '~']).then(|| rest.starts_with('~'));
    let at_end = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let mut from_end = separated(rest)?;
    let (second, rest) = chain(rest.get(1..)?, false)?;
    let (year, month, day, rest) = match at_end(rest) {
        true => (Vec::new(), first, second, rest),
        false if from_end => return None,
        false => {
            from_end = separated(rest)?;
            let (third, rest) = chain(rest.get(1..)?, false)?;
            (first, second, third, rest)
        }
    };
    let year: Chain = year.into_iter().map(with_century).collect();
    let is_valid = are_within(&year, YEARS, false) && are_within(&month, (1, 12), false);
    let is_valid = is_valid && are_within(&day, (1, 31), from_end && !day.is_empty()) && at_end(rest);
    is_valid.then(|| (rest.trim_start_matches(' '), false))
}

/// A time of hours and minutes, with seconds perhaps, and nothing after it.
fn time(text: &str) -> Option<()> {
    let (hours, rest) = chain(text, false)?;
    let (minutes, rest) = chain(rest.strip_prefix(':')?, false)?;
    let (seconds, rest) = match rest.strip_prefix(':') {
        Some(rest) => chain(rest, true)?,
        None => (Vec::new(), rest),
    };
    let is_valid = are_within(&hours, (0, 23), false) && are_within(&minutes, (0, 59), false);
    (rest.is_empty() && is_valid && are_within(&seconds, (0, 60 * SECOND - 1), false)).then_some(())
}

/// Components with commas between them, or `*` for any value, and what follows them.
fn chain(text: &str, is_seconds: bool) -> Option<(Chain, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((Vec::new(), rest));
    }
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        let (component, next) = component(rest, is_seconds)?;
        found.push(component);
        match next.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Some((found, next)),
        }
    }
}

fn component(text: &str, is_seconds: bool) -> Option<(Component, &str)> {
    let (start, mut rest) = number(text, is_seconds)?;
    let (mut stop, mut repeat) = (None, 0);
    if let Some(next) = rest.strip_prefix("..") {
        let (last, next) = number(next, is_seconds)?;
        (stop, repeat, rest) = (Some(last), if is_seconds { SECOND } else { 1 }, next);
    }
    if let Some(next) = rest.strip_prefix('/') {
        let (step, next) = number(next, is_seconds)?;
        (repeat, rest) = (Some(step).filter(|step| *step > 0)?, next);
    }
    let is_ended = rest.is_empty() || rest.starts_with([' ', ',', '-', '~', ':']);
    is_ended.then_some((Component { start, stop, repeat }, rest))
}

/// A number, in microseconds if it counts seconds, which may have a fraction.
fn number(text: &str, is_seconds: bool) -> Option<(u64, &str)> {
    let digits = |text: &str| text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    let (whole, mut rest) = text.split_at(digits(text));
    let mut value: u64 = whole.parse().ok()?;
    if is_seconds {
        value = value.checked_mul(SECOND)?;
        if let Some(fraction) = rest.strip_prefix('.').filter(|rest| !rest.starts_with('.')) {
            let (fraction, next) = fraction.split_at(digits(fraction));
            let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
            value = value.checked_add(micros.parse().ok().filter(|_| !fraction.is_empty())?)?;
            rest = next;
        }
        return (value <= MAX).then_some((value, rest));
    }
    (value <= MAX).then_some((value, rest))
}

/// Two digits are years from 1970 to 2069.
fn with_century(component: Component) -> Component {
    let full = |year: u64| match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    Component { start: full(component.start), stop: component.stop.map(full), ..component }
}

/// Whether components are within a range, and so is the first repetition of a single value. Days from the end of a month are at most 28.
fn are_within(chain: &Chain, (from, to): (u64, u64), from_end: bool) -> bool {
    let to = if from_end { to - 3 } else { to };
    chain.iter().all(|&Component { start, stop, repeat }| {
        let is_inside = |value: u64| (from..=to).contains(&value);
        let repeats = match stop {
            Some(stop) => is_inside(stop) && start <= stop,
            None if from_end => start >= from + repeat,
            None => start + repeat <= to,
        };
        is_inside(start) && repeat <= to - from && repeats
    })
}
