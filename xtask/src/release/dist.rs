//! `cargo xtask dist`: an archive of the binaries with completions, man pages and licences, a bill of materials, and checksums.

use std::path::{Path, PathBuf};

use super::archive::{Owner, compress, compute_sha256, write_tar};
use super::binaries::{BINARIES, Built, build, prepare_directory, version};
use super::files::{copy, fail, make_directory, megabytes, write};
use super::licences::make_licences;
use super::sbom::make_sbom;
use super::shipped_crates::list_shipped_crates;
use crate::dependencies;
use crate::packages::succeed;
use crate::process::{Run, root};

/// Shells with completions, and the names of their files.
const SHELLS: [(&str, &str); 3] = [("bash", "sindri.bash"), ("zsh", "_sindri"), ("fish", "sindri.fish")];
/// Files of the project in every archive.
const PAGES: [&str; 3] = ["README.md", "LICENSE", "CHANGELOG.md"];
/// File with the licences of others.
const LICENCES: &str = "THIRD-PARTY-LICENSES.txt";
/// Script that installs an archive.
const INSTALL_SCRIPT: &str = "deploy/install.sh";

/// Makes everything in `target/dist`. The exit code is 0 only if the licences of all dependencies are permitted.
pub fn make_archives() -> Result<u8, String> {
    let code = dependencies::check_release()?;
    let built = build()?;
    let directory = prepare_directory("dist")?;
    let crates = list_shipped_crates(built.architecture.triple)?;
    let archive = make_archive(&built, &make_licences(&crates)?, &directory)?;
    let sbom = directory.join("sindri.cdx.json");
    let document = serde_json::to_string_pretty(&make_sbom(&crates)).map_err(|error| error.to_string())?;
    write(&sbom, document)?;
    let script = directory.join("install.sh");
    copy(&root().join(INSTALL_SCRIPT), &script, 0o755)?;
    let files = [archive, sbom, script];
    write(&directory.join("SHA256SUMS"), list_checksums(&files)?)?;
    for file in &files {
        println!("{:>6.1} MB  {}", megabytes(file)?, file.display());
    }
    Ok(code)
}

fn make_archive(built: &Built, licences: &str, directory: &Path) -> Result<PathBuf, String> {
    let name = format!("sindri-{}-linux-{}", version(), built.architecture.name);
    let content = directory.join(&name);
    for (binary, _) in BINARIES {
        copy(&built.directory.join(binary), &content.join("bin").join(binary), 0o755)?;
    }
    for page in PAGES {
        copy(&root().join(page), &content.join(page), 0o644)?;
    }
    write(&content.join(LICENCES), licences)?;
    let command = || Run::program(built.directory.join("sindri"));
    for (shell, file) in SHELLS {
        match command().args(["completion", shell]).captured()? {
            (0, script) => write(&content.join("completions").join(file), script)?,
            (_, output) => return Err(format!("sindri completion {shell}: {output}")),
        }
    }
    let pages = content.join("man/man1");
    make_directory(&pages, 0o755)?;
    succeed(command().arg("man").arg(&pages))?;
    let tar = directory.join(format!("{name}.tar"));
    write_tar(directory, &[&name], Owner::Root, &built.committed, &tar)?;
    compress(&tar)?;
    std::fs::remove_file(&tar).map_err(fail(&tar))?;
    std::fs::remove_dir_all(&content).map_err(fail(&content))?;
    Ok(tar.with_extension("tar.gz"))
}

/// Makes the list that `sha256sum --check` reads.
fn list_checksums(files: &[PathBuf]) -> Result<String, String> {
    let mut list = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        list.push_str(&format!("{}  {name}\n", compute_sha256(file)?));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an archive like that of a release in a directory; returns its path.
    fn make_small_archive(directory: &Path) -> PathBuf {
        let content = directory.join("sindri-0.0.0-linux-x86_64");
        for file in ["bin/sindri", "man/man1/sindri.1", "completions/sindri.bash", "completions/_sindri"] {
            write(&content.join(file), file).unwrap();
        }
        write(&content.join("completions/sindri.fish"), "").unwrap();
        let tar = directory.join("sindri-0.0.0-linux-x86_64.tar");
        write_tar(directory, &["sindri-0.0.0-linux-x86_64"], Owner::Root, "1700000000", &tar).unwrap();
        compress(&tar).unwrap();
        tar.with_extension("tar.gz")
    }

    #[test]
    fn an_archive_is_installed_only_if_its_checksum_is_right() {
        let directory = std::env::temp_dir().join(format!("sindri-dist-{}", std::process::id()));
        let archive = make_small_archive(&directory);
        let prefix = directory.join("prefix");
        let install = || {
            let script = Run::program(root().join(INSTALL_SCRIPT)).arg("--prefix").arg(&prefix);
            script.arg(&archive).captured().unwrap()
        };
        let (code, output) = install();
        assert!(code == 1 && output.contains("SHA256SUMS is missing"), "{output}");
        write(&directory.join("SHA256SUMS"), format!("{}  sindri-0.0.0-linux-x86_64.tar.gz\n", "0".repeat(64)))
            .unwrap();
        let (code, output) = install();
        assert!(code == 1 && output.contains("is damaged"), "{output}");
        assert!(!prefix.exists());
        write(&directory.join("SHA256SUMS"), list_checksums(std::slice::from_ref(&archive)).unwrap()).unwrap();
        let (code, output) = install();
        let installed = std::fs::read_to_string(prefix.join("bin/sindri"));
        let completions = prefix.join("share/bash-completion/completions/sindri").exists();
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(code == 0 && output.contains("installed sindri-0.0.0-linux-x86_64"), "{output}");
        assert_eq!(installed.unwrap(), "bin/sindri");
        assert!(completions);
    }
}
