//! Label and field selectors of requests, parsed and rejected as by a real server.

use serde_json::Value;

use crate::http::error::ApiError;
use crate::object::fields::{string_at, value_at};
use crate::object::stored::Stored;
use crate::registry::resource::Resource;
use crate::strategy::checks::names::{label_value_errors, qualified_name_errors};

/// Requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// Label and field selector of a list or a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    /// Field, value, and true if they must be equal.
    fields: Vec<(String, String, bool)>,
}

impl Selector {
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, ApiError> {
        let labels = parse_labels(labels).map_err(ApiError::bad_request)?;
        let fields = parse_fields(fields).map_err(ApiError::bad_request)?;
        let kept = |(field, value, equal): (String, String, bool)| {
            Ok((storage_field(resource, &field).map_err(ApiError::bad_request)?, value, equal))
        };
        let fields = fields.into_iter().map(kept).collect::<Result<_, ApiError>>()?;
        Ok(Self { labels, fields })
    }

    /// True if it selects at most one object of a namespace.
    pub(crate) fn selects_one(&self) -> bool {
        self.fields.iter().any(|(field, _, equal)| field == "metadata.name" && *equal)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        let label = |name: &str| object.label(name);
        let number = |name: &str| label(name).and_then(|value| value.parse::<i64>().ok());
        self.labels.iter().all(|requirement| match requirement {
            Requirement::In(name, values) => label(name).is_some_and(|value| values.iter().any(|other| other == value)),
            Requirement::NotIn(name, values) => {
                !label(name).is_some_and(|value| values.iter().any(|other| other == value))
            }
            Requirement::Exists(name) => label(name).is_some(),
            Requirement::Absent(name) => label(name).is_none(),
            Requirement::Greater(name, bound) => number(name).is_some_and(|value| value > *bound),
            Requirement::Less(name, bound) => number(name).is_some_and(|value| value < *bound),
        }) && self.fields.iter().all(|(field, value, equal)| (field_of(object, field) == *value) == *equal)
    }
}

/// Returns the value that a field selector compares.
fn field_of(object: &Value, field: &str) -> String {
    match field {
        "status.successful" => value_at(object, "/status/succeeded").map_or_else(|| "0".to_owned(), Value::to_string),
        "source" => match string_at(object, "/source/component") {
            "" => string_at(object, "/reportingComponent").to_owned(),
            component => component.to_owned(),
        },
        "spec.host" => string_at(object, "/spec/nodeName").to_owned(),
        "status.podIPs" => string_at(object, "/status/podIP").to_owned(),
        "spec.hostNetwork" | "spec.unschedulable" => {
            (value_at_path(object, field) == Some(&Value::Bool(true))).to_string()
        }
        _ => match value_at_path(object, field) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) if field == "status.replicas" => "0".to_owned(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        },
    }
}

/// Returns the value at a dotted path.
fn value_at_path<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('.').try_fold(object, |value, part| value.get(part))
}

