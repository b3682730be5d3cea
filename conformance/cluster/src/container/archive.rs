//! A tar archive of some binaries, produced in pieces, so that 400 MB need not be held in memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Size of the blocks of a tar archive.
const BLOCK: usize = 512;
/// Size of a piece: whole blocks.
const PIECE_BYTES: usize = 1 << 20;
/// Executable for all users.
const MODE: u32 = 0o755;

/// Returns the pieces of an archive with these files in its top directory.
pub(super) fn pieces(files: Vec<PathBuf>) -> impl Iterator<Item = io::Result<Bytes>> + Send {
    let contents = files.into_iter().flat_map(|path| match open(&path) {
        Ok((header, file)) => Pieces { header: Some(header), file: Some(file) },
        Err(error) => Pieces { header: Some(Err(error)), file: None },
    });
    contents.chain(std::iter::once(Ok(Bytes::from_static(&[0; 2 * BLOCK]))))
}

fn open(path: &Path) -> io::Result<(io::Result<Bytes>, File)> {
    let file = File::open(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let header = header(&name, file.metadata()?.len())?;
    Ok((Ok(header), file))
}

/// Returns the header block of a file. Numbers are octal; the checksum counts its own field as spaces.
fn header(name: &str, size: u64) -> io::Result<Bytes> {
    let mut block = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| -> io::Result<()> {
        let field = block.get_mut(at..at + text.len());
        field.ok_or_else(|| io::Error::other("a field is too long"))?.copy_from_slice(text.as_bytes());
        Ok(())
    };
    put(0, name)?;
    put(100, &format!("{MODE:07o}"))?;
    put(108, "0000000")?;
    put(116, "0000000")?;
    put(124, &format!("{size:011o}"))?;
    put(136, "00000000000")?;
    put(148, "        ")?;
    put(156, "0")?;
    put(257, "ustar\u{0}00")?;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block.get_mut(148..156).unwrap_or_default().copy_from_slice(format!("{sum:06o}\u{0} ").as_bytes());
    Ok(Bytes::copy_from_slice(&block))
}

/// Pieces of one file: its header, then its content, padded to a whole block.
struct Pieces {
    header: Option<io::Result<Bytes>>,
    file: Option<File>,
}

impl Iterator for Pieces {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(header) = self.header.take() {
            return Some(header);
        }
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let limit = u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX);
        match self.file.as_mut()?.take(limit).read_to_end(&mut piece) {
            Ok(0) => None,
            Ok(length) => {
                piece.resize(length.next_multiple_of(BLOCK), 0);
                Some(Ok(Bytes::from(piece)))
            }
            Err(error) => {
                self.file = None;
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tar_command_unpacks_the_same_files() {
        let directory = tempfile::tempdir().unwrap();
        let long: Vec<u8> = (0..3_000_001_u32).map(|number| (number % 251) as u8).collect();
        std::fs::write(directory.path().join("long"), &long).unwrap();
        std::fs::write(directory.path().join("short"), "so").unwrap();
        let files = ["long", "short"].map(|name| directory.path().join(name)).to_vec();
        let archive: Vec<u8> = pieces(files).flat_map(|piece| piece.unwrap().to_vec()).collect();
        std::fs::write(directory.path().join("archive.tar"), archive).unwrap();
        let out = directory.path().join("out");
        std::fs::create_dir(&out).unwrap();
        let mut tar = std::process::Command::new("tar");
        tar.arg("-xf").arg(directory.path().join("archive.tar")).arg("-C").arg(&out);
        assert!(tar.status().unwrap().success());
        assert_eq!(std::fs::read(out.join("long")).unwrap(), long);
        assert_eq!(std::fs::read(out.join("short")).unwrap(), b"so");
    }
}
