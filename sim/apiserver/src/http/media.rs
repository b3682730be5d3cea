//! Content negotiation: the representation that the Accept header asks for.

use crate::encoding::protobuf;
use crate::http::error::ApiError;
use crate::http::request::Request;

/// Representation of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The objects themselves.
    Object,
    /// Their metadata only.
    Metadata,
    /// Rows of a table, as `kubectl get` prints them.
    Table(Include),
}

/// Content of a table row besides its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

/// Serialization format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Json,
    Yaml,
    Protobuf,
}

/// Representation and serialization format that a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseFormat {
    pub(crate) representation: Representation,
    pub(crate) notation: Notation,
    /// True if tables and metadata must have the version `meta.k8s.io/v1beta1`.
    pub(crate) is_beta: bool,
}

impl ResponseFormat {
    /// Format of a request without an Accept header.
    pub(crate) const PLAIN: Self =
        Self { representation: Representation::Object, notation: Notation::Json, is_beta: false };
}

/// Properties of the requested resource that limit its formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestedContent {
    /// True for a custom resource, which has no Protobuf encoding.
    pub(crate) is_custom: bool,
    /// True for a list.
    pub(crate) of_list: bool,
    /// True for a watch.
    pub(crate) is_stream: bool,
}

/// A clause of an Accept header.
struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f64,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let pair = |part: &'a str| part.split_once('=').map_or((part, ""), |(name, value)| (name.trim(), value.trim()));
        let (mut parameters, mut quality) = (Vec::new(), None);
        for (name, value) in parts.map(pair) {
            if name == "q" {
                quality = quality.or(Some(value));
            } else {
                parameters.push((name, value));
            }
        }
        let quality = quality.and_then(|value| value.parse().ok()).unwrap_or(1.0);
        Self { media, parameters, quality }
    }

    fn parameter(&self, wanted: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }

    /// True if it asks for another representation than the object itself.
    fn converts(&self) -> bool {
        self.parameters.iter().any(|(name, _)| matches!(*name, "as" | "g" | "v"))
    }

    fn notation(&self) -> Option<Notation> {
        match self.media {
            "application/json" | "*/*" => Some(Notation::Json),
            "application/yaml" => Some(Notation::Yaml),
            protobuf::MEDIA => Some(Notation::Protobuf),
            _ => None,
        }
    }

    /// True if its `stream` parameter is supported.
    fn streams(&self) -> bool {
        match self.parameter("stream") {
            None | Some("") => true,
            Some("watch") => self.notation() != Some(Notation::Yaml),
            Some(_) => false,
        }
    }
}

/// Returns the clauses of an Accept header, the preferred first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> =
        accept.split(',').filter(|clause| !clause.trim().is_empty()).map(Clause::parse).collect();
    clauses.sort_by(|one, other| {
        other.quality.total_cmp(&one.quality).then(one.media.starts_with('*').cmp(&other.media.starts_with('*')))
    });
    clauses
}

/// Media types of objects.
const NOTATIONS: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA];
/// Media types of lists, which can also be watched.
const STREAMS: [&str; 2] = ["application/json;stream=watch", protobuf::STREAM];

/// True if the Accept header is one of the common values that need no parsing.
fn is_plain(accept: &str) -> bool {
    matches!(accept.trim(), "" | "*/*" | "application/json")
}

/// Returns the format of the first clause of the Accept header that this server supports.
pub(crate) fn negotiate(request: &Request, content: RequestedContent) -> Result<ResponseFormat, ApiError> {
    let accept = &request.headers.accept;
    if is_plain(accept) {
        return Ok(ResponseFormat::PLAIN);
    }
    let clauses = clauses(accept);
    for clause in &clauses {
        let Some(notation) = clause.notation().filter(|_| clause.streams()) else { continue };
        let Some((representation, is_beta)) = read_representation(request, clause, notation, content)? else {
            continue;
        };
        if content.is_stream && notation == Notation::Yaml {
            return Err(ApiError::not_convertible(&STREAMS));
        }
        return Ok(ResponseFormat { representation, notation, is_beta });
    }
    let streams: &[&str] = if content.of_list { &STREAMS } else { &[] };
    Err(if clauses.iter().any(|clause| clause.notation().is_some()) {
        ApiError::not_convertible(&NOTATIONS)
    } else {
        ApiError::not_acceptable(&[&NOTATIONS, streams].concat())
    })
}

