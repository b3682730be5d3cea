//! What runs because someone said `up`: a file for each, in the user's home.
//!
//! Whoever keeps a cluster running (see the command `hold`) writes the file when the cluster works and removes it at
//! the end. A file whose keeper is gone is stale: nothing runs, and the file is removed when one says `down`.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ClusterError;
use crate::home::Home;

/// Clusters that may run at once: nobody wants more, and a loop that starts them has a bound.
const CLUSTERS_MAX: usize = 64;

/// The longest name.
const NAME_MAX: usize = 40;

/// A cluster that someone keeps running.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Record {
    /// What it is called.
    pub name: String,
    /// What kind it is.
    pub provider: String,
    /// Its version.
    pub version: String,
    /// `https://HOST:PORT`.
    pub server: String,
    /// How it is reached.
    pub kubeconfig: PathBuf,
    /// The process that keeps it.
    pub keeper: u32,
    /// When that process began, in the kernel's ticks: another one with the same id began later.
    pub keeper_began: u64,
    /// When it was started, in seconds since 1970.
    pub started: u64,
}

impl Record {
    /// Whether its keeper runs.
    pub fn is_alive(&self) -> bool {
        began(self.keeper) == Some(self.keeper_began)
    }
}

/// The files.
#[derive(Clone, Debug)]
pub struct Registry {
    directory: PathBuf,
}

impl Registry {
    /// Of a home.
    pub fn new(home: &Home) -> Self {
        Self { directory: home.clusters() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// The directory for what a cluster keeps on disk.
    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Takes a name, or finds one. Nobody else gets it until it is given back.
    pub fn take(&self, wanted: Option<&str>, provider: &str) -> Result<String, ClusterError> {
        std::fs::create_dir_all(&self.directory).map_err(|error| ClusterError::file(&self.directory, &error))?;
        if let Some(name) = wanted {
            require_plain(name)?;
            return match self.try_take(name) {
                Ok(true) => Ok(name.to_owned()),
                Ok(false) => Err(ClusterError::Mistake(format!("there is a cluster {name:?} already"))),
                Err(error) => Err(ClusterError::file(&self.file(name), &error)),
            };
        }
        for number in 1..=CLUSTERS_MAX {
            let name = format!("{provider}-{number}");
            if self.try_take(&name).map_err(|error| ClusterError::file(&self.file(&name), &error))? {
                return Ok(name);
            }
        }
        Err(ClusterError::Mistake(format!("{CLUSTERS_MAX} clusters run already: end some with `down`")))
    }

    fn try_take(&self, name: &str) -> io::Result<bool> {
        match std::fs::File::create_new(self.file(name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes what is known of a cluster, all at once.
    pub fn write(&self, record: &Record) -> io::Result<()> {
        let draft = self.directory.join(format!("{}.draft", record.name));
        std::fs::write(&draft, serde_json::to_vec_pretty(record)?)?;
        std::fs::rename(draft, self.file(&record.name))
    }

    /// Forgets a cluster, and removes what it kept on disk, unless that is to stay.
    pub fn remove(&self, name: &str, keep: bool) {
        let _absent = std::fs::remove_file(self.file(name));
        if !keep {
            let _absent = std::fs::remove_dir_all(self.place(name));
        }
    }

    /// Every cluster, by name. A name that is only taken has no record yet.
    pub fn list(&self) -> Result<Vec<Record>, ClusterError> {
        let listed = match std::fs::read_dir(&self.directory) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ClusterError::file(&self.directory, &error)),
        };
        let paths = listed.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let mut records: Vec<Record> = paths.filter_map(|path| read(&path)).collect();
        records.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(records)
    }
}

/// A name is part of a path, and of what kind calls its containers.
fn require_plain(name: &str) -> Result<(), ClusterError> {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(ClusterError::Mistake(format!("--name takes up to {NAME_MAX} small letters, digits and '-', not {name:?}")))
}

fn read(path: &Path) -> Option<Record> {
    let is_record = path.extension().is_some_and(|extension| extension == "json");
    let text = is_record.then(|| std::fs::read(path).ok()).flatten()?;
    serde_json::from_slice(&text).ok()
}

/// When a process began, if it runs: the twenty-second field of what the kernel says about it.
pub fn began(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field, a name in parentheses, may contain anything.
    let rest = text.rsplit_once(')')?.1;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, keeper: u32) -> Record {
        Record {
            name: name.to_owned(),
            provider: "local".to_owned(),
            version: "v1.35.4".to_owned(),
            server: "https://127.0.0.1:1".to_owned(),
            kubeconfig: "/nowhere".into(),
            keeper,
            keeper_began: began(keeper).unwrap_or_default(),
            started: 0,
        }
    }

    #[test]
    fn a_name_is_given_once_until_it_is_given_back() {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::new(&Home::at(directory.path()));
        assert_eq!(registry.take(None, "local").unwrap(), "local-1");
        assert_eq!(registry.take(None, "local").unwrap(), "local-2");
        assert!(registry.take(Some("local-2"), "local").is_err());
        for wrong in ["", "../up", "A", "a/b"] {
            assert!(matches!(registry.take(Some(wrong), "local"), Err(ClusterError::Mistake(_))), "{wrong}");
        }
        registry.remove("local-1", false);
        assert_eq!(registry.take(None, "local").unwrap(), "local-1");
    }

    #[test]
    fn a_record_is_alive_while_its_keeper_is_and_not_when_another_has_its_id() {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::new(&Home::at(directory.path()));
        registry.take(Some("mine"), "local").unwrap();
        assert_eq!(registry.list().unwrap(), []);
        let own = record("mine", std::process::id());
        registry.write(&own).unwrap();
        assert_eq!(registry.list().unwrap(), std::slice::from_ref(&own));
        assert!(own.is_alive());
        assert!(!Record { keeper_began: own.keeper_began + 1, ..own }.is_alive());
    }
}
