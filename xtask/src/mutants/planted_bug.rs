//! A planted bug: a text of a source file, and the text that replaces it.

use std::path::{Path, PathBuf};

/// Variable with the name of the bug that a run has.
pub const VARIABLE: &str = "SINDRI_PLANTED_BUG";
/// Word that stands for the condition that a run has the bug.
const CONDITION: &str = "PLANTED";

/// A planted bug. Its file has the lines `bug:`, `file:` and optionally `scenario:`, then `--- find` with the text that is
/// replaced, and `--- plant` with the text that replaces it.
#[derive(Debug)]
pub struct PlantedBug {
    pub name: String,
    /// Source file, relative to the project's directory.
    pub file: String,
    /// Scenario that catches it.
    pub scenario: Option<String>,
    find: String,
    plant: String,
}

impl PlantedBug {
    /// Reads all planted bugs of a directory.
    pub fn read_all(directory: &Path) -> Result<Vec<Self>, String> {
        let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
        let entries = std::fs::read_dir(directory).map_err(fail)?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "bug"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(name, &text).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn parse(name: String, text: &str) -> Result<Self, String> {
        let (head, rest) = text.split_once("--- find\n").ok_or("the line `--- find` is missing")?;
        let (find, plant) = rest.split_once("\n--- plant\n").ok_or("the line `--- plant` is missing")?;
        let field =
            |field: &str| head.lines().find_map(|line| line.strip_prefix(field)).map(|value| value.trim().to_owned());
        field("bug:").ok_or("the line `bug:` is missing")?;
        let file = field("file:").ok_or("the line `file:` is missing")?;
        if !plant.contains(CONDITION) {
            return Err(format!("the planted text has no {CONDITION}: every run would have the bug"));
        }
        let (find, plant) = (find.to_owned(), plant.trim_end_matches('\n').to_owned());
        Ok(Self { name, file, scenario: field("scenario:"), find, plant })
    }

    /// Returns the content of its source file with the bug.
    pub fn plant(&self, content: &[u8]) -> Result<Vec<u8>, String> {
        let content = String::from_utf8_lossy(content);
        match content.matches(&self.find).count() {
            1 => Ok(content.replace(&self.find, &self.plant.replace(CONDITION, &self.condition())).into_bytes()),
            count => Err(format!("{}: its text occurs {count} times in {}, not once", self.name, self.file)),
        }
    }

    fn condition(&self) -> String {
        format!("std::env::var_os(\"{VARIABLE}\").is_some_and(|name| name == \"{}\")", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "bug: b\nfile: a.rs\n--- find\n    if ready {\n--- plant\n    if ready || PLANTED {\n";

    #[test]
    fn a_text_that_occurs_once_is_replaced() {
        let bug = PlantedBug::parse("early".to_owned(), TEXT).unwrap();
        let planted = String::from_utf8(bug.plant(b"fn a() {\n    if ready {\n    }\n}\n").unwrap()).unwrap();
        assert!(planted.contains("    if ready || std::env::var_os(\"SINDRI_PLANTED_BUG\")"), "{planted}");
        assert!(bug.plant(b"nothing").unwrap_err().contains("0 times"));
        assert!(bug.plant(b"    if ready {    if ready {").unwrap_err().contains("2 times"));
    }

    #[test]
    fn a_file_without_a_condition_or_a_section_is_rejected() {
        for invalid in ["", "bug: b\nfile: a.rs\n--- find\na\n", &TEXT.replace("PLANTED", "true")] {
            assert!(PlantedBug::parse(String::new(), invalid).is_err(), "{invalid}");
        }
    }
}
