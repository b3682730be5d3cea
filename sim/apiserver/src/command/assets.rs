//! `sindri-apiserver assets`: a directory that test environments accept in place of the real programs.

use std::path::{Path, PathBuf};

use super::files::StartError;

/// Programs that this one stands in for.
const STAND_INS: [&str; 2] = ["kube-apiserver", "etcd"];

/// Options of `assets`.
#[derive(clap::Args)]
pub(crate) struct AssetsCommand {
    /// Directory to create, for the variable KUBEBUILDER_ASSETS.
    directory: PathBuf,
}

impl AssetsCommand {
    /// Links the stand-ins and the kubectl of this machine into the directory.
    pub(crate) fn run(self) -> Result<(), StartError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StartError::Write { role: "program", path, source }
        };
        std::fs::create_dir_all(&self.directory).map_err(failed(&self.directory))?;
        let own = std::env::current_exe().map_err(StartError::Runtime)?;
        for name in STAND_INS {
            let link = self.directory.join(name);
            replace_link(&own, &link).map_err(failed(&link))?;
        }
        match find_program("kubectl") {
            Some(kubectl) => {
                let link = self.directory.join("kubectl");
                replace_link(&kubectl, &link).map_err(failed(&link))?;
            }
            None => eprintln!("note: no kubectl in PATH; only tests that start it need one"),
        }
        println!("export KUBEBUILDER_ASSETS={}", absolute(&self.directory).display());
        Ok(())
    }
}

/// Creates a link, or replaces an existing one.
fn replace_link(program: &Path, link: &Path) -> std::io::Result<()> {
    if link.is_symlink() {
        std::fs::remove_file(link)?;
    }
    std::os::unix::fs::symlink(program, link)
}

/// Returns a program of the search path.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
