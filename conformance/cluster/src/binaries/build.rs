//! One entry of the cache: checked, and built if it is missing or damaged.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::error::{ClusterError, Failure};
use crate::home::Home;
use crate::owned_process::{OwnedProcess, ProcessEvent};
use crate::stop::Stop;

use super::component::Component;
use super::go::Go;
use super::manifest::Manifest;
use super::progress::{Progress, print};

/// Digits of a key.
const KEY_DIGITS: usize = 16;
/// Time between two checks of a build or of the lock of another build.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Lines of the compiler's output in an error.
const TAIL_LINES: usize = 15;
/// Compiler flags. They are part of the key.
const FLAGS: [&str; 3] = ["-trimpath", "-buildvcs=false", "-mod=readonly"];

/// A component in the cache.
#[derive(Clone, Debug)]
pub struct Entry {
    component: Component,
    key: String,
    path: PathBuf,
}

impl Entry {
    /// Computes the path of a component.
    pub(super) fn locate(component: Component, home: &Home, go: &Go) -> Result<Self, ClusterError> {
        let key = key(component, go).map_err(|error| ClusterError::from_io(&component.module(), &error))?;
        let path = home.control_plane().join(format!("{}-{key}", component.name()));
        Ok(Self { component, key, path })
    }

    /// Directory of the entry.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checksum of its sources, flags and compiler.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Paths of its binaries.
    pub fn programs(&self) -> impl Iterator<Item = PathBuf> {
        self.component.programs().map(|name| self.path.join(name))
    }

    fn sibling(&self, suffix: &str) -> PathBuf {
        self.path.with_file_name(format!("{}-{}.{suffix}", self.component.name(), self.key))
    }

    /// Builds it if it is missing or damaged.
    pub(super) fn prepare(&self, go: &Go, stop: &Stop) -> Result<(), ClusterError> {
        if self.is_intact() {
            return Ok(());
        }
        let parent = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(|error| ClusterError::from_io(parent, &error))?;
        let _lock = self.lock(stop)?;
        // Another process may have built it in the meantime.
        if self.is_intact() { Ok(()) } else { self.build(go, stop) }
    }

    fn is_intact(&self) -> bool {
        self.path.exists() && Manifest::find_damage(&self.path).is_none()
    }

    /// Waits until no other process builds this entry. The kernel releases the lock when its owner ends in any way.
    fn lock(&self, stop: &Stop) -> Result<File, ClusterError> {
        let path = self.sibling("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|error| ClusterError::from_io(&path, &error))?;
        let mut progress = Progress::new(self.component.name());
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(std::fs::TryLockError::Error(error)) => return Err(ClusterError::from_io(&path, &error)),
                Err(std::fs::TryLockError::WouldBlock) if stop.is_set() => return Err(ClusterError::Interrupted),
                Err(std::fs::TryLockError::WouldBlock) => progress.update("waiting for another program that builds it"),
            }
            pause();
        }
    }

    fn build(&self, go: &Go, stop: &Stop) -> Result<(), ClusterError> {
        let fail = |error: io::Error| ClusterError::from_io(&self.path, &error);
        if self.path.exists() {
            let damage = Manifest::find_damage(&self.path).unwrap_or_default();
            print(&format!("{} in the cache is damaged ({damage}): building it again\n", self.component.name()));
            std::fs::remove_dir_all(&self.path).map_err(fail)?;
        }
        // Left behind by a build that was killed together with its guard.
        let partial = self.sibling("partial");
        let _absent = std::fs::remove_dir_all(&partial);
        std::fs::create_dir_all(partial.join("tmp")).map_err(fail)?;
        let _guard = PartialBuild(&partial);
        self.compile(&partial, go, stop)?;
        std::fs::remove_dir_all(partial.join("tmp")).map_err(fail)?;
        Manifest::write(&partial, self.component.programs()).map_err(fail)?;
        std::fs::rename(&partial, &self.path).map_err(fail)
    }

    /// Runs the compiler, which prints a line for each compiled package.
    fn compile(&self, partial: &Path, go: &Go, stop: &Stop) -> Result<(), ClusterError> {
        let mut progress = Progress::new(format!("building {} with {}", self.component.name(), go.version));
        let mut compiler =
            OwnedProcess::start(&mut self.compiler(partial)).map_err(|error| ClusterError::from_io(partial, &error))?;
        let (mut packages, mut modules, mut output) = (0_usize, 0_usize, Vec::new());
        let status = loop {
            match compiler.next_event(CHECK_INTERVAL, stop)? {
                ProcessEvent::Line(line) if line.starts_with("go: downloading ") => modules += 1,
                ProcessEvent::Line(line) if is_package(&line) => packages += 1,
                ProcessEvent::Line(line) => output.push(line),
                ProcessEvent::Timeout => {}
                ProcessEvent::Ended(status) => break status,
            }
            progress.update(&format!("{modules} modules fetched, {packages} packages compiled"));
            output.drain(..output.len().saturating_sub(TAIL_LINES));
        };
        if !status.success() {
            return Err(ClusterError::Failed(failure(&self.component.name(), output)));
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
        let mut command = OwnedProcess::guarded_command(OsStr::new("go"), &arguments, None);
        command.current_dir(self.component.module()).env("GOTMPDIR", partial.join("tmp"));
        // No C compiler, so that the binaries run in an empty container; no settings of the user.
        command.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "");
        command
    }
}

