//! When a delivery that failed is tried again, and when no more.
//!
//! The pause grows fourfold from five seconds up to one hour, and differs a little each time, so that deliveries
//! that failed together do not come back together.

use std::time::Duration;

use sindri_model::Entropy;

/// Retries of a subscription that says nothing else.
pub(crate) const RETRIES_DEFAULT: u32 = 5;
/// The most retries that a subscription may ask for.
pub(crate) const RETRIES_MAX: u32 = 20;

const PAUSE_FIRST: Duration = Duration::from_secs(5);
const PAUSE_GROWTH: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// A pause is longer or shorter by up to one part in so many.
const JITTER_PARTS: u32 = 10;

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another attempt after this pause.
    Retry(Duration),
    /// Nothing: the delivery is dead.
    Dead,
}

/// What follows when the attempt with this number (the first is 1) failed.
pub(crate) fn after_failure(attempt: u32, retries_max: u32, entropy: &Entropy) -> Next {
    if attempt > retries_max.min(RETRIES_MAX) {
        return Next::Dead;
    }
    let (shortest, longest) = bounds(attempt);
    let range = u64::try_from((longest - shortest).as_millis()).expect("a pause has a maximum");
    Next::Retry(shortest + Duration::from_millis(entropy.below(range + 1)))
}

/// The shortest and the longest pause after the attempt with this number.
fn bounds(attempt: u32) -> (Duration, Duration) {
    let grown = PAUSE_GROWTH.checked_pow(attempt.saturating_sub(1)).and_then(|factor| PAUSE_FIRST.checked_mul(factor));
    let pause = grown.unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
    let jitter = pause / JITTER_PARTS;
    (pause - jitter, (pause + jitter).min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawing(bytes: [u8; 8]) -> Entropy {
        Entropy::new(move |target| target.copy_from_slice(&bytes[..target.len()]))
    }

    #[test]
    fn pauses_grow_fourfold_up_to_an_hour() {
        let seconds = |duration: Duration| duration.as_secs_f64();
        let shown: Vec<(f64, f64)> = (1..=7).map(bounds).map(|(low, high)| (seconds(low), seconds(high))).collect();
        let expected = [
            (4.5, 5.5),
            (18.0, 22.0),
            (72.0, 88.0),
            (288.0, 352.0),
            (1152.0, 1408.0),
            (3240.0, 3600.0),
            (3240.0, 3600.0),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn after_the_last_retry_the_delivery_is_dead() {
        let entropy = drawing([0; 8]);
        assert_eq!(after_failure(1, 0, &entropy), Next::Dead);
        assert_eq!(after_failure(1, 1, &entropy), Next::Retry(Duration::from_millis(4500)));
        assert!(matches!(after_failure(RETRIES_DEFAULT, RETRIES_DEFAULT, &entropy), Next::Retry(_)));
        assert_eq!(after_failure(RETRIES_DEFAULT + 1, RETRIES_DEFAULT, &entropy), Next::Dead);
        assert_eq!(after_failure(RETRIES_MAX + 1, u32::MAX, &entropy), Next::Dead);
    }

    proptest! {
        #[test]
        fn every_pause_is_within_its_bounds(attempt in 1..=RETRIES_MAX, drawn: [u8; 8]) {
            let Next::Retry(pause) = after_failure(attempt, RETRIES_MAX, &drawing(drawn)) else {
                panic!("attempt {attempt} is within the retries");
            };
            let (shortest, longest) = bounds(attempt);
            prop_assert!(shortest <= pause && pause <= longest && longest <= PAUSE_MAX, "{pause:?}");
        }

        #[test]
        fn no_numbers_make_it_panic(attempt: u32, retries: u32, drawn: [u8; 8]) {
            after_failure(attempt, retries, &drawing(drawn));
        }
    }
}
