//! Archives that are the same whenever they are made from the same files: sorted names, one time, no names of users.

use std::path::Path;

use super::files::fail;
use crate::packages::succeed;
use crate::process::Run;

/// Owner of the files in an archive.
#[derive(Clone, Copy)]
pub enum Owner {
    Root,
    /// User and group that the programs run as in an image.
    Program(u32),
}

/// Writes the entries of a directory to a tar file; `committed` is the time of all of them.
pub fn write_tar(directory: &Path, entries: &[&str], owner: Owner, committed: &str, to: &Path) -> Result<(), String> {
    let id = match owner {
        Owner::Root => 0,
        Owner::Program(id) => id,
    };
    let tar = Run::program("tar").arg("--create").arg("--file").arg(to).arg("--directory").arg(directory);
    let tar = tar.args(["--format=posix", "--pax-option=delete=atime,delete=ctime", "--sort=name", "--numeric-owner"]);
    let tar = tar.arg(format!("--mtime=@{committed}")).arg(format!("--owner={id}")).arg(format!("--group={id}"));
    succeed(tar.args(entries))
}

/// Appends further entries, of another owner.
pub fn append(directory: &Path, entries: &[&str], owner: Owner, committed: &str, to: &Path) -> Result<(), String> {
    let part = to.with_extension("part");
    write_tar(directory, entries, owner, committed, &part)?;
    succeed(Run::program("tar").arg("--concatenate").arg("--file").arg(to).arg(&part))?;
    std::fs::remove_file(&part).map_err(fail(&part))
}

/// Compresses a file to one with the suffix `.gz`, without its name and time.
pub fn compress(file: &Path) -> Result<(), String> {
    succeed(Run::program("gzip").args(["--no-name", "--best", "--force", "--keep"]).arg(file))
}

/// Computes the SHA-256 of a file in hexadecimal digits.
pub fn compute_sha256(file: &Path) -> Result<String, String> {
    let (code, output) = Run::program("sha256sum").arg("--").arg(file).captured()?;
    match output.split_once(' ') {
        Some((digest, _)) if code == 0 => Ok(digest.trim_start_matches('\\').to_owned()),
        _ => Err(format!("sha256sum: {}", output.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::files::write;

    #[test]
    fn the_same_files_make_the_same_archive_at_any_time() {
        let directory = std::env::temp_dir().join(format!("sindri-archive-{}", std::process::id()));
        let digests: Vec<String> = ["a", "b"]
            .iter()
            .map(|name| {
                let here = directory.join(name);
                write(&here.join("x/two"), "2").unwrap();
                write(&here.join("x/one"), "1").unwrap();
                let tar = directory.join(format!("{name}.tar"));
                write_tar(&here, &["x"], Owner::Root, "1700000000", &tar).unwrap();
                append(&here, &["x/one"], Owner::Program(65532), "1700000000", &tar).unwrap();
                compress(&tar).unwrap();
                compute_sha256(&tar.with_extension("tar.gz")).unwrap()
            })
            .collect();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(digests[0], digests[1]);
        assert_eq!(digests[0].len(), 64);
    }
}
