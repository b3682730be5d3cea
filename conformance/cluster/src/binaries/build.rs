//! One entry of the cache: looked at, and built if it is not whole.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::error::{ClusterError, Failure};
use crate::home::Home;
use crate::leashed::{Heard, Leashed};
use crate::stop::Stop;

use super::component::Component;
use super::go::Go;
use super::manifest::{Manifest, hex};
use super::progress::{Progress, print};

/// Digits of a key: enough that two never meet.
const KEY_DIGITS: usize = 16;
/// How often whoever waits for another's build, or watches its own, looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Lines of the compiler that are shown when it fails.
const TAIL_LINES: usize = 15;
/// What has an effect on what is built, beside its sources: a change of these is another entry.
const FLAGS: [&str; 3] = ["-trimpath", "-buildvcs=false", "-mod=readonly"];

/// A component in the cache.
#[derive(Clone, Debug)]
pub struct Entry {
    component: Component,
    key: String,
    path: PathBuf,
}

impl Entry {
    /// Where a component belongs.
    pub(super) fn of(component: Component, home: &Home, go: &Go) -> Result<Self, ClusterError> {
        let key = key(component, go).map_err(|error| ClusterError::file(&component.module(), &error))?;
        let path = home.control_plane().join(format!("{}-{key}", component.name()));
        Ok(Self { component, key, path })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was made from.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its binaries.
    pub fn programs(&self) -> impl Iterator<Item = PathBuf> {
        self.component.programs().map(|name| self.path.join(name))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.path.with_file_name(format!("{}-{}.{suffix}", self.component.name(), self.key))
    }

    /// Builds it if it is not there or not whole.
    pub(super) fn prepare(&self, go: &Go, stop: &Stop) -> Result<(), ClusterError> {
        if self.is_whole() {
            return Ok(());
        }
        let parent = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(|error| ClusterError::file(parent, &error))?;
        let _lock = self.lock(stop)?;
        // Someone else may have built it while we waited.
        if self.is_whole() { Ok(()) } else { self.build(go, stop) }
    }

    fn is_whole(&self) -> bool {
        self.path.exists() && Manifest::damage(&self.path).is_none()
    }

    /// Waits until nobody else builds this entry. The kernel unlocks when the owner ends, however it does.
    fn lock(&self, stop: &Stop) -> Result<File, ClusterError> {
        let path = self.beside("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|error| ClusterError::file(&path, &error))?;
        let mut progress = Progress::new(self.component.name());
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(std::fs::TryLockError::Error(error)) => return Err(ClusterError::file(&path, &error)),
                Err(std::fs::TryLockError::WouldBlock) if stop.is_set() => return Err(ClusterError::Interrupted),
                Err(std::fs::TryLockError::WouldBlock) => progress.at("waiting for another program that builds it"),
            }
            pause();
        }
    }

    fn build(&self, go: &Go, stop: &Stop) -> Result<(), ClusterError> {
        let fail = |error: io::Error| ClusterError::file(&self.path, &error);
        if self.path.exists() {
            let damage = Manifest::damage(&self.path).unwrap_or_default();
            print(&format!("{} in the cache is damaged ({damage}): it is built again\n", self.component.name()));
            std::fs::remove_dir_all(&self.path).map_err(fail)?;
        }
        // Left by a build that was killed together with its guard.
        let partial = self.beside("partial");
        let _absent = std::fs::remove_dir_all(&partial);
        std::fs::create_dir_all(partial.join("tmp")).map_err(fail)?;
        let _guard = Partial(&partial);
        self.compile(&partial, go, stop)?;
        std::fs::remove_dir_all(partial.join("tmp")).map_err(fail)?;
        Manifest::write(&partial, self.component.programs()).map_err(fail)?;
        std::fs::rename(&partial, &self.path).map_err(fail)
    }