/// Fields besides name and namespace that field selectors support, by kind.
const FIELDS: [(&str, &[&str]); 10] = [
    (
        "Pod",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    ("Secret", &["type"]),
    (
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("Namespace", &["status.phase"]),
    ("Node", &["spec.unschedulable"]),
    ("Service", &["spec.clusterIP", "spec.type"]),
    ("Job", &["status.successful"]),
    ("ReplicationController", &["status.replicas"]),
    ("CertificateSigningRequest", &["spec.signerName"]),
    ("ResourceSlice", &["spec.nodeName", "spec.driver"]),
];

/// Names of Event fields in `events.k8s.io`, and their names in the core group, in which events are stored.
const RENAMED: [(&str, &str); 2] = [("regarding.", "involvedObject."), ("reportingController", "reportingComponent")];

/// Returns the name of a field in the stored version.
fn storage_field(resource: &Resource, field: &str) -> Result<String, String> {
    if !resource.is("events.k8s.io", "events") {
        return check_field(resource, field).map(|()| field.to_owned());
    }
    let unsupported = || format!("field label not supported: {field}");
    let renamed = RENAMED.iter().find_map(|(other, kept)| Some(format!("{kept}{}", field.strip_prefix(other)?)));
    match renamed {
        Some(kept) => check_field(resource, &kept).map(|()| kept).map_err(|_| unsupported()),
        None if RENAMED.iter().any(|(_, kept)| field.starts_with(kept)) || field == "source" => Err(unsupported()),
        None => check_field(resource, field).map(|()| field.to_owned()),
    }
}

fn check_field(resource: &Resource, field: &str) -> Result<(), String> {
    if field == "metadata.name" || field == "metadata.namespace" && resource.namespaced {
        return Ok(());
    }
    if resource.is("", "pods") && field == "spec.host" {
        // The name of the field in the first version of the API.
        return Ok(());
    }
    let own = FIELDS.iter().find(|(kind, _)| !resource.custom && *kind == resource.kind);
    match own {
        Some((_, fields)) if fields.contains(&field) => Ok(()),
        Some(("ResourceSlice", _)) => {
            Err(format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}"))
        }
        Some(("Job", _)) => Err(format!("field label {field:?} not supported for Job")),
        Some(_) => Err(format!("field label not supported: {field}")),
        None if resource.custom => Err(format!("field label not supported: {field}")),
        None if field == "metadata.namespace" => Ok(()),
        None => Err(format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")),
    }
}

fn parse_fields(selector: &str) -> Result<Vec<(String, String, bool)>, String> {
    let mut fields = Vec::new();
    for part in selector.split(',').filter(|part| !part.is_empty()) {
        let (name, value, equal) = match part.split_once("!=") {
            Some((name, value)) => (name, value, false),
            None => {
                let not_understood = || format!("invalid selector: '{selector}'; can't understand '{part}'");
                let (name, value) = part.split_once('=').ok_or_else(not_understood)?;
                (name, value.strip_prefix('=').unwrap_or(value), true)
            }
        };
        fields.push((name.to_owned(), value.to_owned(), equal));
    }
    Ok(fields)
}

/// Splits a label selector into its words and operators.
fn tokens(selector: &str) -> Vec<String> {
    const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
    let (mut tokens, mut rest) = (Vec::new(), selector.trim_start());
    while !rest.is_empty() {
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        let is_end = |c: char| c.is_whitespace() || "=!(),><".contains(c);
        let length = sign.map_or_else(|| rest.find(is_end).unwrap_or(rest.len()), |sign| sign.len());
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

struct Parser {
    tokens: Vec<String>,
    next: usize,
}

fn is_word(token: &str) -> bool {
    !token.is_empty() && !token.starts_with(|c: char| "=!(),><".contains(c))
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.next).map(String::as_str).unwrap_or_default()
    }

    fn take(&mut self) -> String {
        let token = self.peek().to_owned();
        self.next += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let token = self.peek().to_owned();
            if token.is_empty() {
                return Ok(requirements);
            }
            if !is_word(&token) && token != "!" {
                return Err(format!("found '{token}', expected: !, identifier, or 'end of string'"));
            }
            let requirement = self.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            match self.take().as_str() {
                "" => return Ok(requirements),
                "," if is_word(self.peek()) || self.peek() == "!" => {}
                "," => return Err(format!("found '{}', expected: identifier after ','", self.peek())),
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut key = self.take();
        let absent = key == "!";
        if absent {
            key = self.take();
        }
        if !is_word(&key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(detail) = qualified_name_errors(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {detail}"));
        }
        if absent {
            return Ok(Requirement::Absent(key));
        }
        if matches!(self.peek(), "" | ",") {
            return Ok(Requirement::Exists(key));
        }
        match self.take().as_str() {
            "in" => Ok(Requirement::In(key.clone(), self.values(&key)?)),
            "notin" => Ok(Requirement::NotIn(key.clone(), self.values(&key)?)),
            "=" | "==" => Ok(Requirement::In(key.clone(), vec![self.value(&key)?])),
            "!=" => Ok(Requirement::NotIn(key.clone(), vec![self.value(&key)?])),
            ">" => Ok(Requirement::Greater(key.clone(), self.number(&key)?)),
            "<" => Ok(Requirement::Less(key.clone(), self.number(&key)?)),
            other => Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn value(&mut self, key: &str) -> Result<String, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        let value = self.take();
        if !is_word(&value) {
            return Err(format!("found '{value}', expected: identifier"));
        }
        check_value(key, 0, &value)?;
        Ok(value)
    }

    fn number(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value(key)?;
        value.parse().map_err(|_| {
            format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
        })
    }

    fn values(&mut self, key: &str) -> Result<Vec<String>, String> {
        let open = self.take();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            let token = self.take();
            match token.as_str() {
                ")" => break,
                "," if values.is_empty() => values.push(String::new()),
                "," => {}
                word if is_word(word) => values.push(token),
                other => return Err(format!("found '{other}', expected: ',', ')' or identifier")),
            }
        }
        for (index, value) in values.iter().enumerate() {
            check_value(key, index, value)?;
        }
        Ok(values)
    }
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), String> {
    match label_value_errors(value).first() {
        None => Ok(()),
        Some(detail) => Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {detail}")),
    }
}

fn parse_labels(selector: &str) -> Result<Vec<Requirement>, String> {
    Parser { tokens: tokens(selector), next: 0 }.requirements()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::served::Registry;

    fn config_maps() -> std::sync::Arc<Resource> {
        Registry::new().resource("", "configmaps").expect("served").clone()
    }

    #[test]
    fn selectors_match_as_kubernetes_does() {
        let object =
            Stored::new(json!({"metadata": {"name": "x", "labels": {"app": "web", "tier": "a", "size": "5"}}}));
        for (labels, fields, expected) in [
            ("app=web", "", true),
            ("app==web,tier", "", true),
            ("app!=web", "", false),
            ("other!=web", "", true),
            ("app in (web, db)", "", true),
            ("app notin (web)", "", false),
            ("!other", "", true),
            ("!app", "", false),
            ("size>4,size<6", "", true),
            ("size>5", "", false),
            ("", "metadata.name=x", true),
            ("", "metadata.name!=x", false),
        ] {
            let selector = Selector::parse(&config_maps(), labels, fields).expect("valid");
            assert_eq!(selector.matches(&object), expected, "{labels} {fields}");
        }
    }

    #[test]
    fn each_kind_has_its_own_fields() {
        let registry = Registry::new();
        for (group, plural, field, expected) in [
            ("certificates.k8s.io", "certificatesigningrequests", "spec.signerName", true),
            ("certificates.k8s.io", "certificatesigningrequests", "spec.username", false),
            ("resource.k8s.io", "resourceslices", "spec.driver", true),
            ("", "pods", "spec.host", true),
            ("", "persistentvolumes", "metadata.namespace", true),
            ("", "persistentvolumes", "status.phase", false),
        ] {
            let resource = registry.resource(group, plural).expect("served");
            assert_eq!(Selector::parse(resource, "", &format!("{field}=x")).is_ok(), expected, "{plural} {field}");
        }
    }

    #[test]
    fn invalid_selectors_are_rejected() {
        for (labels, fields) in [("a in (b", ""), ("a b c", ""), ("", "spec.x=1"), ("", "metadata.name")] {
            assert!(Selector::parse(&config_maps(), labels, fields).is_err(), "{labels} {fields}");
        }
    }
}
