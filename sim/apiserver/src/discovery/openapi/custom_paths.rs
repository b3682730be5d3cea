//! Paths of custom resources, derived from those of Deployments, which have the same operations.

use serde_json::{Map, Value, json};

use super::dialect::{Dialect, model_name};
use crate::registry::resource::Target;

/// Prefix of the paths of Deployments.
const TEMPLATE: &str = "/apis/apps/v1/";
const NAMESPACED: &str = "namespaces/{namespace}/";
/// Media types of custom resources.
const MEDIA: [&str; 2] = ["application/json", "application/yaml"];
const PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
/// Kind whose paths are adapted.
const KIND: &str = "Deployment";

/// Writes the paths of a custom resource.
pub(super) fn write_paths(target: &Target, dialect: Dialect, template: &Value, paths: &mut Map<String, Value>) {
    let writer = PathWriter { target, dialect, template };
    let resource = &target.resource;
    let root = format!("/apis/{}/{}/", resource.group, target.version.name);
    let scope = if resource.namespaced { NAMESPACED } else { "" };
    if resource.namespaced {
        paths.insert(format!("{root}{}", resource.plural), writer.adapt_path("deployments"));
    }
    let parts = ["status", "scale"].into_iter().filter(|part| target.version.subresources.contains_key(*part));
    for below in [String::new(), "/{name}".to_owned()].into_iter().chain(parts.map(|part| format!("/{{name}}/{part}")))
    {
        let adapted = writer.adapt_path(&format!("{NAMESPACED}deployments{below}"));
        paths.insert(format!("{root}{scope}{}{below}", resource.plural), adapted);
    }
}

struct PathWriter<'a> {
    target: &'a Target,
    dialect: Dialect,
    template: &'a Value,
}

