//! The files of a recording: read, written, and compressed where their name says so.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder, read::GzDecoder};
use serde_json::Value;
use thiserror::Error;

/// Texts by their path below the directory of a version, with `/` between the parts. Never compressed here.
pub type Files = BTreeMap<String, String>;

/// Files with this ending are compressed on the disk.
const COMPRESSED: &str = ".gz";
/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How many directories may stand in one another.
const DEPTH_MAX: usize = 4;

/// A file that cannot be read or written.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
pub struct FileError {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub error: std::io::Error,
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> FileError {
    let path = path.to_owned();
    move |error| FileError { path, error }
}

/// Where the recording of a version is, from the project's directory. The version has no `v`.
pub fn directory(root: &Path, version: &str) -> PathBuf {
    root.join("fixtures/kubernetes").join(version)
}

/// Values that fit in so many characters stand on one line.
const LINE_MAX: usize = 110;

/// A value as it is written: sorted keys, two spaces, what is small on one line, a line feed at the end.
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

/// Sorted by us: whether the library does depends on how it was built.
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

/// Every file of a directory. A directory that is not there has none.
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

/// Makes a directory hold these files and no others. A file that holds the same already is not touched.
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
            if name.ends_with(COMPRESSED) { compressed(text).map_err(failed(&path))? } else { text.clone().into() };
        std::fs::write(&path, bytes).map_err(failed(&path))?;
    }
    Ok(())
}

/// Without a time or a name, so that the same text is the same file.
fn compressed(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_again_and_others_are_gone() {
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
    fn the_same_text_is_the_same_compressed_file() {
        assert_eq!(compressed("some text").unwrap(), compressed("some text").unwrap());
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_files() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(&directory.path().join("none")).unwrap(), Files::new());
    }

    #[test]
    fn keys_are_sorted_and_only_what_is_large_takes_more_than_a_line() {
        let long = "x".repeat(LINE_MAX);
        let expected = format!("{{\n  \"a\": [1, {{\"c\": null, \"d\": 2}}],\n  \"b\": \"{long}\"\n}}\n");
        assert_eq!(pretty(&json!({"b": long, "a": [1, {"d": 2, "c": null}]})), expected);
        assert_eq!(pretty(&json!([])), "[]\n");
    }
}
