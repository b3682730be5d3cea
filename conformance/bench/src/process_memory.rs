//! Memory of processes, as Linux reports it under `/proc`.

/// Returns the memory of each process in megabytes, with shared pages counted in proportion where the system reports it.
pub fn proportional(processes: &[(String, u32)]) -> Result<Vec<(String, f64)>, String> {
    if processes.is_empty() {
        return Err("its processes are not known".to_owned());
    }
    let measure = |id: u32| read(id, "smaps_rollup", "Pss:").or_else(|_| resident(id));
    processes.iter().map(|(name, id)| Ok((name.clone(), measure(*id)?))).collect()
}

/// Returns the resident memory of a process in megabytes.
pub fn resident(id: u32) -> Result<f64, String> {
    read(id, "status", "VmRSS:")
}

/// Returns the largest resident memory of a process so far, in megabytes.
pub fn peak(id: u32) -> Result<f64, String> {
    read(id, "status", "VmHWM:")
}

fn read(id: u32, file: &str, key: &str) -> Result<f64, String> {
    let path = format!("/proc/{id}/{file}");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    megabytes(&text, key).ok_or_else(|| format!("{path} has no {key}"))
}

fn megabytes(text: &str, key: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_converted_to_megabytes() {
        assert_eq!(megabytes("Rss:  1 kB\nPss:     2048 kB\n", "Pss:"), Some(2.0));
        assert_eq!(megabytes("Rss:  1 kB\n", "Pss:"), None);
    }

    #[test]
    fn this_process_uses_some_memory() {
        let id = std::process::id();
        let proportional = proportional(&[("own".to_owned(), id)]).unwrap();
        assert!(proportional[0].1 > 0.1 && resident(id).unwrap() > 0.1, "{proportional:?}");
    }
}
