//! Which representation the client asks for.

use crate::encoding::protobuf;
use crate::http::error::ApiError;
use crate::http::request::Request;

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

/// What a row holds besides its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

/// In which notation an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Json,
    Yaml,
    Protobuf,
}

/// What a client gets to see, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) form: Form,
    pub(crate) notation: Notation,
    /// Whether forms that are not the objects themselves shall be those of `meta.k8s.io/v1beta1`.
    pub(crate) is_beta: bool,
}

impl Wanted {
    /// What is wanted by who says nothing.
    pub(crate) const PLAIN: Self = Self { form: Form::Object, notation: Notation::Json, is_beta: false };
}

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Whether it comes from a definition, and so has no message.
    pub(crate) is_custom: bool,
    /// Whether it is a list.
    pub(crate) of_list: bool,
    /// Whether it goes on.
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

    /// Whether another form than the object itself is asked for.
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

    /// Whether what it says about streams can be had.
    fn streams(&self) -> bool {
        match self.parameter("stream") {
            None | Some("") => true,
            Some("watch") => self.notation() != Some(Notation::Yaml),
            Some(_) => false,
        }
    }
}

/// The clauses of an Accept header, the preferred first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> =
        accept.split(',').filter(|clause| !clause.trim().is_empty()).map(Clause::parse).collect();
    clauses.sort_by(|one, other| {
        other.quality.total_cmp(&one.quality).then(one.media.starts_with('*').cmp(&other.media.starts_with('*')))
    });
    clauses
}

/// The notations of objects.
const NOTATIONS: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA];
/// The notations of lists, which can also go on.
const STREAMS: [&str; 2] = ["application/json;stream=watch", protobuf::STREAM];

/// Whether nothing has to be looked up.
fn is_plain(accept: &str) -> bool {
    matches!(accept.trim(), "" | "*/*" | "application/json")
}

/// What the client wants: the first clause of the Accept header that this server can do.
pub(crate) fn wanted(request: &Request, subject: Subject) -> Result<Wanted, ApiError> {
    let accept = &request.headers.accept;
    if is_plain(accept) {
        return Ok(Wanted::PLAIN);
    }
    let clauses = clauses(accept);
    for clause in &clauses {
        let Some(notation) = clause.notation().filter(|_| clause.streams()) else { continue };
        let Some((form, is_beta)) = form(request, clause, notation, subject)? else { continue };
        if subject.is_stream && notation == Notation::Yaml {
            return Err(ApiError::not_convertible(&STREAMS));
        }
        return Ok(Wanted { form, notation, is_beta });
    }
    let streams: &[&str] = if subject.of_list { &STREAMS } else { &[] };
    Err(if clauses.iter().any(|clause| clause.notation().is_some()) {
        ApiError::not_convertible(&NOTATIONS)
    } else {
        ApiError::not_acceptable(&[&NOTATIONS, streams].concat())
    })
}

/// The form that a clause asks for, and whether it is the older one; nothing if this server does not have it.
fn form(
    request: &Request,
    clause: &Clause<'_>,
    notation: Notation,
    subject: Subject,
) -> Result<Option<(Form, bool)>, ApiError> {
    if !clause.converts() {
        let can = notation != Notation::Protobuf || !subject.is_custom;
        return Ok(can.then_some((Form::Object, false)));
    }
    let is_beta = match (clause.parameter("g"), clause.parameter("v")) {
        (Some("meta.k8s.io"), Some("v1")) => false,
        (Some("meta.k8s.io"), Some("v1beta1")) => true,
        _ => return Ok(None),
    };
    Ok(match clause.parameter("as") {
        // Rows have no message.
        Some("Table") if notation != Notation::Protobuf => Some((Form::Table(included(request)?), is_beta)),
        Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some((Form::Metadata, is_beta)),
        _ => None,
    })
}

/// The notation of errors and documents: that of the first clause that asks for no other form.
pub(crate) fn plain_notation(request: &Request) -> Notation {
    if is_plain(&request.headers.accept) {
        return Notation::Json;
    }
    let clauses = clauses(&request.headers.accept);
    let fits = |clause: &&Clause<'_>| clause.streams() && !clause.converts();
    clauses.iter().filter(fits).find_map(Clause::notation).unwrap_or(Notation::Json)
}

/// Whether a document that there is only in one notation is not wanted in that.
pub(crate) fn refuses(request: &Request, media: &str) -> bool {
    let clauses = clauses(&request.headers.accept);
    !clauses.is_empty() && !clauses.iter().any(|clause| clause.media == media || clause.media == "*/*")
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
    const LIST: &str = "PartialObjectMetadataList";
    let accept = &request.headers.accept;
    // Most say nothing of it, and need not be taken apart for that.
    accept.contains(LIST) && clauses(accept).iter().any(|clause| clause.parameter("as") == Some(LIST))
}

/// Whether aggregated discovery comes before anything else that this server has, and in which notation.
pub(crate) fn aggregated_discovery(request: &Request) -> Option<Notation> {
    for clause in clauses(&request.headers.accept) {
        let Some(notation) = clause.notation().filter(|notation| *notation != Notation::Yaml) else { continue };
        let asked = [("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2")];
        if asked.iter().all(|(name, value)| clause.parameter(name) == Some(value)) {
            return Some(notation);
        }
        // A clause that asks for no form asks for the classic one.
        clause.parameter("as")?;
    }
    None
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    const OBJECT: Subject = Subject { is_custom: false, of_list: false, is_stream: false };

    fn asking(accept: &str) -> Request {
        let mut request = Request::new(Method::GET, "/api").expect("valid");
        accept.clone_into(&mut request.headers.accept);
        request
    }

    fn form_of(accept: &str) -> Result<Form, ApiError> {
        wanted(&asking(accept), OBJECT).map(|wanted| wanted.form)
    }

    #[test]
    fn the_first_form_that_we_have_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form_of(kubectl), Ok(Form::Table(Include::Metadata)));
        let metadata = "application/json; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1";
        assert_eq!(form_of(metadata), Ok(Form::Metadata));
        assert_eq!(form_of("*/*"), Ok(Form::Object));
        assert!(form_of("text/html").is_err());
    }

    #[test]
    fn only_what_has_a_message_is_written_as_one() {
        let notation = |accept: &str, is_custom: bool| {
            wanted(&asking(accept), Subject { is_custom, ..OBJECT }).map(|wanted| wanted.notation).ok()
        };
        let programs = "application/vnd.kubernetes.protobuf, application/json";
        assert_eq!(notation(programs, false), Some(Notation::Protobuf));
        assert_eq!(notation(programs, true), Some(Notation::Json));
        assert_eq!(notation(protobuf::MEDIA, true), None);
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert_eq!(notation(metadata, true), Some(Notation::Protobuf));
        assert_eq!(notation("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", false), None);
        assert_eq!(notation("application/json;q=0.1, application/yaml", false), Some(Notation::Yaml));
        assert_eq!(plain_notation(&asking(metadata)), Notation::Json, "errors have no other form");
    }

    #[test]
    fn discovery_is_aggregated_on_request() {
        let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(aggregated_discovery(&asking(aggregated)), Some(Notation::Json));
        assert_eq!(aggregated_discovery(&asking("application/json")), None);
        assert_eq!(aggregated_discovery(&asking("")), None);
    }
}
