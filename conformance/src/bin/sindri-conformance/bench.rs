//! `bench-broker`: measures the broker and prints every figure.

use std::path::Path;

use sindri_conformance::bench::{Bench, measure, memory_directory};
use sindri_conformance::waiter::Waiter;
use sindri_figures::Sheet;

use crate::output::say;
use crate::{BenchFlags, Failure};

pub fn bench(flags: &BenchFlags) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure::Broken(error.to_string());
    let own = std::env::current_exe().map_err(broken)?;
    let directory = own.parent().unwrap_or(Path::new("."));
    let broker = directory.join("sindri-broker");
    if !broker.is_file() {
        let build = "build it with `cargo build --release -p sindri-broker`";
        return Err(Failure::Mistake(format!("sindri-broker is not in {}: {build}", directory.display())));
    }
    let (disk, memory) = (tempfile::tempdir().map_err(broken)?, memory_directory().map_err(broken)?);
    let bench = Bench {
        own,
        broker,
        disk: disk.path().to_owned(),
        memory: memory.path().to_owned(),
        postgres_url: flags.postgres_url.clone(),
        waiter: Waiter::new().map_err(broken)?,
    };
    let mut sheet = Sheet::new("broker", say);
    let measured = measure(&bench, &mut sheet);
    if let Some(code) = bench.waiter.interrupted() {
        return Err(Failure::Interrupted(code));
    }
    measured.map_err(Failure::Broken)?;
    let missing = sheet.missing();
    if let Some(file) = &flags.json {
        let unwritable = |error| Failure::Mistake(format!("{} cannot be written: {error}", file.display()));
        std::fs::write(file, format!("{:#}\n", sheet.to_json())).map_err(unwritable)?;
    }
    if missing == 0 { Ok(()) } else { Err(Failure::Broken(format!("{missing} parts could not be measured"))) }
}
