//! Figures that people notice: the start of the command line, `sindri status` of many stacks, the sizes of what is shipped, and the
//! time until an installation is ready.

mod bench;
mod installing;
mod sizes;
mod start;
mod status;

pub use bench::PeopleBench;

use crate::figures::Figures;
use crate::parts::measure_part;

/// Measures one part and adds its figures.
type Part = fn(&PeopleBench, &mut Figures) -> Result<(), String>;

/// All parts, with the names for `--filter` and for parts that could not be measured.
const PARTS: [(&str, Part); 5] = [
    ("start of the command line", start::measure),
    ("status, SQLite", status::measure_sqlite),
    ("status, PostgreSQL", status::measure_postgres),
    ("sizes", sizes::measure),
    ("installation", installing::measure),
];

/// Returns true if the name of a part contains the text.
pub fn has_part(filter: &str) -> bool {
    PARTS.iter().any(|(name, _)| name.contains(filter))
}

/// Measures the parts whose name contains the text. Failures are recorded in the figures; an error is an interruption.
pub fn measure(bench: &PeopleBench, filter: &str, figures: &mut Figures) -> Result<(), String> {
    for (name, part) in PARTS.into_iter().filter(|(name, _)| name.contains(filter)) {
        measure_part(&bench.servers.runtime, figures, name, |figures| part(bench, figures))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{PARTS, has_part};

    #[test]
    fn each_part_is_found_by_its_name() {
        let names: std::collections::BTreeSet<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), PARTS.len());
        assert!(names.into_iter().all(has_part) && !has_part("polls"));
    }
}
