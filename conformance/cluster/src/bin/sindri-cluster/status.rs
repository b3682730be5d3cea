//! `status`: lists the clusters that run.

use sindri_cluster::program::print_line;
use sindri_cluster::registry::{ClusterRecord, Registry};
use sindri_cluster::{ClusterError, Home};

pub fn status(home: &Home) -> Result<(), ClusterError> {
    let records = Registry::new(home).list()?;
    if records.is_empty() {
        print_line("no cluster runs");
        return Ok(());
    }
    let now = now();
    let mut rows = vec![["NAME", "CLUSTER", "VERSION", "AGE", "STATE", "KUBECONFIG"].map(str::to_owned)];
    rows.extend(records.iter().map(|record| row(record, now)));
    for row in &rows {
        print_line(line(row, &rows));
    }
    Ok(())
}

fn row(record: &ClusterRecord, now: u64) -> [String; 6] {
    let state = if record.is_alive() { "runs" } else { "stale" };
    [
        record.name.clone(),
        record.provider.clone(),
        record.version.clone(),
        age(now.saturating_sub(record.started)),
        state.to_owned(),
        record.kubeconfig.display().to_string(),
    ]
}

/// Formats a row, with every column as wide as its widest value.
fn line(row: &[String; 6], rows: &[[String; 6]]) -> String {
    let columns = row.iter().enumerate().map(|(index, value)| {
        let width = rows.iter().filter_map(|row| row.get(index)).map(String::len).max().unwrap_or_default();
        format!("{value:<width$}")
    });
    columns.collect::<Vec<String>>().join("  ").trim_end().to_owned()
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3600),
    }
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the real clock")]
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}
