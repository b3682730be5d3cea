//! Reads and writes the files of a recording. Files whose name ends with `.gz` are compressed on the disk.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder, read::GzDecoder};
use serde_json::Value;
use thiserror::Error;

/// Uncompressed contents by path below the directory of a version.
pub type Files = BTreeMap<String, String>;

/// Suffix of compressed files.
const COMPRESSED: &str = ".gz";
/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum depth of directories.
const DEPTH_MAX: usize = 4;

/// A file that cannot be read or written.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
pub struct FileError {
    /// Path.
    pub path: PathBuf,
    /// Cause.
    pub error: std::io::Error,
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> FileError {
    let path = path.to_owned();
    move |error| FileError { path, error }
}

/// Returns the directory of the recording of a version such as `1.35`.
pub fn directory(root: &Path, version: &str) -> PathBuf {
    root.join("fixtures/kubernetes").join(version)
}

/// Maximum length of a value on one line.
const LINE_MAX: usize = 110;

/// Formats a value: sorted keys, indentation of two spaces, short values on one line, a line feed at the end.
pub fn pretty(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, 0, &mut text);
    text.push('\n');
    text
}

fn write_value(value: &Value, indent: usize, text: &mut String) {
    let line = on_one_line(value);
    if line.len() + indent <= LINE_MAX {
        return text.push_str(&line);
    }
    match value {
        Value::Array(elements) => {
            let write = |element: &Value, text: &mut String| write_value(element, indent + 2, text);
            write_block(['[', ']'], elements, indent, text, write);
        }
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            write_block(['{', '}'], &fields, indent, text, |(key, value), text| {
                text.push_str(&format!("{}: ", Value::from(key.as_str())));
                write_value(value, indent + 2, text);
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&line),
    }
}

fn write_block<T>(
    brackets: [char; 2],
    parts: impl IntoIterator<Item = T>,
    indent: usize,
    text: &mut String,
    write: impl Fn(T, &mut String),
) {
    text.push(brackets[0]);
    for (index, part) in parts.into_iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(indent + 2));
        write(part, text);
    }
    text.push_str(&format!("\n{}{}", " ".repeat(indent), brackets[1]));
}

/// Formats a value on one line. Keys are sorted here, because serde_json's order depends on its features.
fn on_one_line(value: &Value) -> String {
    match value {
        Value::Array(elements) => format!("[{}]", elements.iter().map(on_one_line).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), on_one_line(value));
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Reads all files of a directory. A missing directory has none.
pub fn read(directory: &Path) -> Result<Files, FileError> {
    let mut files = Files::new();
    if directory.is_dir() {
        read_below(directory, "", 0, &mut files)?;
    }
    Ok(files)
}

fn read_below(directory: &Path, prefix: &str, depth: usize, files: &mut Files) -> Result<(), FileError> {
    for entry in std::fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = format!("{prefix}{name}");
        if !path.is_dir() {
            files.insert(name, read_file(&path)?);
        } else if depth < DEPTH_MAX {
            read_below(&path, &format!("{name}/"), depth + 1, files)?;
        }
    }
    Ok(())
}

fn read_file(path: &Path) -> Result<String, FileError> {
    let file = std::fs::File::open(path).map_err(failed(path))?;
    let mut text = String::new();
    let read = if path.to_string_lossy().ends_with(COMPRESSED) {
        GzDecoder::new(file).take(FILE_BYTES_MAX).read_to_string(&mut text)
    } else {
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)
    };
    read.map_err(failed(path))?;
    Ok(text)
}

/// Writes these files to a directory and deletes all others. Unchanged files are not touched.
pub fn write(directory: &Path, files: &Files) -> Result<(), FileError> {
    let present = read(directory)?;
    for name in present.keys().filter(|name| !files.contains_key(*name)) {
        let path = directory.join(name);
        std::fs::remove_file(&path).map_err(failed(&path))?;
    }
    for (name, text) in files.iter().filter(|(name, text)| present.get(*name) != Some(text)) {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        let bytes =
            if name.ends_with(COMPRESSED) { compress(text).map_err(failed(&path))? } else { text.clone().into() };
        std::fs::write(&path, bytes).map_err(failed(&path))?;
    }
    Ok(())
}

/// Compresses a text without a time and a name, so that the same text gives the same bytes.
fn compress(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn written_files_are_read_again_and_others_are_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let first = Files::from([file("a/b.json", "1\n"), file("c.json.gz", "2\n"), file("old.json", "3\n")]);
        write(directory.path(), &first).unwrap();
        assert_eq!(read(directory.path()).unwrap(), first);
        let second = Files::from([file("a/b.json", "4\n"), file("c.json.gz", "2\n")]);
        write(directory.path(), &second).unwrap();
        assert_eq!(read(directory.path()).unwrap(), second);
        assert_ne!(std::fs::read(directory.path().join("c.json.gz")).unwrap(), b"2\n");
    }

    #[test]
    fn the_same_text_gives_the_same_compressed_bytes() {
        assert_eq!(compress("some text").unwrap(), compress("some text").unwrap());
    }

    #[test]
    fn a_missing_directory_has_no_files() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(&directory.path().join("none")).unwrap(), Files::new());
    }

    #[test]
    fn keys_are_sorted_and_only_long_values_take_more_than_a_line() {
        let long = "x".repeat(LINE_MAX);
        let expected = format!("{{\n  \"a\": [1, {{\"c\": null, \"d\": 2}}],\n  \"b\": \"{long}\"\n}}\n");
        assert_eq!(pretty(&json!({"b": long, "a": [1, {"d": 2, "c": null}]})), expected);
        assert_eq!(pretty(&json!([])), "[]\n");
    }
}
