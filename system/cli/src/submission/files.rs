//! Files of a bundle: each is validated by itself, and they are joined in their order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use sindri_model::{Bundle, DeclaredObject, EMPTY_BUNDLE_TEXT, ObjectKey};

use crate::failure::Failure;

/// Files of one bundle.
const FILES_MAX: usize = 10_000;
/// Depth of directories.
const DEPTH_MAX: usize = 32;
/// Size of all files of one bundle; the broker accepts less.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Endings of the files that are read from a directory.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
const STANDARD_INPUT: &str = "standard input";
/// Character at the beginning of a file that some editors write.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Files of a bundle, or none.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct BundleFiles {
    /// File of the bundle, or a directory whose *.yaml, *.yml and *.json belong to it in the order of their names, or `-` for
    /// standard input; may be repeated.
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read directories below a directory too.
    #[arg(short = 'R', long, requires = "files")]
    recursive: bool,
    /// Use a bundle without objects: every object of the stack is deleted, and the stack remains.
    #[arg(long, conflicts_with = "files")]
    empty: bool,
}

/// One file, or standard input.
struct Part {
    label: String,
    text: String,
}

/// Text of a bundle, and its number of objects.
#[derive(Debug)]
pub(crate) struct BundleText {
    pub text: String,
    pub objects: usize,
}

impl BundleFiles {
    /// Reads and validates the files.
    pub(crate) fn read(&self) -> Result<BundleText, Failure> {
        if self.empty {
            return Ok(BundleText { text: EMPTY_BUNDLE_TEXT.to_owned(), objects: 0 });
        }
        let mut paths = Vec::new();
        for path in &self.files {
            if path.is_dir() {
                let before = paths.len();
                self.list_directory(path, DEPTH_MAX, &mut paths)?;
                if paths.len() == before {
                    return Err(Failure::Usage(format!("{} has no *.yaml, *.yml or *.json", path.display())));
                }
            } else {
                paths.push(path.clone());
            }
        }
        let mut parts = Vec::new();
        let mut bytes_left = BYTES_MAX;
        for path in &paths {
            let part = read_part(path, bytes_left)?;
            bytes_left -= part.text.len();
            parts.push(part);
        }
        join(parts)
    }

    /// Adds the files of a directory in the order of their names.
    fn list_directory(&self, directory: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), Failure> {
        let unreadable = |error: io::Error| unreadable(&directory.display().to_string(), &error);
        let entries = std::fs::read_dir(directory).map_err(unreadable)?;
        let mut entries: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>().map_err(unreadable)?;
        entries.sort();
        for path in entries {
            if paths.len() >= FILES_MAX || depth == 0 {
                let limits = format!("more than {FILES_MAX} files or {DEPTH_MAX} levels");
                return Err(Failure::Usage(format!("{} has {limits}", directory.display())));
            }
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if path.is_dir() {
                if self.recursive {
                    self.list_directory(&path, depth - 1, paths)?;
                }
            } else if ENDINGS.contains(&ending) {
                paths.push(path);
            }
        }
        Ok(())
    }
}

fn read_part(path: &Path, bytes_left: usize) -> Result<Part, Failure> {
    let is_input = path == Path::new("-");
    let label = if is_input { STANDARD_INPUT.to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let limit = u64::try_from(bytes_left).unwrap_or(u64::MAX).saturating_add(1);
    let read = match is_input {
        true => io::stdin().lock().take(limit).read_to_string(&mut text),
        false => File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text)),
    };
    read.map_err(|error| unreadable(&label, &error))?;
    if text.len() > bytes_left {
        return Err(Failure::Usage(format!("{label}: the files of a bundle must have at most {BYTES_MAX} bytes")));
    }
    Ok(Part { label, text })
}

fn unreadable(label: &str, error: &io::Error) -> Failure {
    Failure::Usage(format!("{label} cannot be read: {error}"))
}

/// Validates each part, and joins them. A single part stays as it is.
fn join(parts: Vec<Part>) -> Result<BundleText, Failure> {
    let (mut errors, mut seen, mut objects) = (Vec::new(), BTreeMap::<ObjectKey, String>::new(), 0);
    let mut separate = Vec::new();
    for Part { label, text } in &parts {
        match Bundle::parse(text) {
            Ok(bundle) => {
                objects += bundle.objects().len();
                for object in bundle.into_objects() {
                    if let Some(first) = seen.insert(ObjectKey::clone(&object.key), label.clone()) {
                        errors.push(format!("{label}: {} is declared in {first} too", object.key));
                    }
                    separate.push((label.clone(), object));
                }
            }
            Err(error) => errors.extend(error.errors.iter().map(|error| format!("{label}: {error}"))),
        }
    }
    if !errors.is_empty() {
        return Err(Failure::Usage(errors.join("\n")));
    }
    let count = parts.len();
    let text = join_texts(parts);
    if count > 1 {
        let together = Bundle::parse(&text);
        let together = together.map_err(|error| Failure::Usage(format!("the {count} files together: {error}")))?;
        check_joined(together.objects(), &separate)?;
    }
    Ok(BundleText { text, objects })
}

