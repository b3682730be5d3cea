//! Decoding the body of a write: its format, its kind, its fields.

use bytes::Bytes;
use serde_json::{Value, json};

use super::resource_request::{FieldValidation, Options, ResourceRequest};
use crate::encoding::protobuf::ProtobufError;
use crate::encoding::{protobuf, yaml};
use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::{group_version, string_at};
use crate::registry::resource::Target;
use crate::registry::types::{decode, types};
use crate::schema::custom_resource;

/// Largest number of bytes of a body in an error.
const SHOWN_BYTES_MAX: usize = 30;

/// Error for a Protobuf body of a custom resource.
const NO_KIND: &str = "Object 'Kind' is missing in 'object has no kind field '";

/// Maps and lists in metadata.
const CONTAINERS: [&str; 5] = ["annotations", "finalizers", "labels", "managedFields", "ownerReferences"];

fn is_empty_container(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A decoded object with its warnings.
pub(super) struct DecodedBody {
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

impl ResourceRequest<'_> {
    /// Decodes the body of a create or an update.
    pub(super) fn body_object(&self, options: &Options) -> Result<DecodedBody, ApiError> {
        let (object, duplicates) = self.read_body(options)?;
        let object = if object.is_null() { Value::Object(serde_json::Map::new()) } else { object };
        self.check_kind(&object)?;
        let kind = &self.target.resource.kind;
        let version = self.version_in(&object);
        let refuse = |reason: String| {
            ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {reason}"))
        };
        let mut errors = duplicates.errors();
        let (mut object, unknown) = self.decode(object).map_err(refuse)?;
        errors.extend(unknown.iter().map(|field| format!("unknown field {field:?}")));
        if options.validation == FieldValidation::Strict && !errors.is_empty() {
            let reported = if duplicates.has_lines() { format_line_errors(&errors) } else { errors.join(", ") };
            return Err(refuse(format!("strict decoding error: {reported}")));
        }
        self.check_place(&object)?;
        let mut warnings = if options.validation == FieldValidation::Warn { errors } else { Vec::new() };
        warnings.extend(without_equal_owners(&mut object));
        Ok(DecodedBody { object, warnings })
    }

    fn version_in(&self, object: &Value) -> String {
        let version = group_version(string_at(object, "/apiVersion")).1;
        if version.is_empty() { self.target.version.name.clone() } else { version.to_owned() }
    }

    /// Removes unknown fields from an object, and returns their names.
    pub(super) fn decode(&self, object: Value) -> Result<(Value, Vec<String>), String> {
        decode_in_version(&self.target, object)
    }

    fn read_body(&self, options: &Options) -> Result<(Value, Duplicates), ApiError> {
        let media = self.http.headers.content_type.split(';').next().unwrap_or_default().trim();
        let body = &self.http.body;
        let kind = &self.target.resource.kind;
        let unrecognized = |reason: String| {
            let body_start = format_body_start(body);
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {reason} ({body_start})"
            ))
        };
        let not_json = |reason: String| unrecognized(format!("couldn't get version/kind; json parse error: {reason}"));
        let (object, duplicates) = match media {
            "" | "application/json" => {
                let (object, twice) = yaml::read_json_with_duplicates(body).map_err(not_json)?;
                (object, Duplicates::Fields(twice))
            }
            "application/yaml" => {
                let (object, twice) = yaml::read_yaml_with_duplicates(body).map_err(unrecognized)?;
                (object, Duplicates::Lines(twice))
            }
            protobuf::MEDIA => return Err(self.refused_message(options, unrecognized)),
            _ => {
                let accepted: &[&str] =
                    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
                return Err(ApiError::unsupported_media(accepted));
            }
        };
        if !object.is_object() && !object.is_null() {
            let what = decode::json_type_name(&object);
            let go = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
            return Err(not_json(format!("json: cannot unmarshal {what} into Go value of type {go}")));
        }
        Ok((object, duplicates))
    }

    /// Returns the error of a Protobuf body. A valid body of a built-in kind was converted to JSON before.
    fn refused_message(&self, options: &Options, unrecognized: impl Fn(String) -> ApiError) -> ApiError {
        let expected = &self.target.resource.kind;
        let is_custom = self.target.resource.custom;
        if is_custom && options.validation != FieldValidation::Ignore {
            // Its fields cannot be decoded without a type.
            return ApiError::Lost;
        }
        let to_error = |version: &str, kind: &str, reason: &str| {
            ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {expected}: {reason}"))
        };
        match protobuf::decode_as(&self.http.body, (&self.target.api_version(), expected)) {
            Err(ProtobufError::Envelope(reason)) => unrecognized(reason),
            Err(ProtobufError::Content { version, kind, message }) if !is_custom => to_error(&version, &kind, &message),
            Err(ProtobufError::Content { version, kind, .. }) => to_error(&version, &kind, NO_KIND),
            Ok(read) => to_error(group_version(string_at(&read, "/apiVersion")).1, string_at(&read, "/kind"), NO_KIND),
        }
    }

    /// Checks that an object has the kind of the path. Built-in kinds may omit it.
    fn check_kind(&self, object: &Value) -> Result<(), ApiError> {
        let (kind, version) = (string_at(object, "/kind"), string_at(object, "/apiVersion"));
        let (expected, expected_version) = (&self.target.resource.kind, self.target.api_version());
        if self.target.resource.custom {
            return self.check_custom_kind(object);
        }
        if version.split('/').count() > 2 {
            let body_start = format_body_start(&self.http.body);
            let reason = format!("unexpected GroupVersion string: {version}");
            let message =
                format!("the object provided is unrecognized (must be of type {expected}): {reason} ({body_start})");
            return Err(ApiError::bad_request(message));
        }
        let kind = if kind.is_empty() { expected } else { kind };
        let version = if version.is_empty() { &expected_version } else { version };
        if kind == expected && *version == expected_version {
            return Ok(());
        }
        let (group, short) = group_version(version);
        let is_known = types().find_kind(group, short, kind).is_some() || kind == "List" && version == "v1";
        if kind == expected && is_known && group == self.target.resource.group {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({expected_version})"
            )));
        }
        let reason = if is_known {
            let package = match self.target.resource.group.split('.').next() {
                None | Some("") => "core",
                Some(package) => package,
            };
            format!("converting ({short}.{kind}) to ({package}.{expected}): unknown conversion")
        } else {
            format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
        };
        Err(ApiError::bad_request(format!("{kind} in version {short:?} cannot be handled as a {expected}: {reason}")))
    }

    fn check_custom_kind(&self, object: &Value) -> Result<(), ApiError> {
        let (kind, version) = (string_at(object, "/kind"), string_at(object, "/apiVersion"));
        let (expected, expected_version) = (&self.target.resource.kind, self.target.api_version());
        let missing = |what: &str| {
            let body = String::from_utf8_lossy(&self.http.body);
            let body_start: String = body.chars().collect();
            let message = format!("Object '{what}' is missing in '{body_start}'");
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {expected}): {message} ({})",
                format_text_start(&self.http.body)
            ))
        };
        if kind.is_empty() {
            return Err(missing("Kind"));
        }
        if version.is_empty() {
            return Err(missing("apiVersion"));
        }
        if kind != expected {
            let error = FieldError::invalid("kind", &json!(kind), &format!("must be {expected}"));
            let name = string_at(object, "/metadata/name");
            return Err(ApiError::invalid_kind(&self.target.resource.group, kind, name, &[error]));
        }
        if version != expected_version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({expected_version})"
            )));
        }
        Ok(())
    }

    /// Checks that an object has the name and namespace of the path.
    pub(super) fn check_place(&self, object: &Value) -> Result<(), ApiError> {
        let name = string_at(object, "/metadata/name");
        if !self.name.is_empty() && name.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                self.name
            )));
        }
        if !self.name.is_empty() && name != self.name {
            let message = format!("the name of the object ({name}) does not match the name on the URL ({})", self.name);
            return Err(ApiError::bad_request(message));
        }
        let namespace = string_at(object, "/metadata/namespace");
        if !namespace.is_empty() && self.namespace.as_deref().is_some_and(|expected| expected != namespace) {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
        Ok(())
    }
}

