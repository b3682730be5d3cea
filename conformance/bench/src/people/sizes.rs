//! Sizes of the programs, and of their images: an image is the program and the certificate authorities of the machine on which it
//! is made. Shipped programs also contain the C library.

use std::path::Path;

use super::bench::PeopleBench;
use crate::figures::{Bar, Figures};

const BAR: Bar = Bar::AtMost(20.0);
/// Certificate authorities, where `cargo xtask images` finds them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Adds the size of each program and of its image.
pub fn measure(bench: &PeopleBench, figures: &mut Figures) -> Result<(), String> {
    let binaries = &bench.binaries;
    let authorities = megabytes(Path::new(AUTHORITIES)).unwrap_or_default();
    for program in [&binaries.broker, &binaries.agent, &binaries.cli, &binaries.api_server] {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let size = megabytes(program)?;
        figures.add(&format!("size of {name}"), size, "MB", BAR);
        figures.add(&format!("size of the image of {name}, before compression"), size + authorities, "MB", BAR);
    }
    Ok(())
}

fn megabytes(file: &Path) -> Result<f64, String> {
    let size = std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?.len();
    Ok(size as f64 / 1e6)
}
