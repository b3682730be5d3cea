//! Rates of the requests of each holder of a key.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::store::KeyHolder;

/// Limit on the holders in memory. When it is reached they are forgotten.
const HOLDERS_MAX: usize = 65_536;
const MINUTE: Duration = Duration::from_secs(60);

/// Requests that each holder may still send, and the time of that number.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<BTreeMap<KeyHolder, (Instant, f64)>>);

impl Rates {
    /// Counts a request; fails with the time to wait if the holder has sent too many. One that was silent for a minute may send
    /// all of them at once.
    pub(crate) fn count(&self, holder: KeyHolder, per_minute: u32, now: Instant) -> Result<(), Duration> {
        // No operation leaves the map half changed, so a poisoned lock is safe to use.
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.len() >= HOLDERS_MAX {
            holders.clear();
        }
        let limit = f64::from(per_minute.max(1));
        let (time, left) = holders.entry(holder).or_insert((now, limit));
        let regained = now.duration_since(*time).as_secs_f64() / MINUTE.as_secs_f64() * limit;
        (*time, *left) = (now, (*left + regained).min(limit));
        if *left < 1.0 {
            return Err(MINUTE.mul_f64((1.0 - *left) / limit));
        }
        *left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::{Entropy, GeneratorId};

    fn holder(byte: u8) -> KeyHolder {
        KeyHolder::Generator(GeneratorId::generate(&Entropy::new(move |bytes| bytes.fill(byte))))
    }

    #[test]
    fn requests_are_regained_evenly() {
        let (rates, start) = (Rates::default(), Instant::now());
        let send = |byte, time| rates.count(holder(byte), 2, time);
        assert_eq!((send(1, start), send(1, start)), (Ok(()), Ok(())));
        assert_eq!(send(1, start), Err(Duration::from_secs(30)));
        assert_eq!(send(2, start), Ok(()), "another holder");
        assert_eq!(send(1, start + Duration::from_secs(30)), Ok(()));
        assert!(send(1, start + Duration::from_secs(30)).is_err());
        let later = start + Duration::from_secs(3_600);
        assert_eq!((send(1, later), send(1, later)), (Ok(()), Ok(())));
        assert!(send(1, later).is_err(), "no more than the limit is saved");
    }
}