/// Removes unknown fields from an object of a version of a resource, and returns their names.
pub(super) fn decode_in_version(target: &Target, mut object: Value) -> Result<(Value, Vec<String>), String> {
    let mut unknown = Vec::new();
    if let Some(typed) = target.version.typed {
        decode::decode(typed, &mut object, &mut unknown)?;
        return Ok((object, unknown));
    }
    if let (Some(metadata), Some(of)) = (object.get_mut("metadata"), types().metadata()) {
        let mut extra = Vec::new();
        if !metadata.is_object() && !metadata.is_null() {
            let what = decode::json_type_name(metadata);
            return Err(format!("json: cannot unmarshal {what} into Go value of type v1.ObjectMeta"));
        }
        decode::decode(of, metadata, &mut extra)?;
        if let Some(fields) = metadata.as_object_mut() {
            // It is decoded by the metadata type, which omits empty fields.
            fields.retain(|name, value| !(CONTAINERS.contains(&name.as_str()) && is_empty_container(value)));
        }
        unknown.extend(extra.into_iter().map(|field| format!("metadata.{field}")));
    }
    if let Some(rules) = &target.version.schema {
        unknown.extend(custom_resource::prune(rules, &mut object));
    }
    Ok((object, unknown))
}

/// Removes repeated owner references, with a warning.
pub(super) fn without_equal_owners(object: &mut Value) -> Option<String> {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut)?;
    let (mut kept, mut twice): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in std::mem::take(owners) {
        if kept.contains(&owner) {
            twice.push(string_at(&owner, "/uid").to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// Repeated fields of a body.
enum Duplicates {
    /// Paths of JSON fields.
    Fields(Vec<String>),
    /// Errors of the YAML parser.
    Lines(Vec<String>),
}

impl Duplicates {
    fn errors(&self) -> Vec<String> {
        match self {
            Self::Fields(fields) => fields.iter().map(|field| format!("duplicate field {field:?}")).collect(),
            Self::Lines(lines) => lines.clone(),
        }
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Lines(lines) if !lines.is_empty())
    }
}

/// Returns the warnings of the YAML parser, then those of the decoder.
fn format_line_errors(errors: &[String]) -> String {
    let (lines, others): (Vec<&str>, Vec<&str>) =
        errors.iter().map(String::as_str).partition(|error| error.starts_with("line "));
    let lines = format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "));
    std::iter::once(lines.as_str()).chain(others).collect::<Vec<_>>().join(", ")
}

/// Returns the start of a body for an error: as text if it looks like JSON, else in hexadecimal.
fn format_body_start(body: &Bytes) -> String {
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    if body.starts_with(b"{") {
        return format_text_start(body);
    }
    let digits = hex::encode(&body[..body.len().min(SHOWN_BYTES_MAX)]);
    if body.len() > SHOWN_BYTES_MAX { format!("{digits} ...") } else { digits }
}

fn format_text_start(body: &Bytes) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]).into_owned();
    if body.len() > SHOWN_BYTES_MAX { format!("{start} ...") } else { start }
}
