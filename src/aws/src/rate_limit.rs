//! Rate limit of block requests: shared by all threads, increased steadily, and reduced when the service throttles.
//!
//! The default quota is 1,000 uploads a second per account and region, and the same per snapshot; other clients may use
//! it at the same time. Until the service throttles, the limit doubles as in the slow start of TCP (RFC 5681, section
//! 3.1). After that, additive increase and multiplicative decrease share the quota fairly (Chiu and Jain, 1989).

use std::sync::Mutex;
use std::time::{Duration, Instant};

use vmbake_common::parallel::locked;

/// Default quota in requests a second.
const START: f64 = 1000.0;
/// Minimum rate.
const LEAST: f64 = 2.0;
/// Maximum rate.
const MOST: f64 = 10_000.0;
/// Increase per second in which the limit was reached.
const STEP: f64 = 20.0;
/// Rate of doubling before the service first throttles, while the limit is reached: some accounts have a much larger
/// quota.
const DOUBLES: f64 = 0.02;
/// Factor of the decrease when the service throttles, applied to the recent throughput if that is less: the initial
/// limit may be ten times too high.
const CUT: f64 = 0.7;
/// Minimum seconds between two decreases: requests sent before the first one carry no new information.
const BETWEEN_CUTS: f64 = 0.5;
/// Maximum and minimum interval in seconds for measuring the throughput, and the required number of responses.
const WINDOW: f64 = 1.0;
const LEAST_WINDOW: f64 = 0.05;
const MIN_SAMPLES: u32 = 20;
/// Burst size in seconds.
const BURST: f64 = 0.1;

/// The rate limit, shared by all threads.
#[derive(Debug)]
pub(super) struct RateLimit {
    start: Instant,
    rate: Mutex<Rate>,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { start: Instant::now(), rate: Mutex::default() }
    }
}

impl RateLimit {
    /// Blocks until another request may be sent.
    pub(super) fn wait(&self) {
        let seconds = locked(&self.rate).take(self.now());
        if let Ok(pause) = Duration::try_from_secs_f64(seconds) {
            std::thread::sleep(pause);
        }
    }

    /// Records a successful request.
    pub(super) fn succeeded(&self) {
        locked(&self.rate).grow(self.now());
    }

    /// Records a throttled request.
    pub(super) fn throttled(&self) {
        locked(&self.rate).cut(self.now());
    }

    /// A limit with an initial rate.
    #[cfg(test)]
    pub(super) fn at(per_second: f64) -> Self {
        let rate = Rate { per_second, ..Rate::default() };
        Self { start: Instant::now(), rate: Mutex::new(rate) }
    }

    /// The current rate in requests a second.
    #[cfg(test)]
    pub(super) fn per_second(&self) -> f64 {
        locked(&self.rate).per_second
    }

    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}

/// The state of the limit at a time, in seconds since some start.
#[derive(Debug)]
struct Rate {
    per_second: f64,
    /// When the next request may be sent.
    free: f64,
    /// Whether a request had to wait since the last increase.
    reached: bool,
    /// Whether the service has throttled.
    is_found: bool,
    grown: f64,
    last_cut: f64,
    /// Recently answered requests.
    answered: u32,
    since: f64,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            per_second: START,
            free: 0.0,
            reached: false,
            is_found: false,
            grown: 0.0,
            last_cut: f64::NEG_INFINITY,
            answered: 0,
            since: 0.0,
        }
    }
}

impl Rate {
    /// The delay in seconds for a request.
    fn take(&mut self, now: f64) -> f64 {
        let at = self.free.max(now - BURST);
        self.free = at + 1.0 / self.per_second;
        let wait = (at - now).max(0.0);
        self.reached |= wait > 0.0;
        wait
    }

    /// An unused limit is not increased: nothing is learned about the service.
    fn grow(&mut self, now: f64) {
        if now - self.since > WINDOW {
            (self.answered, self.since) = (0, now);
        }
        self.answered = self.answered.saturating_add(1);
        let (after, more) = if self.is_found { (1.0, STEP) } else { (DOUBLES, self.per_second) };
        if self.reached && now - self.grown >= after {
            self.per_second = (self.per_second + more).min(MOST);
            (self.grown, self.reached) = (now, false);
        }
    }

    fn cut(&mut self, now: f64) {
        if now - self.last_cut < BETWEEN_CUTS {
            return;
        }
        let counted = now - self.since;
        let is_significant = self.answered >= MIN_SAMPLES && (LEAST_WINDOW..=WINDOW).contains(&counted);
        let taken = if is_significant { f64::from(self.answered) / counted } else { MOST };
        self.per_second = (self.per_second.min(taken) * CUT).max(LEAST);
        (self.last_cut, self.grown, self.reached, self.is_found) = (now, now, false, true);
        (self.answered, self.since) = (0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates requests at the current limit to a service with `quota` requests a second, from `from` to `to`;
    /// returns the numbers of accepted and refused requests.
    fn ask(rate: &mut Rate, quota: f64, from: f64, to: f64) -> (u32, u32) {
        let (mut now, mut taken, mut refused) = (from, 0, 0);
        let mut bucket = quota;
        while now < to {
            let wait = rate.take(now);
            now += wait;
            bucket = (bucket + wait * quota).min(quota);
            if bucket >= 1.0 {
                bucket -= 1.0;
                taken += 1;
                rate.grow(now);
            } else {
                refused += 1;
                rate.cut(now);
            }
        }
        (taken, refused)
    }

    #[test]
    fn the_limit_finds_the_quota_and_follows_it() {
        let mut rate = Rate::default();
        let (taken, refused) = ask(&mut rate, 300.0, 0.0, 60.0);
        assert!(taken > 13_500 && refused < 2500, "{taken} taken, {refused} refused");
        let (taken, refused) = ask(&mut rate, 900.0, 60.0, 160.0);
        assert!(taken > 60_000 && refused < 900, "{taken} taken, {refused} refused");
        let (taken, refused) = ask(&mut rate, 20.0, 160.0, 260.0);
        assert!(taken > 1200 && refused < 1500, "{taken} taken, {refused} refused");
    }

    #[test]
    fn the_limit_doubles_until_the_service_throttles() {
        let mut rate = Rate::default();
        let (taken, refused) = ask(&mut rate, 20_000.0, 0.0, 1.0);
        assert!(taken > 8000 && refused == 0, "{taken} taken, {refused} refused");
        rate.cut(1.0);
        let after = rate.per_second;
        ask(&mut rate, 20_000.0, 1.0, 4.0);
        assert!(after < 7500.0 && rate.per_second <= after + 4.0 * STEP, "{after}, {}", rate.per_second);
    }

    #[test]
    fn requests_that_failed_together_cut_the_limit_once() {
        let mut rate = Rate::default();
        for _ in 0..64 {
            rate.cut(10.0);
        }
        assert!((rate.per_second - 700.0).abs() < 1e-9);
        for second in 0..100 {
            rate.cut(11.0 + f64::from(second));
        }
        assert!((rate.per_second - LEAST).abs() < 1e-9);
    }

    #[test]
    fn an_unused_limit_does_not_grow() {
        let mut rate = Rate::default();
        for second in 0..100 {
            assert!(rate.take(f64::from(second)) <= 0.0);
            rate.grow(f64::from(second));
        }
        assert!((rate.per_second - START).abs() < 1e-9);
    }

    #[test]
    fn a_pause_earns_no_more_than_a_short_burst() {
        let mut rate = Rate::default();
        let at_once = (0..1000).take_while(|_| rate.take(60.0) <= 0.0).count();
        assert!((90..=110).contains(&at_once), "{at_once}");
    }
}
