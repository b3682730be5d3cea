//! The table of built-in kinds.

use std::sync::Arc;

use sindri_merge::Shape;

use crate::registry::{Resource, Version};

/// One row of the table. All of them are served and stored in one version.
struct BuiltIn {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    /// Whether the object's spec has a generation.
    generation: bool,
    /// Whether there is a `/status` to write to.
    status: bool,
}

const BUILT_IN: [BuiltIn; 7] = [
    BuiltIn {
        group: "",
        version: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        short_names: &["cm"],
        categories: &[],
        namespaced: true,
        generation: false,
        status: false,
    },
    BuiltIn {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        short_names: &["ns"],
        categories: &[],
        namespaced: false,
        generation: false,
        status: true,
    },
    BuiltIn {
        group: "",
        version: "v1",
        kind: "Secret",
        plural: "secrets",
        short_names: &[],
        categories: &[],
        namespaced: true,
        generation: false,
        status: false,
    },
    BuiltIn {
        group: "",
        version: "v1",
        kind: "Service",
        plural: "services",
        short_names: &["svc"],
        categories: &["all"],
        namespaced: true,
        generation: false,
        status: true,
    },
    BuiltIn {
        group: "",
        version: "v1",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short_names: &["sa"],
        categories: &[],
        namespaced: true,
        generation: false,
        status: false,
    },
    BuiltIn {
        group: "apps",
        version: "v1",
        kind: "Deployment",
        plural: "deployments",
        short_names: &["deploy"],
        categories: &["all"],
        namespaced: true,
        generation: true,
        status: true,
    },
    BuiltIn {
        group: "apiextensions.k8s.io",
        version: "v1",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        status: true,
    },
];

/// The resources that every server has.
pub(crate) fn built_in() -> impl Iterator<Item = Resource> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    BUILT_IN.iter().map(move |row| Resource {
        group: row.group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        short_names: owned(row.short_names),
        categories: owned(row.categories),
        namespaced: row.namespaced,
        generation: row.generation,
        custom: false,
        storage: row.version.to_owned(),
        versions: vec![Arc::new(Version {
            name: row.version.to_owned(),
            status: row.status,
            schema: None,
            shape: Shape::well_known(row.kind),
            columns: Vec::new(),
        })],
    })
}
