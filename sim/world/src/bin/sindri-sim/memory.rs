//! Memory of this process. A run has to give back what it took: a million worlds run in one process.

use std::fs;

/// Returns the most memory that this process has had, in MB; 0 where the system does not tell.
pub fn peak_megabytes() -> u64 {
    fs::read_to_string("/proc/self/status").map_or(0, |status| parse_peak(&status))
}

fn parse_peak(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_status_of_the_process() {
        assert_eq!(parse_peak("Name:\tsim\nVmHWM:\t  250000 kB\nVmRSS:\t 1 kB\n"), 256);
        assert_eq!(parse_peak("Name:\tsim\n"), 0);
        assert!(peak_megabytes() > 0);
    }
}
