//! Files and directories of what is shipped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Makes the error of a file.
pub fn fail(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

/// Creates a directory with its parents.
pub fn make_directory(path: &Path, mode: u32) -> Result<(), String> {
    fs::create_dir_all(path).map_err(fail(path))?;
    set_mode(path, mode)
}

/// Writes a file, and its directory if that does not exist.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(fail(directory))?;
    }
    fs::write(path, content).map_err(fail(path))
}

/// Copies a file, with a mode.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory).map_err(fail(directory))?;
    }
    fs::copy(from, to).map_err(fail(from))?;
    set_mode(to, mode)
}

/// Size of a file in MB.
pub fn megabytes(path: &Path) -> Result<f64, String> {
    let size = fs::metadata(path).map_err(fail(path))?.len();
    Ok(size as f64 / 1e6)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(fail(path))
}