/// Directory of an unfinished build, removed unless it was renamed.
struct PartialBuild<'a>(&'a Path);

impl Drop for PartialBuild<'_> {
    fn drop(&mut self) {
        let _absent = std::fs::remove_dir_all(self.0);
    }
}

/// Returns true for a line with the name of a package; all other output contains spaces or colons.
fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.contains([' ', ':'])
}

fn failure(name: &str, tail: Vec<String>) -> Failure {
    let text = tail.join("\n");
    let advice = if text.contains("no space left on device") || text.contains("disk quota exceeded") {
        "the disk is full: a build needs about 4 GB in the directories of `go env GOCACHE` and \
         `go env GOMODCACHE`, and 1 GB in the cache of the control plane"
    } else if text.contains("dial tcp") || text.contains("no such host") || text.contains("i/o timeout") {
        "modules could not be fetched: check that the machine reaches the proxy of `go env GOPROXY`"
    } else {
        "read the output of the compiler; `go clean -cache` clears its cache"
    };
    let reason = format!("{name} could not be built");
    Failure { process: Some("go build".to_owned()), reason, tail, advice: advice.to_owned() }
}

/// Computes the checksum of everything that determines the binaries.
fn key(component: Component, go: &Go) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        // With its length, so that different lists have different input.
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
    Ok(hex::encode(hash.finalize()).chars().take(KEY_DIGITS).collect())
}

#[expect(clippy::disallowed_methods, reason = "waits for another process, without a runtime")]
fn pause() {
    std::thread::sleep(CHECK_INTERVAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_go_has_another_key() {
        let go = |version: &str| Go { version: version.into(), target: "linux/amd64".into() };
        let key = |version: &str| key(Component::Kwok, &go(version)).unwrap();
        assert_eq!(key("go1.26.8"), key("go1.26.8"));
        assert_ne!(key("go1.26.8"), key("go1.26.9"));
    }

    #[test]
    fn names_of_packages_are_distinguished_from_other_output() {
        assert!(is_package("k8s.io/api/core/v1") && is_package("net"));
        assert!(!is_package("# k8s.io/api/core/v1") && !is_package("main.go:3:2: undefined: x") && !is_package(""));
    }

    #[test]
    fn a_full_disk_is_distinguished_from_an_error_in_the_sources() {
        let full = failure("kwok", vec!["write /x: no space left on device".into()]);
        assert!(full.to_string().contains("what to do: the disk is full"), "{full}");
        assert!(!failure("kwok", vec!["undefined: x".into()]).to_string().contains("disk"));
    }
}
