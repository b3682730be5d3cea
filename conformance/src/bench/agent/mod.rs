//! The agent's figures: a real broker, a real agent and a cluster, each figure against something of the same run.
//!
//! Every part has processes and a cluster of its own, so that no figure depends on another. Calls are counted where the
//! agent counts them; what it is compared with is a plain client of the same cluster.

mod application;
mod apply;
mod change;
mod dutiful;
mod ground;
mod hands;
mod idle;
mod memory;
mod objects;
mod reaction;

use sindri_cluster::Provider;
use sindri_figures::Sheet;

use super::note;
pub use ground::Place;

/// Measures one part and adds its figures.
type Part = fn(&Place<'_>, &mut Sheet) -> Result<(), String>;

/// Every part, as it is called when it could not be measured.
const PARTS: [(&str, Part); 5] = [
    ("idle", idle::measure),
    ("changed stack", change::measure),
    ("first apply", apply::measure),
    ("reaction", reaction::measure),
    ("memory", memory::measure),
];

/// Whether some part has a text in its name.
pub fn has_part(filter: &str) -> bool {
    PARTS.iter().any(|(name, _)| name.contains(filter))
}

/// Measures the parts that have a text in their name, on each kind of cluster. What could not be measured is counted in the
/// sheet; an error is an interruption.
pub fn measure(places: &[Place<'_>], filter: &str, sheet: &mut Sheet) -> Result<(), String> {
    for place in places {
        for (name, part) in PARTS.into_iter().filter(|(name, _)| name.contains(filter)) {
            let name = place.figure(name);
            (place.tell)(&format!("measuring {name}"));
            note(place.waiter, sheet, &name, |sheet| part(place, sheet))?;
        }
    }
    Ok(())
}

impl Place<'_> {
    /// A figure's name with the cluster's.
    fn figure(&self, name: &str) -> String {
        format!("{}: {name}", Provider::name(self.provider))
    }
}

#[cfg(test)]
mod tests {
    use super::PARTS;

    #[test]
    fn no_part_has_the_name_of_another() {
        let names: std::collections::BTreeSet<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), PARTS.len());
    }
}
