//! Resources of the API with their versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sindri_merge::Shape;

use crate::object::fields::{api_version, array_at, string_at};
use crate::registry::types::{METADATA, SchemaType};
use crate::registry::webhook_conversion::WebhookConversion;
use crate::schema::cel_rules::ValidationRules;

/// Verbs of custom resources.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Verbs of subresources of custom resources.
pub(crate) const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

/// One resource of the API in all its served versions.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) generation: bool,
    /// Verbs, as in discovery.
    pub(crate) verbs: Vec<String>,
    pub(crate) custom: bool,
    /// Storage version.
    pub(crate) storage: String,
    /// Served versions, the preferred first.
    pub(crate) versions: Vec<Arc<Version>>,
    /// Webhook that converts custom resources between versions.
    pub(crate) conversion: Option<Arc<WebhookConversion>>,
}

/// One version of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) status: bool,
    /// The schema of a custom resource.
    pub(crate) schema: Option<Value>,
    /// CEL rules of that schema.
    pub(crate) rules: Option<Arc<ValidationRules>>,
    /// Type of a custom resource for server-side apply, including its metadata.
    pub(crate) declared: Option<SchemaType>,
    /// The type of a built-in kind.
    pub(crate) typed: Option<&'static SchemaType>,
    /// An empty object of this version.
    pub(crate) blank: Value,
    pub(crate) shape: Shape,
    /// Additional printer columns of a custom resource.
    pub(crate) columns: Vec<Value>,
    /// Subresources with their verbs.
    pub(crate) subresources: BTreeMap<String, Vec<String>>,
    /// `subresources.scale` of a custom resource: the paths of its fields.
    pub(crate) scale: Option<Value>,
    /// Deprecation warning of this version.
    pub(crate) deprecation: Option<String>,
}

impl Resource {
    /// Returns the resource as in errors: `configmaps`, `deployments.apps`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns the kind as in errors: `ConfigMap`, `Deployment.apps`.
    pub(crate) fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.is("", "namespaces")
    }

    /// Returns the name of the resource in the keys of etcd, without its group.
    pub(crate) fn storage_prefix(&self) -> &str {
        match self.plural.as_str() {
            _ if self.custom => &self.plural,
            "services" => "services/specs",
            "endpoints" => "services/endpoints",
            "ingresses" => "ingress",
            "replicationcontrollers" => "controllers",
            "nodes" => "minions",
            plural => plural,
        }
    }

    /// True for reviews, which are not stored.
    pub(crate) fn is_review(&self) -> bool {
        !self.custom && self.verbs == ["create"] && self.kind.ends_with("Review")
    }

    /// Reads the resource of a CRD. `None` if it serves no version.
    pub(crate) fn from_crd(definition: &Value) -> Option<Self> {
        let names = definition.pointer("/spec/names")?;
        let owned =
            |pointer: &str| array_at(names, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let declared = array_at(definition, "/spec/versions");
        let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
        let mut versions: Vec<Arc<Version>> = declared
            .iter()
            .filter(|version| flag(version, "served"))
            .map(|version| Arc::new(read_version(definition, version)))
            .collect();
        versions.sort_by(|one, other| {
            version_priority(&other.name).cmp(&version_priority(&one.name)).then(one.name.cmp(&other.name))
        });
        let storage = declared.iter().find(|version| flag(version, "storage"))?;
        let kind = string_at(names, "/kind").to_owned();
        let or = |given: &str, otherwise: String| {
            if given.is_empty() { otherwise } else { given.to_owned() }
        };
        (!versions.is_empty()).then(|| Self {
            group: string_at(definition, "/spec/group").to_owned(),
            plural: string_at(names, "/plural").to_owned(),
            singular: or(string_at(names, "/singular"), kind.to_lowercase()),
            list_kind: or(string_at(names, "/listKind"), format!("{kind}List")),
            kind,
            short_names: owned("/shortNames"),
            categories: owned("/categories"),
            namespaced: string_at(definition, "/spec/scope") == "Namespaced",
            generation: true,
            verbs: VERBS.map(str::to_owned).to_vec(),
            custom: true,
            storage: string_at(storage, "/name").to_owned(),
            versions,
            conversion: read_conversion(definition),
        })
    }
}

/// Returns the conversion webhook of a CRD.
fn read_conversion(definition: &Value) -> Option<Arc<WebhookConversion>> {
    let is_webhook = string_at(definition, "/spec/conversion/strategy") == "Webhook";
    let settings = definition.pointer("/spec/conversion/webhook").filter(|_| is_webhook)?;
    Some(Arc::new(WebhookConversion::new(settings.clone())))
}

fn read_version(definition: &Value, version: &Value) -> Version {
    let schema = version.pointer("/schema/openAPIV3Schema").cloned();
    let has = |name: &str| version.pointer(&format!("/subresources/{name}")).is_some_and(Value::is_object);
    let subresources = ["scale", "status"].into_iter().filter(|name| has(name));
    Version {
        name: string_at(version, "/name").to_owned(),
        status: has("status"),
        shape: schema.as_ref().map_or_else(Shape::object, Shape::from_schema),
        declared: schema.as_ref().map(declared),
        rules: schema.as_ref().and_then(|schema| ValidationRules::from_schema(schema, true)).map(Arc::new),
        schema,
        typed: None,
        blank: json!({}),
        columns: array_at(version, "/additionalPrinterColumns").to_vec(),
        subresources: subresources.map(|name| (name.to_owned(), PART_VERBS.map(str::to_owned).to_vec())).collect(),
        scale: version.pointer("/subresources/scale").cloned(),
        deprecation: version.get("deprecated").and_then(Value::as_bool).unwrap_or_default().then(|| {
            let warning = string_at(version, "/deprecationWarning");
            let (group, kind) = (string_at(definition, "/spec/group"), string_at(definition, "/spec/names/kind"));
            if warning.is_empty() {
                format!("{group}/{} {kind} is deprecated", string_at(version, "/name"))
            } else {
                warning.to_owned()
            }
        }),
    }
}

/// Returns the type of a schema, with the fields of every object.
fn declared(schema: &Value) -> SchemaType {
    let mut declared = schema.clone();
    if let Some(properties) = declared.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("metadata".to_owned(), json!({ "$ref": METADATA }));
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
    }
    SchemaType::from_schema(&declared)
}

/// Sort key of versions: GA before beta before alpha before others, newer before older.
pub(super) fn version_priority(version: &str) -> (u8, u32, u32) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        match &rest[digits..] {
            "" => Some((3, major, 0)),
            stage if stage.starts_with("beta") => Some((2, major, stage[4..].parse().ok()?)),
            stage if stage.starts_with("alpha") => Some((1, major, stage[5..].parse().ok()?)),
            _ => None,
        }
    };
    parse().unwrap_or((0, 0, 0))
}

/// A resource in the version of a request.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: Arc<Version>,
}

impl Target {
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.resource.group, &self.version.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first() {
        let mut versions = ["v1alpha1", "v2", "foo", "v1", "v1beta2", "v1beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        assert_eq!(versions, ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
