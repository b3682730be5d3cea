//! Figures of the agent: a real broker, a real agent and a cluster, each figure against a baseline of the same run.
//!
//! Every part has processes and a cluster of its own, so that no figure depends on another. Calls are counted by the agent's own
//! metrics; the baseline is a plain client of the same cluster.

mod application;
mod apply;
mod change;
mod clients;
mod environment;
mod idle;
mod memory;
mod objects;
mod reaction;

use crate::figures::Figures;
use crate::parts::measure_part;

pub use environment::Setup;

/// Measures one part and adds its figures.
type Part = fn(&Setup<'_>, &mut Figures) -> Result<(), String>;

/// All parts, with the names for `--filter` and for parts that could not be measured.
const PARTS: [(&str, Part); 5] = [
    ("idle", idle::measure),
    ("changed stack", change::measure),
    ("first apply", apply::measure),
    ("reaction", reaction::measure),
    ("memory", memory::measure),
];

/// Returns true if the name of a part contains the text.
pub fn has_part(filter: &str) -> bool {
    PARTS.iter().any(|(name, _)| name.contains(filter))
}

/// Measures the parts whose name contains the text, with each provider. Failures are recorded in the figures; an error is an
/// interruption.
pub fn measure(setups: &[Setup<'_>], filter: &str, figures: &mut Figures) -> Result<(), String> {
    for setup in setups {
        for (name, part) in PARTS.into_iter().filter(|(name, _)| name.contains(filter)) {
            let name = setup.figure_name(name);
            (setup.progress)(&format!("measuring {name}"));
            measure_part(setup.runtime, figures, &name, |figures| part(setup, figures))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::PARTS;

    #[test]
    fn the_names_of_the_parts_are_unique() {
        let names: std::collections::BTreeSet<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), PARTS.len());
    }
}