/// Joins the texts with separators of documents. A line break is added only where there is none: it may be part of the last value.
fn join_texts(parts: Vec<Part>) -> String {
    if parts.len() == 1 {
        return parts.into_iter().map(|part| part.text).collect();
    }
    let mut text = String::new();
    for part in &parts {
        if !text.is_empty() {
            text.push_str(if text.ends_with('\n') { "---\n" } else { "\n---\n" });
        }
        text.push_str(part.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&part.text));
    }
    text
}

/// Checks that each object is the same as in its file.
fn check_joined(together: &[DeclaredObject], separate: &[(String, DeclaredObject)]) -> Result<(), Failure> {
    let is_same = |one: &DeclaredObject, other: &DeclaredObject| {
        (&one.key, &one.version, &one.manifest) == (&other.key, &other.version, &other.manifest)
    };
    let changed = separate
        .iter()
        .enumerate()
        .find(|(index, (_, object))| together.get(*index).is_none_or(|joined| !is_same(joined, object)));
    match changed {
        None if together.len() == separate.len() => Ok(()),
        None => Err(Failure::Usage("the files together declare more objects than each by itself".to_owned())),
        Some((_, (label, object))) => Err(Failure::Usage(format!(
            "{label}: {} is another object when the files are joined: end the file with a line break",
            object.key
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(label: &str, text: &str) -> Part {
        Part { label: label.to_owned(), text: text.to_owned() }
    }

    fn config_map(name: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: b}}\n")
    }

    #[test]
    fn every_error_is_reported_with_its_file() {
        let first = part("a.yaml", "apiVersion: v1\nkind: ConfigMap\n---\nkind: Secret\n");
        let message = join(vec![first, part("b.yaml", "# nothing\n")]).unwrap_err().to_string();
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines.len(), 3, "{message}");
        assert!(lines[0].starts_with("a.yaml: document 1, line 1"), "{message}");
        assert!(lines[1].starts_with("a.yaml: document 2, line"), "{message}");
        assert!(lines[2].starts_with("b.yaml: the bundle declares no object"), "{message}");
    }

    #[test]
    fn an_object_that_two_files_declare_is_an_error_that_names_both() {
        let parts = vec![part("a.yaml", &config_map("a")), part("b.yaml", &config_map("a"))];
        assert_eq!(join(parts).unwrap_err().to_string(), "b.yaml: ConfigMap b/a is declared in a.yaml too");
    }

    #[test]
    fn files_are_joined_and_a_single_one_stays_as_it_is() {
        let (first, second) =
            (config_map("a"), r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}"#);
        assert_eq!(join(vec![part("a.yaml", &first)]).unwrap().text, first);
        let joined = join(vec![part("a.yaml", &first), part("b.json", second)]).unwrap();
        assert_eq!((joined.objects, Bundle::parse(&joined.text).unwrap().objects().len()), (2, 2));
        let empty = join(vec![part("a.yaml", &first), part("e.yaml", EMPTY_BUNDLE_TEXT)]).unwrap_err().to_string();
        assert!(empty.starts_with("the 2 files together: "), "{empty}");
    }

    #[test]
    fn joining_changes_no_object() {
        let kept = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n  x: |+\n    line\n";
        let marked = format!("\u{feff}{}", config_map("c"));
        let alone = Bundle::parse(kept).unwrap();
        let joined = join(vec![part("a.yaml", kept), part("c.yaml", &marked)]).unwrap();
        let joined = Bundle::parse(&joined.text).unwrap();
        assert_eq!((joined.objects().len(), &joined.objects()[0].manifest), (2, &alone.objects()[0].manifest));
        for unfinished in
            [config_map("d").trim_end().to_owned(), "# only a comment\n---\n".to_owned() + &config_map("d")]
        {
            let joined = join(vec![part("d.yaml", &unfinished), part("a.yaml", kept)]).unwrap();
            assert_eq!(Bundle::parse(&joined.text).unwrap().objects()[1].manifest["data"]["x"], "line\n");
        }
    }

    #[test]
    fn a_directory_is_read_in_the_order_of_names_and_below_only_if_asked() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, object: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, config_map(object)).unwrap();
        };
        for (name, object) in [("b.yml", "two"), ("a.yaml", "one"), ("notes.txt", "no"), ("c/d.yaml", "three")] {
            write(name, object);
        }
        let names = |recursive| {
            let files = BundleFiles { files: vec![directory.path().to_owned()], recursive, empty: false };
            let bundle = Bundle::parse(&files.read().unwrap().text).unwrap();
            bundle.objects().iter().map(|object| object.key.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["one", "two"]);
        assert_eq!(names(true), ["one", "two", "three"]);
    }
}
