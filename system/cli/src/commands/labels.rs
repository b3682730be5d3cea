//! Labels and annotations of agents and stacks, as arguments and as requests.

use clap::Args;
use http::StatusCode;
use sindri_client::ClientError;
use sindri_model::limits::LABEL_CHARS_MAX;

use crate::confirm::Confirmation;
use crate::failure::Failure;

/// An object and labels.
#[derive(Args)]
pub(crate) struct Labels {
    /// Name or id of the object.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Label, such as `production` or `region=eu`; may be repeated.
    #[arg(required = true, value_name = "LABEL")]
    pub labels: Vec<String>,
}

/// An object and labels that are removed.
#[derive(Args)]
pub(crate) struct RemovedLabels {
    #[command(flatten)]
    pub labels: Labels,
    #[command(flatten)]
    pub confirmation: Confirmation,
}

/// An object and annotations.
#[derive(Args)]
pub(crate) struct Annotations {
    /// Name or id of the object.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Annotation; the value of an existing one is replaced. May be repeated.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = parse_annotation)]
    pub annotations: Vec<(String, String)>,
    #[command(flatten)]
    pub confirmation: Confirmation,
}

/// An object and keys of annotations.
#[derive(Args)]
pub(crate) struct AnnotationKeys {
    /// Name or id of the object.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Key of an annotation; may be repeated.
    #[arg(required = true, value_name = "KEY")]
    pub keys: Vec<String>,
    #[command(flatten)]
    pub confirmation: Confirmation,
}

fn parse_annotation(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    pair.map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| "it is not KEY=VALUE".to_owned())
}

/// Rejects a label that the broker would reject.
pub(crate) fn check_label(label: &str) -> Result<(), Failure> {
    let is_invalid = |character: char| character.is_control() || character.is_whitespace();
    if !label.is_empty() && label.chars().count() <= LABEL_CHARS_MAX && !label.contains(is_invalid) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{label:?} is not a label: it must have 1 to {LABEL_CHARS_MAX} characters, without spaces or control characters"
    )))
}

/// Accepts that an object exists already.
pub(crate) fn accept_existing<T>(result: Result<T, ClientError>) -> Result<(), Failure> {
    match result {
        Err(error) if error.status() == Some(StatusCode::CONFLICT) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// Accepts that an object does not exist.
pub(crate) fn accept_missing(result: Result<(), ClientError>) -> Result<(), Failure> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => Ok(other?),
    }
}

/// Names the object that has no such label or annotation.
pub(crate) fn require_existing(
    result: Result<(), ClientError>,
    missing: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match result {
        Err(error) if error.is_not_found() => Err(Failure::Usage(missing())),
        other => Ok(other?),
    }
}

/// Returns `None` for a list that the key may not read.
pub(crate) fn accept_forbidden<T>(result: Result<T, ClientError>) -> Result<Option<T>, Failure> {
    match result {
        Err(error) if error.status() == Some(StatusCode::FORBIDDEN) => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// Sorts labels by name.
pub(crate) fn sort(labels: impl Iterator<Item = String>) -> Vec<String> {
    let mut labels: Vec<String> = labels.collect();
    labels.sort();
    labels
}

#[cfg(test)]
mod tests {
    use super::parse_annotation;

    #[test]
    fn an_annotation_has_a_key_and_any_value() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(parse_annotation("a=b=c"), pair("a", "b=c"));
        assert_eq!(parse_annotation("a="), pair("a", ""));
        assert!(parse_annotation("a").is_err() && parse_annotation("=b").is_err());
    }
}