impl PathWriter<'_> {
    fn adapt_path(&self, path: &str) -> Value {
        let mut adapted = self.template.get(format!("{TEMPLATE}{path}")).cloned().unwrap_or_default();
        let listed = adapted.pointer("/get/parameters").cloned();
        for (method, operation) in adapted.as_object_mut().into_iter().flatten() {
            match method.as_str() {
                "parameters" => self.adapt_parameters(operation),
                method => self.adapt_operation(method, operation, listed.as_ref()),
            }
        }
        self.rename(&mut adapted);
        adapted
    }

    fn adapt_parameters(&self, parameters: &mut Value) {
        if let (Some(list), false) = (parameters.as_array_mut(), self.target.resource.namespaced) {
            list.retain(|parameter| !is_parameter(parameter, "namespace"));
        }
    }

    fn adapt_operation(&self, method: &str, operation: &mut Value, listed: Option<&Value>) {
        match operation["x-kubernetes-action"].as_str() {
            Some("get") => operation["parameters"] = json!([self.resource_version()]),
            Some("deletecollection") => {
                operation["parameters"] = listed.cloned().unwrap_or_default();
                operation.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("requestBody")));
            }
            _ => {}
        }
        self.adapt_content(method == "patch", operation);
        self.adapt_names(operation);
    }

    /// Adapts the media types and responses of an operation.
    fn adapt_content(&self, is_patch: bool, operation: &mut Value) {
        if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
            if is_patch {
                responses.remove("201");
            }
            responses.values_mut().for_each(restrict_media);
        }
        if self.dialect == Dialect::V2 {
            operation["consumes"] = if is_patch { json!(PATCHES) } else { json!(MEDIA) };
            operation["produces"] = json!(MEDIA);
        } else if let Some(body) = operation.get_mut("requestBody") {
            let schema = body["content"].as_object().and_then(|content| content.values().next()).cloned();
            let media: &[&str] = if is_patch { &PATCHES } else { &MEDIA };
            body["content"] = media.iter().map(|media| ((*media).to_owned(), schema.clone())).collect();
        }
    }

    /// Adapts the id, the description and the kind of an operation.
    fn adapt_names(&self, operation: &mut Value) {
        let resource = &self.target.resource;
        let identifier = operation["operationId"].as_str().unwrap_or_default();
        let mut identifier = identifier.replacen("AppsV1", &self.capitalized_version(), 1);
        if !resource.namespaced {
            identifier = identifier.replacen("Namespaced", "", 1);
        }
        operation["operationId"] = json!(replace_last(&identifier, KIND, &resource.kind));
        let description = operation["description"].as_str().unwrap_or_default().replacen("list or watch", "list", 1);
        let article = if resource.kind.starts_with(|first: char| "aeiouAEIOU".contains(first)) { "an" } else { "a" };
        let description = match description.strip_suffix(" a Deployment") {
            Some(start) => format!("{start} {article} {}", resource.kind),
            None => replace_last(&description, KIND, &resource.kind),
        };
        operation["description"] = json!(description);
        let version = &self.target.version.name;
        operation["tags"] = json!([format!("{}_{version}", to_identifier(self.short_group(), false))]);
        operation["x-kubernetes-group-version-kind"] =
            json!({"group": resource.group, "kind": resource.kind, "version": version});
    }

    /// Returns the group as in ids of operations.
    fn short_group(&self) -> &str {
        let group = &self.target.resource.group;
        group.strip_suffix(".k8s.io").unwrap_or(group)
    }

    /// Returns group and version as a part of an operation's id.
    fn capitalized_version(&self) -> String {
        format!("{}{}", to_identifier(self.short_group(), true), to_identifier(&self.target.version.name, true))
    }

    /// Returns the parameter `resourceVersion`, as lists have it.
    fn resource_version(&self) -> Value {
        let listed = self.template.pointer("/~1apis~1apps~1v1~1deployments/parameters").and_then(Value::as_array);
        let mut listed = listed.into_iter().flatten();
        listed.find(|parameter| is_parameter(parameter, "resourceVersion")).cloned().unwrap_or_default()
    }

    /// Replaces the kind in references and in the description of the name.
    fn rename(&self, value: &mut Value) {
        let (target, reference) = (self.target, self.dialect.reference());
        match value {
            Value::String(text) if text.starts_with(reference) => {
                let kind = match text.strip_prefix(reference) {
                    Some("io.k8s.api.apps.v1.Deployment") => &target.resource.kind,
                    Some("io.k8s.api.apps.v1.DeploymentList") => &target.resource.list_kind,
                    _ => return,
                };
                *text = format!("{reference}{}", model_name(target, kind));
            }
            Value::String(text) if text == "name of the Deployment" || text == "name of the Scale" => {
                *text = format!("name of the {}", target.resource.kind);
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.rename(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.rename(value)),
            _ => {}
        }
    }
}

/// True if a parameter, or a reference to one, has this name.
fn is_parameter(parameter: &Value, name: &str) -> bool {
    let reference = parameter.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/parameters/"));
    let referenced = reference.and_then(|reference| reference.split_once('-')).map(|(name, _)| name);
    parameter.get("name").and_then(Value::as_str).or(referenced) == Some(name)
}

/// Removes the media types of a response that custom resources do not have.
fn restrict_media(response: &mut Value) {
    if let Some(content) = response.get_mut("content").and_then(Value::as_object_mut) {
        content.retain(|name, _| MEDIA.contains(&name.as_str()));
    }
}

fn replace_last(text: &str, part: &str, replacement: &str) -> String {
    match text.rsplit_once(part) {
        Some((before, after)) => format!("{before}{replacement}{after}"),
        None => text.to_owned(),
    }
}

/// Returns a text without characters that identifiers do not have; each word after them begins with a capital.
fn to_identifier(text: &str, mut capitalize: bool) -> String {
    let mut identifier = String::new();
    for character in text.chars() {
        if !character.is_ascii_alphanumeric() {
            capitalize = true;
            continue;
        }
        identifier.push(if capitalize { character.to_ascii_uppercase() } else { character });
        capitalize = false;
    }
    identifier
}
