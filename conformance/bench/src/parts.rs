//! Runs one part of an area, so that a part that cannot be measured does not keep the others from being measured.

use std::time::Duration;

use sindri_conformance::waiter::Waiter;

use crate::figures::Figures;

/// Measures one part. Its failure is recorded in the figures; an error is an interruption of the program.
pub fn measure_part(
    waiter: &Waiter,
    figures: &mut Figures,
    name: &str,
    measure: impl FnOnce(&mut Figures) -> Result<(), String>,
) -> Result<(), String> {
    let measured = measure(figures);
    waiter.pause(Duration::ZERO).map_err(|cut| cut.to_string())?;
    if let Err(reason) = measured {
        figures.add_missing(name, &reason);
    }
    Ok(())
}
