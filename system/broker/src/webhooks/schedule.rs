//! Retry schedule of deliveries: exponential backoff from five seconds by a factor of four up to one hour, with jitter so
//! that deliveries that failed together are not retried together.

use std::time::Duration;

use sindri_model::Entropy;
use sindri_model::limits::WEBHOOK_RETRIES_MAX;

/// Default number of retries of a subscription.
pub(crate) const RETRIES_DEFAULT: u32 = 5;

const PAUSE_FIRST: Duration = Duration::from_secs(5);
const PAUSE_GROWTH: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// The jitter is at most the pause divided by this number.
const JITTER_PARTS: u32 = 10;

/// Decision after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// Retry after this pause.
    Retry(Duration),
    /// No retry: the delivery is dead.
    Dead,
}

/// Decides what follows after the attempt with this number (the first is 1) failed.
pub(crate) fn decide_after_failure(attempt: u32, retries_max: u32, entropy: &Entropy) -> RetryDecision {
    if attempt > retries_max.min(WEBHOOK_RETRIES_MAX) {
        return RetryDecision::Dead;
    }
    let (shortest, longest) = pause_range(attempt);
    let spread = u64::try_from((longest - shortest).as_millis()).expect("a pause has a maximum");
    RetryDecision::Retry(shortest + Duration::from_millis(entropy.number_below(spread + 1)))
}

/// Returns the shortest and the longest pause after the attempt with this number.
fn pause_range(attempt: u32) -> (Duration, Duration) {
    let backoff =
        PAUSE_GROWTH.checked_pow(attempt.saturating_sub(1)).and_then(|factor| PAUSE_FIRST.checked_mul(factor));
    let pause = backoff.unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
    let jitter = pause / JITTER_PARTS;
    (pause - jitter, (pause + jitter).min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fixed_entropy(bytes: [u8; 8]) -> Entropy {
        Entropy::new(move |target| target.copy_from_slice(&bytes[..target.len()]))
    }

    #[test]
    fn pauses_grow_by_a_factor_of_four_up_to_one_hour() {
        let seconds = |duration: Duration| duration.as_secs_f64();
        let ranges: Vec<(f64, f64)> =
            (1..=7).map(pause_range).map(|(low, high)| (seconds(low), seconds(high))).collect();
        let expected = [
            (4.5, 5.5),
            (18.0, 22.0),
            (72.0, 88.0),
            (288.0, 352.0),
            (1152.0, 1408.0),
            (3240.0, 3600.0),
            (3240.0, 3600.0),
        ];
        assert_eq!(ranges, expected);
    }

    #[test]
    fn after_the_last_retry_the_delivery_is_dead() {
        let entropy = fixed_entropy([0; 8]);
        assert_eq!(decide_after_failure(1, 0, &entropy), RetryDecision::Dead);
        assert_eq!(decide_after_failure(1, 1, &entropy), RetryDecision::Retry(Duration::from_millis(4500)));
        assert!(matches!(decide_after_failure(RETRIES_DEFAULT, RETRIES_DEFAULT, &entropy), RetryDecision::Retry(_)));
        assert_eq!(decide_after_failure(RETRIES_DEFAULT + 1, RETRIES_DEFAULT, &entropy), RetryDecision::Dead);
        assert_eq!(decide_after_failure(WEBHOOK_RETRIES_MAX + 1, u32::MAX, &entropy), RetryDecision::Dead);
    }

    proptest! {
        #[test]
        fn every_pause_is_within_its_range(attempt in 1..=WEBHOOK_RETRIES_MAX, drawn: [u8; 8]) {
            let RetryDecision::Retry(pause) = decide_after_failure(attempt, WEBHOOK_RETRIES_MAX, &fixed_entropy(drawn)) else {
                panic!("attempt {attempt} is within the retries");
            };
            let (shortest, longest) = pause_range(attempt);
            prop_assert!(shortest <= pause && pause <= longest && longest <= PAUSE_MAX, "{pause:?}");
        }

        #[test]
        fn no_attempt_number_panics(attempt: u32, retries: u32, drawn: [u8; 8]) {
            decide_after_failure(attempt, retries, &fixed_entropy(drawn));
        }
    }
}
