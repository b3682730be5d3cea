//! What processes take of the machine's memory.

/// Megabytes of each, shared pages counted in proportion where the system tells.
pub fn of_processes(processes: &[(String, u32)]) -> Result<Vec<(String, f64)>, String> {
    if processes.is_empty() {
        return Err("its processes are not known".to_owned());
    }
    processes.iter().map(|(name, id)| Ok((name.clone(), of_process(*id)?))).collect()
}

fn of_process(id: u32) -> Result<f64, String> {
    let read = |file: &str, key: &str| {
        let path = format!("/proc/{id}/{file}");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        megabytes(&text, key).ok_or_else(|| format!("{path} has no {key}"))
    };
    read("smaps_rollup", "Pss:").or_else(|_| read("status", "VmRSS:"))
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
    fn a_line_of_the_system_is_read_in_megabytes() {
        assert_eq!(megabytes("Rss:  1 kB\nPss:     2048 kB\n", "Pss:"), Some(2.0));
        assert_eq!(megabytes("Rss:  1 kB\n", "Pss:"), None);
    }

    #[test]
    fn this_very_process_takes_some() {
        let own = of_processes(&[("own".to_owned(), std::process::id())]).unwrap();
        assert!(own[0].1 > 0.1, "{own:?}");
    }
}
