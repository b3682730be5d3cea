//! Running other programs: cargo, and the binaries that it builds.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Binaries that the conformance suite and the demo start.
pub const REAL_BINARIES: [&str; 5] =
    ["sindri-broker", "sindri-agent", "sindri", "sindri-apiserver", "sindri-conformance"];

/// The project's directory.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "cargo's own variable says where it builds")]
    let chosen = std::env::var("CARGO_TARGET_DIR").ok().map(PathBuf::from);
    chosen.unwrap_or_else(|| root().join("target"))
}

/// Builds binaries for tests and the simulation: quick to compile.
pub fn build(binaries: &[&str]) -> Result<(), String> {
    cargo_build(binaries, &[])
}

/// Builds binaries for benchmarks, as they are shipped.
pub fn build_optimised(binaries: &[&str]) -> Result<(), String> {
    cargo_build(binaries, &["--release"])
}

/// Selects the whole workspace, so that the features of dependencies, and with them the compiled dependencies, are the
/// same for every task. Cargo shows its progress.
fn cargo_build(binaries: &[&str], profile: &[&str]) -> Result<(), String> {
    let binaries = binaries.iter().flat_map(|binary| ["--bin", binary]);
    match Run::cargo().args(["build", "--workspace"]).args(profile).args(binaries).code()? {
        0 => Ok(()),
        code => Err(format!("cargo build failed (exit code {code})")),
    }
}

/// Directory of the binaries that `build` makes.
pub fn binaries() -> PathBuf {
    target().join("debug")
}

/// One program to run.
pub struct Run {
    command: Command,
    name: String,
}

impl Run {
    /// Some program.
    pub fn program(program: impl AsRef<OsStr>) -> Self {
        let name = program.as_ref().to_string_lossy().into_owned();
        Self { command: Command::new(program), name }
    }

    /// Cargo, in the project's directory.
    pub fn cargo() -> Self {
        let mut run = Self::program(env!("CARGO"));
        run.command.current_dir(root());
        // Cargo set these for this program. The build script of `ring` depends on them: with them, a build by a task and
        // one from a shell would each undo the other.
        let is_of_this_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_of_this_package)) {
            run.command.env_remove(name);
        }
        run
    }

    /// A binary that `build` made.
    pub fn built(name: &str) -> Self {
        Self::program(binaries().join(name))
    }

    /// A binary that `build_optimised` made.
    pub fn built_optimised(name: &str) -> Self {
        Self::program(target().join("release").join(name))
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn directory(mut self, directory: impl AsRef<std::path::Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs it to its end and returns its exit code.
    pub fn code(mut self) -> Result<u8, String> {
        let status = self.command.status().map_err(|error| format!("{}: {error}", self.name))?;
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }

    /// Runs it, prints its standard output, and passes each line to `see`.
    pub fn watched(mut self, mut see: impl FnMut(&str)) -> Result<u8, String> {
        let fail = |error: std::io::Error| format!("{}: {error}", self.name);
        let mut child = self.command.stdout(Stdio::piped()).spawn().map_err(fail)?;
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).lines() {
                let line = line.map_err(fail)?;
                println!("{line}");
                see(&line);
            }
        }
        let status = child.wait().map_err(fail)?;
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }

    /// Runs it and returns its exit code and everything that it printed, without printing it.
    pub fn captured(self) -> Result<(u8, String), String> {
        self.collected(|_| {})
    }

    /// The same; prints each line when it comes, after a label: another program prints at the same time.
    pub fn labelled(self, label: &str) -> Result<(u8, String), String> {
        self.collected(|line| println!("{label} | {line}"))
    }

    fn collected(self, mut see: impl FnMut(&str)) -> Result<(u8, String), String> {
        let Self { mut command, name } = self;
        let fail = |error: std::io::Error| format!("{name}: {error}");
        let (reader, writer) = std::io::pipe().map_err(fail)?;
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(fail)?).stderr(writer);
        let mut child = command.spawn().map_err(fail)?;
        // It holds the other end of the pipe.
        drop(command);
        let mut output = String::new();
        for line in BufReader::new(reader).split(b'\n') {
            let line = line.map_err(fail)?;
            let line = String::from_utf8_lossy(&line);
            see(&line);
            output.push_str(&line);
            output.push('\n');
        }
        let status = child.wait().map_err(fail)?;
        Ok((status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1), output))
    }
}
