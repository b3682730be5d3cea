//! The file in which `serve --data` keeps the objects.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sindri_apiserver::{ApiServer, SharedServer};

use super::files::{self, StartError};
use super::run::wall_clock;

/// Time between two looks for changes.
const INTERVAL: Duration = Duration::from_secs(1);

/// A file with the objects of a server.
pub(super) struct DataFile {
    path: PathBuf,
    /// Revision in the file.
    written: Option<u64>,
}

impl DataFile {
    /// Loads the objects of the file, if it exists, into a server.
    pub(super) fn open(path: &Path, machine: &mut ApiServer) -> Result<Self, StartError> {
        if path.exists() {
            let text = files::read(path)?;
            let invalid = |message: String| StartError::Flag { flag: "data".to_owned(), message };
            let document = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
            machine.import(wall_clock(), &document).map_err(invalid)?;
        }
        Ok(Self { path: path.to_owned(), written: None })
    }

    /// Writes the file after each change, at most once in an interval. A failed write is reported and repeated.
    pub(super) async fn keep(&mut self, server: &SharedServer) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.save(server);
        }
    }

    /// Writes the file, if something changed.
    pub(super) fn save(&mut self, server: &SharedServer) {
        let revision = server.with(|machine| machine.revision());
        if self.written == Some(revision) {
            return;
        }
        let text = server.with(|machine| machine.export()).to_string();
        let new = self.path.with_extension("new");
        let renamed = files::write_as("data", &new, &text).and_then(|()| {
            let failed = |source| StartError::Write { role: "data", path: self.path.clone(), source };
            std::fs::rename(&new, &self.path).map_err(failed)
        });
        match renamed {
            Ok(()) => self.written = Some(revision),
            Err(error) => eprintln!("error: {error}"),
        }
    }
}
