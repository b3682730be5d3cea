//! Durations of the last run of each part, kept below cargo's target directory.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::target;

fn file(part: &str) -> PathBuf {
    target().join("xtask-durations").join(part.replace(' ', "-"))
}

/// Duration of the last run of a part.
pub fn last(part: &str) -> Option<Duration> {
    let seconds: f64 = std::fs::read_to_string(file(part)).ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Keeps a duration. Failing to do so is no failure of the part.
pub fn record(part: &str, duration: Duration) {
    let file = file(part);
    let written = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = written.and_then(|()| std::fs::write(&file, format!("{:.1}\n", duration.as_secs_f64())));
    written.unwrap_or_else(|error| eprintln!("{}: {error}", file.display()));
}
