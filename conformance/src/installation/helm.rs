//! Runs of helm with the kubeconfig of a cluster. The output of each is kept in a file.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::api::NAMESPACE;
use crate::orphan_cleanup::OrphanCleanup;

/// Variables with the directories of helm's own files.
const DIRECTORIES: [&str; 3] = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"];

/// The program, and directories instead of those of the user.
pub struct Helm {
    program: PathBuf,
    directory: PathBuf,
    kubeconfig: PathBuf,
    runs: usize,
}

impl Helm {
    /// Uses a directory that exists.
    pub fn new(program: &Path, directory: PathBuf, kubeconfig: &Path) -> Self {
        Self { program: program.to_owned(), directory, kubeconfig: kubeconfig.to_owned(), runs: 0 }
    }

    /// Starts a run.
    pub fn start(&mut self, arguments: &[&str]) -> Result<HelmRun, String> {
        self.runs += 1;
        let fail = |error: std::io::Error| format!("{}: {error}", self.program.display());
        let file = self.directory.join(format!("output-{}", self.runs));
        let output = File::create(&file).map_err(fail)?;
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--namespace", NAMESPACE]).arg("--kubeconfig").arg(&self.kubeconfig);
        command.envs(DIRECTORIES.map(|variable| (variable, &self.directory))).process_group(0).stdin(Stdio::null());
        let child = command.stdout(output.try_clone().map_err(fail)?).stderr(output).spawn().map_err(fail)?;
        let cleanup = OrphanCleanup::kill_process(child.id()).map_err(fail)?;
        Ok(HelmRun { title: format!("helm {}", arguments.join(" ")), child, file, _cleanup: cleanup })
    }

    /// Returns the output of all runs so far.
    pub fn read_outputs(&self) -> Vec<String> {
        (1..=self.runs).map(|run| read(&self.directory.join(format!("output-{run}")))).collect()
    }
}

/// One run. Dropping it ends it.
pub struct HelmRun {
    title: String,
    child: Child,
    file: PathBuf,
    _cleanup: OrphanCleanup,
}

impl HelmRun {
    /// Returns the output if the run has ended; a failure is an error with the output.
    pub fn result(&mut self) -> Result<Option<String>, String> {
        match self.child.try_wait().map_err(|error| format!("{}: {error}", self.title))? {
            None => Ok(None),
            Some(status) if status.success() => Ok(Some(read(&self.file))),
            Some(status) => Err(format!("{}: {status}\n{}", self.title, read(&self.file))),
        }
    }
}

impl Drop for HelmRun {
    fn drop(&mut self) {
        // Both fail only for a run that has ended.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}
