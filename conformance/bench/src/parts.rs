//! Runs one part of an area, so that a part that cannot be measured does not keep the others from being measured.

use std::time::Duration;

use sindri_conformance::runtime::InterruptibleRuntime;

use crate::figures::Figures;

/// Measures one part. Its failure is recorded in the figures; an error is an interruption of the program.
pub fn measure_part(
    runtime: &InterruptibleRuntime,
    figures: &mut Figures,
    name: &str,
    measure: impl FnOnce(&mut Figures) -> Result<(), String>,
) -> Result<(), String> {
    let measured = measure(figures);
    runtime.sleep(Duration::ZERO).map_err(|error| error.to_string())?;
    if let Err(reason) = measured {
        figures.add_missing(name, &reason);
    }
    Ok(())
}
