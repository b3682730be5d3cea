//! `sindri apply`: validates a file and submits it as the newest revision of a stack.

use std::path::{Path, PathBuf};

use clap::Args;
use sindri_model::{Bundle, EMPTY_BUNDLE_TEXT};

use crate::failure::Failure;
use crate::names;
use crate::output::print;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of the stack.
    stack: String,
    #[command(flatten)]
    bundle: BundleSource,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct BundleSource {
    /// YAML file to submit.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Submit a bundle without objects: every object of the stack is deleted, and the stack remains.
    #[arg(long)]
    empty: bool,
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let (text, objects) = match &arguments.bundle.file {
        Some(file) => read(file)?,
        None => (EMPTY_BUNDLE_TEXT.to_owned(), 0),
    };
    let stack = names::find_stack(&session.client, &arguments.stack).await?;
    let revision = session.client.submit_revision(stack.id, &text).await?;
    print(&format!("stack {} is at sequence {} with {objects} objects\n", stack.name, revision.sequence_id))
}

/// Reads and validates a file; returns its text and its number of objects.
fn read(file: &Path) -> Result<(String, usize), Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| unreadable_file(file, &error))?;
    let objects = check_bundle(file, &text)?;
    Ok((text, objects))
}

fn unreadable_file(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{} cannot be read: {error}", file.display()))
}

/// Validates a bundle and returns its number of objects.
fn check_bundle(file: &Path, text: &str) -> Result<usize, Failure> {
    let bundle = Bundle::parse(text).map_err(|error| {
        let errors: Vec<String> = error.errors.iter().map(|error| format!("{}: {error}", file.display())).collect();
        Failure::Usage(errors.join("\n"))
    })?;
    Ok(bundle.objects().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_reported_with_its_file() {
        let text = "apiVersion: v1\nkind: ConfigMap\n---\nkind: Secret\n";
        let message = check_bundle(Path::new("a.yaml"), text).unwrap_err().to_string();
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines.len(), 2, "{message}");
        assert!(lines[0].starts_with("a.yaml: document 1, line 1"), "{message}");
        assert!(lines[1].starts_with("a.yaml: document 2, line"), "{message}");
    }

    #[test]
    fn a_file_without_objects_is_rejected() {
        let message = check_bundle(Path::new("a.yaml"), "# nothing\n").unwrap_err().to_string();
        assert!(message.starts_with("a.yaml: the bundle declares no object"), "{message}");
    }
}
