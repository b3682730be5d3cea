//! `sindri apply`: validates a file and submits it as the newest revision of a stack.

use std::path::{Path, PathBuf};

use clap::Args;
use sindri_client::Client;
use sindri_model::Bundle;

use crate::failure::Failure;
use crate::names;
use crate::output::print;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of the stack.
    stack: String,
    /// YAML file to submit.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
}

pub(crate) async fn run(client: &Client, arguments: &Arguments) -> Result<(), Failure> {
    let text = std::fs::read_to_string(&arguments.file).map_err(|error| unreadable_file(&arguments.file, &error))?;
    let objects = check_bundle(&arguments.file, &text)?;
    let stack = names::find_stack(client, &arguments.stack).await?;
    let revision = client.submit_revision(stack.id, &text).await?;
    print(&format!("stack {} is at sequence {} with {objects} objects\n", stack.name, revision.sequence_id))
}

fn unreadable_file(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{} cannot be read: {error}", file.display()))
}

/// Validates a bundle and returns its number of objects. An empty bundle is rejected: to remove a stack, delete it.
fn check_bundle(file: &Path, text: &str) -> Result<usize, Failure> {
    let bundle = Bundle::parse(text).map_err(|error| {
        let errors: Vec<String> = error.errors.iter().map(|error| format!("{}: {error}", file.display())).collect();
        Failure::Usage(errors.join("\n"))
    })?;
    match bundle.objects().len() {
        0 => Err(Failure::Usage(format!("{} declares no object", file.display()))),
        count => Ok(count),
    }
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
        assert_eq!(message, "a.yaml declares no object");
    }
}
