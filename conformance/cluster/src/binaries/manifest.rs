//! Manifest of a cache entry: a file next to the binaries with their checksums, sizes and modification times.
//!
//! A binary with unchanged size and modification time is assumed to be intact, so that a check is cheap. Otherwise its checksum
//! is computed.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Name of the file.
const FILE: &str = "manifest";
/// Size of a read.
const PIECE_BYTES: usize = 1 << 20;

/// Writes and checks the manifest of a directory.
pub struct Manifest;

impl Manifest {
    /// Writes the manifest for some files of a directory.
    pub fn write<'a>(directory: &Path, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let lines = names.map(|name| describe(&directory.join(name)).map(|text| format!("{text} {name}\n")));
        let text = lines.collect::<io::Result<String>>()?;
        std::fs::write(directory.join(FILE), text)
    }

    /// Returns the first difference between a directory and its manifest.
    pub fn find_damage(directory: &Path) -> Option<String> {
        let Ok(text) = std::fs::read_to_string(directory.join(FILE)) else { return Some("it has no manifest".into()) };
        if text.is_empty() || !text.ends_with('\n') {
            return Some("its manifest is truncated".to_owned());
        }
        text.lines().find_map(|line| find_damage_of(directory, line))
    }
}

fn describe(path: &Path) -> io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    Ok(format!("{} {} {}.{:09}", checksum(path)?, metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

fn checksum(path: &Path) -> io::Result<String> {
    let (mut hash, mut file) = (Sha256::new(), std::fs::File::open(path)?);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex::encode(hash.finalize())),
            length => hash.update(piece.get(..length).unwrap_or_default()),
        }
    }
}

fn find_damage_of(directory: &Path, line: &str) -> Option<String> {
    let fields: Vec<&str> = line.splitn(4, ' ').collect();
    let [sum, size, modified, name] = *fields.as_slice() else { return Some("its manifest cannot be parsed".into()) };
    let path = directory.join(name);
    let Ok(metadata) = std::fs::metadata(&path) else { return Some(format!("{name} is missing")) };
    if metadata.len().to_string() != size {
        return Some(format!("{name} has {} bytes instead of {size}", metadata.len()));
    }
    if format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec()) == modified {
        return None;
    }
    let same = checksum(&path).is_ok_and(|found| found == sum);
    (!same).then(|| format!("{name} has another checksum than when it was built"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("etcd"), "0123456789").unwrap();
        std::fs::write(directory.path().join("kwok"), "abc").unwrap();
        Manifest::write(directory.path(), ["etcd", "kwok"].into_iter()).unwrap();
        directory
    }

    fn damage_after(change: impl Fn(&Path)) -> Option<String> {
        let directory = directory();
        change(directory.path());
        Manifest::find_damage(directory.path())
    }

    #[test]
    fn unchanged_content_is_intact() {
        assert_eq!(damage_after(|_| {}), None);
        let rewritten = damage_after(|path| std::fs::write(path.join("etcd"), "0123456789").unwrap());
        assert_eq!(rewritten, None);
    }

    #[test]
    fn truncated_missing_and_changed_files_are_named() {
        let cut = damage_after(|path| std::fs::write(path.join("etcd"), "012").unwrap());
        assert_eq!(cut.unwrap(), "etcd has 3 bytes instead of 10");
        let missing = damage_after(|path| std::fs::remove_file(path.join("kwok")).unwrap());
        assert_eq!(missing.unwrap(), "kwok is missing");
        let changed = damage_after(|path| std::fs::write(path.join("kwok"), "abd").unwrap());
        assert_eq!(changed.unwrap(), "kwok has another checksum than when it was built");
        let cut = damage_after(|path| std::fs::write(path.join(FILE), "0").unwrap());
        assert_eq!(cut.unwrap(), "its manifest is truncated");
        let absent = damage_after(|path| std::fs::remove_file(path.join(FILE)).unwrap());
        assert_eq!(absent.unwrap(), "it has no manifest");
    }
}
