//! The file with the contexts, and the files with the tokens of their logins.

use std::path::{Path, PathBuf};

use super::file::ContextFile;
use crate::failure::Failure;
use crate::file_lock::FileLock;
use crate::private_file;

/// Name of the file with the contexts.
const FILE: &str = "config.toml";

/// The directory with the files of this program.
#[derive(Clone, Debug)]
pub(crate) struct ContextStore {
    directory: PathBuf,
}

impl ContextStore {
    /// Creates a store in a directory, which need not exist.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the path of the file with the contexts.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Returns the path of the tokens of a context's login, or of a login without a context.
    pub(crate) fn token_path(&self, context: Option<&str>) -> PathBuf {
        match context {
            Some(name) => self.directory.join("tokens").join(format!("{name}.json")),
            None => self.directory.join("token.json"),
        }
    }

    /// Reads the contexts; there are none if there is no file. A file that contains a key must not be readable by others.
    pub(crate) fn read(&self) -> Result<ContextFile, Failure> {
        read(&self.path())
    }

    /// Changes the contexts, one command at a time.
    pub(crate) async fn change<T>(
        &self,
        change: impl FnOnce(&mut ContextFile) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = self.path();
        let lock = FileLock::acquire(&path).await?;
        let mut file = read(&path)?;
        let result = change(&mut file)?;
        let to_failure = |reason: String| Failure::Operation(format!("{} cannot be written: {reason}", path.display()));
        let text = toml::to_string(&file).map_err(|error| to_failure(error.to_string()))?;
        private_file::replace(&lock, text.as_bytes()).map_err(|error| to_failure(error.to_string()))?;
        Ok(result)
    }
}

fn read(path: &Path) -> Result<ContextFile, Failure> {
    let to_failure = |reason: String| Failure::Usage(format!("the file of contexts {}: {reason}", path.display()));
    let Some(content) = private_file::read(path).map_err(|error| to_failure(error.to_string()))? else {
        return Ok(ContextFile::default());
    };
    let text = String::from_utf8(content).map_err(|_| to_failure("it is not UTF-8".to_owned()))?;
    // Without the line of the error, which may contain a key.
    let to_invalid = |error: toml::de::Error| to_failure(format!("it is not valid: {}", error.message()));
    let file: ContextFile = toml::from_str(&text).map_err(to_invalid)?;
    if file.has_key() {
        private_file::check_mode(path).map_err(|error| to_failure(format!("{error} {}", path.display())))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::{Context, Secret};
    use super::*;

    fn context(broker: &str, key: Option<&str>) -> Context {
        let key = key.map(|key| Secret(key.to_owned()));
        Context { broker: broker.to_owned(), broker_ca_file: None, key_file: None, key }
    }

    async fn add(store: &ContextStore, name: &str, context: Context) {
        let insert = |file: &mut ContextFile| {
            file.contexts.insert(name.to_owned(), context);
            Ok(())
        };
        store.change(insert).await.unwrap();
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[tokio::test]
    async fn contexts_are_kept_in_a_file_for_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContextStore::new(directory.path().join("sindri"));
        assert!(store.read().unwrap().contexts.is_empty());
        add(&store, "prod", context("https://a.example", Some("secret \"quoted\""))).await;
        add(&store, "eu.west", context("https://b.example", None)).await;
        let file = store.read().unwrap();
        assert_eq!(file.contexts.keys().collect::<Vec<_>>(), ["eu.west", "prod"]);
        assert_eq!(file.contexts["prod"].key.as_ref().unwrap().0, "secret \"quoted\"");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.path()), mode(&store.directory)), (0o600, 0o700));
    }

    #[tokio::test]
    async fn a_file_that_others_may_read_is_refused_if_it_has_a_key() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContextStore::new(directory.path().to_owned());
        add(&store, "a", context("https://a.example", None)).await;
        set_mode(&store.path(), 0o644);
        assert!(store.read().is_ok());
        add(&store, "b", context("https://b.example", Some("secret"))).await;
        set_mode(&store.path(), 0o640);
        let refused = store.read().unwrap_err().to_string();
        assert!(refused.contains("mode 640") && refused.ends_with(&store.path().display().to_string()), "{refused}");
    }

    #[tokio::test]
    async fn a_damaged_file_is_named_without_its_content_and_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContextStore::new(directory.path().to_owned());
        let damaged = "[contexts.a]\nbroker = \"https://a\"\nkey = \"hunter2\ncolor = 1\n";
        std::fs::write(store.path(), damaged).unwrap();
        set_mode(&store.path(), 0o600);
        let error = store.change(|_| Ok(())).await.unwrap_err().to_string();
        assert!(error.contains("config.toml: it is not valid: ") && !error.contains("hunter2"), "{error}");
        assert_eq!(std::fs::read_to_string(store.path()).unwrap(), damaged);
    }
}
