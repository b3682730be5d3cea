//! Which representation the client asks for.

use crate::error::ApiError;
use crate::request::Request;
use crate::table::Include;

/// How objects are represented in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects themselves.
    Object,
    /// Their metadata only.
    Metadata,
    /// Rows for people.
    Table(Include),
}

/// The clauses of an Accept header: the media type and its parameters, all without spaces.
fn clauses(accept: &str) -> impl Iterator<Item = (String, Vec<String>)> + '_ {
    accept.split(',').filter(|clause| !clause.trim().is_empty()).map(|clause| {
        let mut parts = clause.split(';').map(|part| part.trim().to_owned());
        (parts.next().unwrap_or_default(), parts.collect())
    })
}

fn has(parameters: &[String], wanted: &[&str]) -> bool {
    wanted.iter().all(|wanted| parameters.iter().any(|parameter| parameter == wanted))
}

fn is_json(media: &str) -> bool {
    matches!(media, "application/json" | "*/*")
}

/// The forms of objects. Protobuf is not one of ours; a client that takes nothing else is told so.
const FORMS: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// The forms of lists, which can also go on.
const STREAMS: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// The first form in the Accept header that this server has.
pub(crate) fn form(request: &Request, of_list: bool) -> Result<Form, ApiError> {
    if request.headers.accept.trim().is_empty() {
        return Ok(Form::Object);
    }
    let mut is_media = false;
    for (media, parameters) in clauses(&request.headers.accept) {
        if !is_json(&media) && media != "application/yaml" {
            continue;
        }
        is_media = true;
        let of_meta_v1 = has(&parameters, &["g=meta.k8s.io", "v=v1"]);
        match parameters.iter().find_map(|parameter| parameter.strip_prefix("as=")) {
            None => return Ok(Form::Object),
            Some("Table") if of_meta_v1 => return included(request).map(Form::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if of_meta_v1 => return Ok(Form::Metadata),
            Some(_) => {}
        }
    }
    let streams: &[&str] = if of_list { &STREAMS } else { &[] };
    Err(if is_media {
        ApiError::not_convertible(&FORMS)
    } else {
        ApiError::not_acceptable(&[&FORMS, streams].concat())
    })
}

/// What the rows of a table hold.
fn included(request: &Request) -> Result<Include, ApiError> {
    match request.parameter("includeObject") {
        None | Some("Metadata") => Ok(Include::Metadata),
        Some("None") => Ok(Include::None),
        Some("Object") => Ok(Include::Object),
        Some(other) => Err(ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// Whether metadata is asked for in the form of one object or of a list.
pub(crate) fn wants_metadata_list(request: &Request) -> bool {
    clauses(&request.headers.accept).any(|(_, parameters)| has(&parameters, &["as=PartialObjectMetadataList"]))
}

/// Whether the answer should be YAML.
pub(crate) fn wants_yaml(request: &Request) -> bool {
    clauses(&request.headers.accept)
        .find(|(media, _)| is_json(media) || media == "application/yaml")
        .is_some_and(|(media, _)| media == "application/yaml")
}

/// Whether aggregated discovery comes before anything else that this server has.
pub(crate) fn wants_aggregated_discovery(request: &Request) -> bool {
    for (media, parameters) in clauses(&request.headers.accept) {
        if !is_json(&media) {
            continue;
        }
        if has(&parameters, &["as=APIGroupDiscoveryList", "g=apidiscovery.k8s.io", "v=v2"]) {
            return true;
        }
        if !parameters.iter().any(|parameter| parameter.starts_with("as=")) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn asking(accept: &str) -> Request {
        let mut request = Request::new(Method::GET, "/api").expect("valid");
        accept.clone_into(&mut request.headers.accept);
        request
    }

    #[test]
    fn the_first_form_that_we_have_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(&asking(kubectl), false), Ok(Form::Table(Include::Metadata)));
        assert_eq!(form(&asking("application/vnd.kubernetes.protobuf, application/json"), false), Ok(Form::Object));
        assert_eq!(
            form(&asking("application/json; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1"), true),
            Ok(Form::Metadata)
        );
        assert_eq!(form(&asking("*/*"), false), Ok(Form::Object));
        assert!(form(&asking("text/html"), false).is_err());
    }

    #[test]
    fn discovery_is_aggregated_on_request() {
        let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert!(wants_aggregated_discovery(&asking(aggregated)));
        assert!(!wants_aggregated_discovery(&asking("application/json")));
        assert!(!wants_aggregated_discovery(&asking("")));
    }
}
