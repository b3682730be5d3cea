//! Clusters started with `up`: a file for each in the user's cache directory.
//!
//! The process that keeps a cluster running (command `hold`) writes the file when the cluster is ready and removes it at the
//! end. A file whose keeper has ended is stale: nothing runs, and `down` removes the file.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ClusterError;
use crate::home::Home;

/// Maximum number of clusters, as a bound for scripts that start them in a loop.
const CLUSTERS_MAX: usize = 64;

/// Maximum length of a name.
const NAME_MAX: usize = 40;

/// A cluster started with `up`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct ClusterRecord {
    /// Name.
    pub name: String,
    /// Provider.
    pub provider: String,
    /// Version of Kubernetes.
    pub version: String,
    /// `https://HOST:PORT`.
    pub server: String,
    /// Kubeconfig file.
    pub kubeconfig: PathBuf,
    /// Id of the process that keeps it running.
    pub keeper: u32,
    /// Start time of that process in kernel ticks: a later process with the same id has another.
    pub keeper_began: u64,
    /// Start time of the cluster, in seconds since 1970.
    pub started: u64,
}

impl ClusterRecord {
    /// Returns true if its keeper still runs.
    pub fn is_alive(&self) -> bool {
        process_start_ticks(self.keeper) == Some(self.keeper_began)
    }
}

/// Directory of the files.
#[derive(Clone, Debug)]
pub struct Registry {
    directory: PathBuf,
}

impl Registry {
    /// Opens the registry of a user.
    pub fn new(home: &Home) -> Self {
        Self { directory: home.clusters() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// Directory of a cluster's own files.
    pub fn cluster_directory(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Reserves the given name, or a free one, until `remove`.
    pub fn reserve_name(&self, name: Option<&str>, provider: &str) -> Result<String, ClusterError> {
        std::fs::create_dir_all(&self.directory).map_err(|error| ClusterError::from_io(&self.directory, &error))?;
        if let Some(name) = name {
            check_name(name)?;
            return match self.try_reserve(name) {
                Ok(true) => Ok(name.to_owned()),
                Ok(false) => Err(ClusterError::Usage(format!("a cluster named {name:?} exists already"))),
                Err(error) => Err(ClusterError::from_io(&self.file(name), &error)),
            };
        }
        for number in 1..=CLUSTERS_MAX {
            let name = format!("{provider}-{number}");
            if self.try_reserve(&name).map_err(|error| ClusterError::from_io(&self.file(&name), &error))? {
                return Ok(name);
            }
        }
        Err(ClusterError::Usage(format!("{CLUSTERS_MAX} clusters run already: stop some with `down`")))
    }

    fn try_reserve(&self, name: &str) -> io::Result<bool> {
        match std::fs::File::create_new(self.file(name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes the record of a cluster atomically.
    pub fn write(&self, record: &ClusterRecord) -> io::Result<()> {
        let draft = self.directory.join(format!("{}.draft", record.name));
        std::fs::write(&draft, serde_json::to_vec_pretty(record)?)?;
        std::fs::rename(draft, self.file(&record.name))
    }

    /// Removes the record of a cluster and, unless `keep` is set, its directory.
    pub fn remove(&self, name: &str, keep: bool) {
        let _absent = std::fs::remove_file(self.file(name));
        if !keep {
            let _absent = std::fs::remove_dir_all(self.cluster_directory(name));
        }
    }

    /// Returns all clusters, sorted by name. A name that is only reserved has no record yet.
    pub fn list(&self) -> Result<Vec<ClusterRecord>, ClusterError> {
        let listed = match std::fs::read_dir(&self.directory) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ClusterError::from_io(&self.directory, &error)),
        };
        let paths = listed.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let mut records: Vec<ClusterRecord> = paths.filter_map(|path| read(&path)).collect();
        records.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(records)
    }
}

/// Checks a name: it is part of a path, and of the names of kind's containers.
fn check_name(name: &str) -> Result<(), ClusterError> {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(ClusterError::Usage(format!("--name takes up to {NAME_MAX} lower-case letters, digits and '-', not {name:?}")))
}

fn read(path: &Path) -> Option<ClusterRecord> {
    let is_record = path.extension().is_some_and(|extension| extension == "json");
    let text = is_record.then(|| std::fs::read(path).ok()).flatten()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the start time of a process, if it runs: field 22 of `/proc/ID/stat`.
pub fn process_start_ticks(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field, a name in parentheses, may contain anything.
    let rest = text.rsplit_once(')')?.1;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, keeper: u32) -> ClusterRecord {
        ClusterRecord {
            name: name.to_owned(),
            provider: "local".to_owned(),
            version: "v1.35.4".to_owned(),
            server: "https://127.0.0.1:1".to_owned(),
            kubeconfig: "/nowhere".into(),
            keeper,
            keeper_began: process_start_ticks(keeper).unwrap_or_default(),
            started: 0,
        }
    }

    #[test]
    fn a_name_is_reserved_once_until_it_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::new(&Home::at(directory.path()));
        assert_eq!(registry.reserve_name(None, "local").unwrap(), "local-1");
        assert_eq!(registry.reserve_name(None, "local").unwrap(), "local-2");
        assert!(registry.reserve_name(Some("local-2"), "local").is_err());
        for wrong in ["", "../up", "A", "a/b"] {
            assert!(matches!(registry.reserve_name(Some(wrong), "local"), Err(ClusterError::Usage(_))), "{wrong}");
        }
        registry.remove("local-1", false);
        assert_eq!(registry.reserve_name(None, "local").unwrap(), "local-1");
    }

    #[test]
    fn a_record_is_alive_while_its_keeper_runs_and_not_when_another_process_has_its_id() {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::new(&Home::at(directory.path()));
        registry.reserve_name(Some("mine"), "local").unwrap();
        assert_eq!(registry.list().unwrap(), []);
        let own = record("mine", std::process::id());
        registry.write(&own).unwrap();
        assert_eq!(registry.list().unwrap(), std::slice::from_ref(&own));
        assert!(own.is_alive());
        assert!(!ClusterRecord { keeper_began: own.keeper_began + 1, ..own }.is_alive());
    }
}