/// Returns the representation that a clause asks for, and true if it is the v1beta1 one; `None` if unsupported.
fn read_representation(
    request: &Request,
    clause: &Clause<'_>,
    notation: Notation,
    content: RequestedContent,
) -> Result<Option<(Representation, bool)>, ApiError> {
    if !clause.converts() {
        let can = notation != Notation::Protobuf || !content.is_custom;
        return Ok(can.then_some((Representation::Object, false)));
    }
    let is_beta = match (clause.parameter("g"), clause.parameter("v")) {
        (Some("meta.k8s.io"), Some("v1")) => false,
        (Some("meta.k8s.io"), Some("v1beta1")) => true,
        _ => return Ok(None),
    };
    Ok(match clause.parameter("as") {
        // Tables have no Protobuf encoding.
        Some("Table") if notation != Notation::Protobuf => Some((Representation::Table(included(request)?), is_beta)),
        Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some((Representation::Metadata, is_beta)),
        _ => None,
    })
}

/// Returns the format of errors and documents: that of the first clause that asks for no other representation.
pub(crate) fn plain_notation(request: &Request) -> Notation {
    if is_plain(&request.headers.accept) {
        return Notation::Json;
    }
    let clauses = clauses(&request.headers.accept);
    let fits = |clause: &&Clause<'_>| clause.streams() && !clause.converts();
    clauses.iter().filter(fits).find_map(Clause::notation).unwrap_or(Notation::Json)
}

/// True if the client does not accept a document that has only this media type.
pub(crate) fn rejects_media(request: &Request, media: &str) -> bool {
    let clauses = clauses(&request.headers.accept);
    !clauses.is_empty() && !clauses.iter().any(|clause| clause.media == media || clause.media == "*/*")
}

/// Reads the `includeObject` parameter of a table request.
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

/// True if the client asks for `PartialObjectMetadataList`, false for `PartialObjectMetadata`.
pub(crate) fn wants_metadata_list(request: &Request) -> bool {
    const LIST: &str = "PartialObjectMetadataList";
    let accept = &request.headers.accept;
    // Most headers do not name it and need no parsing.
    accept.contains(LIST) && clauses(accept).iter().any(|clause| clause.parameter("as") == Some(LIST))
}

/// Returns the format of aggregated discovery, if the client prefers it to the unaggregated documents.
pub(crate) fn aggregated_discovery(request: &Request) -> Option<Notation> {
    for clause in clauses(&request.headers.accept) {
        let Some(notation) = clause.notation().filter(|notation| *notation != Notation::Yaml) else { continue };
        let requested = [("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2")];
        if requested.iter().all(|(name, value)| clause.parameter(name) == Some(value)) {
            return Some(notation);
        }
        // A clause without parameters asks for the unaggregated document.
        clause.parameter("as")?;
    }
    None
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    const OBJECT: RequestedContent = RequestedContent { is_custom: false, of_list: false, is_stream: false };

    fn request_accepting(accept: &str) -> Request {
        let mut request = Request::new(Method::GET, "/api").expect("valid");
        accept.clone_into(&mut request.headers.accept);
        request
    }

    fn representation_of(accept: &str) -> Result<Representation, ApiError> {
        negotiate(&request_accepting(accept), OBJECT).map(|format| format.representation)
    }

    #[test]
    fn the_first_supported_representation_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(representation_of(kubectl), Ok(Representation::Table(Include::Metadata)));
        let metadata = "application/json; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1";
        assert_eq!(representation_of(metadata), Ok(Representation::Metadata));
        assert_eq!(representation_of("*/*"), Ok(Representation::Object));
        assert!(representation_of("text/html").is_err());
    }

    #[test]
    fn only_built_in_kinds_are_encoded_in_protobuf() {
        let notation = |accept: &str, is_custom: bool| {
            negotiate(&request_accepting(accept), RequestedContent { is_custom, ..OBJECT })
                .map(|format| format.notation)
                .ok()
        };
        let programs = "application/vnd.kubernetes.protobuf, application/json";
        assert_eq!(notation(programs, false), Some(Notation::Protobuf));
        assert_eq!(notation(programs, true), Some(Notation::Json));
        assert_eq!(notation(protobuf::MEDIA, true), None);
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert_eq!(notation(metadata, true), Some(Notation::Protobuf));
        assert_eq!(notation("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", false), None);
        assert_eq!(notation("application/json;q=0.1, application/yaml", false), Some(Notation::Yaml));
        assert_eq!(plain_notation(&request_accepting(metadata)), Notation::Json, "errors have no other form");
    }

    #[test]
    fn discovery_is_aggregated_on_request() {
        let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(aggregated_discovery(&request_accepting(aggregated)), Some(Notation::Json));
        assert_eq!(aggregated_discovery(&request_accepting("application/json")), None);
        assert_eq!(aggregated_discovery(&request_accepting("")), None);
    }
}