    /// Runs the compiler, and counts what it says: a line for each package that it compiles.
    fn compile(&self, partial: &Path, go: &Go, stop: &Stop) -> Result<(), ClusterError> {
        let mut progress = Progress::new(format!("building {} with {}", self.component.name(), go.version));
        let mut compiler =
            Leashed::start(&mut self.compiler(partial)).map_err(|error| ClusterError::file(partial, &error))?;
        let (mut packages, mut modules, mut said) = (0_usize, 0_usize, Vec::new());
        let status = loop {
            match compiler.hear(LOOK_EVERY, stop)? {
                Heard::Line(line) if line.starts_with("go: downloading ") => modules += 1,
                Heard::Line(line) if is_package(&line) => packages += 1,
                Heard::Line(line) => said.push(line),
                Heard::Nothing => {}
                Heard::Ended(status) => break status,
            }
            progress.at(&format!("{modules} modules fetched, {packages} packages compiled"));
            said.drain(..said.len().saturating_sub(TAIL_LINES));
        };
        if !status.success() {
            return Err(ClusterError::Failed(failure(&self.component.name(), said)));
        }
        progress.done(&format!("done, {packages} packages compiled"));
        Ok(())
    }

    fn compiler(&self, partial: &Path) -> Command {
        let mut arguments: Vec<OsString> = vec!["build".into(), "-v".into()];
        arguments.extend(FLAGS.map(OsString::from));
        arguments.push(format!("-modfile={}", self.component.module_file()).into());
        arguments.extend(["-ldflags".into(), self.component.linker_flags().into(), "-o".into(), partial.into()]);
        arguments.extend(self.component.packages().iter().map(OsString::from));
        let mut command = Leashed::guarded(OsStr::new("go"), &arguments, None);
        command.current_dir(self.component.module()).env("GOTMPDIR", partial.join("tmp"));
        // No C compiler, so that the binaries run in an empty container; no settings of the user's own.
        command.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "");
        command
    }
}

/// What is built so far, removed unless it was renamed.
struct Partial<'a>(&'a Path);

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        let _absent = std::fs::remove_dir_all(self.0);
    }
}

/// The compiler names packages one a line, and says everything else in words.
fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.contains([' ', ':'])
}

fn failure(name: &str, tail: Vec<String>) -> Failure {
    let text = tail.join("\n");
    let advice = if text.contains("no space left on device") || text.contains("disk quota exceeded") {
        "the disk is full: a build needs about 4 GB where `go env GOCACHE` and `go env GOMODCACHE` say, \
         and 1 GB in the cache of the control plane"
    } else if text.contains("dial tcp") || text.contains("no such host") || text.contains("i/o timeout") {
        "modules could not be fetched: see whether the machine reaches what `go env GOPROXY` says"
    } else {
        "see what the compiler says; `go clean -cache` makes it forget everything"
    };
    let reason = format!("{name} could not be built");
    Failure { process: Some("go build".to_owned()), reason, tail, advice: advice.to_owned() }
}

/// A checksum of everything that decides what comes out.
fn key(component: Component, go: &Go) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        // With its length, so that no two lists of parts look the same.
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    for text in [go.version.as_str(), &go.target, &component.linker_flags(), &FLAGS.join(" ")] {
        add(text.as_bytes());
    }
    for file in component.sources()? {
        add(file.file_name().unwrap_or_default().as_encoded_bytes());
        add(&std::fs::read(&file)?);
    }
    Ok(hex(&hash.finalize()).chars().take(KEY_DIGITS).collect())
}

#[expect(clippy::disallowed_methods, reason = "waits for another process, where no runtime can be")]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_go_is_another_entry_and_the_same_go_is_the_same() {
        let go = |version: &str| Go { version: version.into(), target: "linux/amd64".into() };
        let key = |version: &str| key(Component::Kwok, &go(version)).unwrap();
        assert_eq!(key("go1.26.8"), key("go1.26.8"));
        assert_ne!(key("go1.26.8"), key("go1.26.9"));
    }

    #[test]
    fn what_the_compiler_says_is_told_from_the_packages_that_it_names() {
        assert!(is_package("k8s.io/api/core/v1") && is_package("net"));
        assert!(!is_package("# k8s.io/api/core/v1") && !is_package("main.go:3:2: undefined: x") && !is_package(""));
    }

    #[test]
    fn a_full_disk_is_told_from_a_mistake_in_the_sources() {
        let full = failure("kwok", vec!["write /x: no space left on device".into()]);
        assert!(full.to_string().contains("what to do: the disk is full"), "{full}");
        assert!(!failure("kwok", vec!["undefined: x".into()]).to_string().contains("disk"));
    }
}
