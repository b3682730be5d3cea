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

/// What most kinds are: in namespaces, without a generation, without a status.
const PLAIN: BuiltIn = BuiltIn {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    generation: false,
    status: false,
};

const BUILT_IN: [BuiltIn; 10] = [
    BuiltIn { kind: "ConfigMap", plural: "configmaps", short_names: &["cm"], ..PLAIN },
    BuiltIn { kind: "Namespace", plural: "namespaces", short_names: &["ns"], namespaced: false, status: true, ..PLAIN },
    BuiltIn {
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        short_names: &["pvc"],
        status: true,
        ..PLAIN
    },
    BuiltIn {
        kind: "Pod",
        plural: "pods",
        short_names: &["po"],
        categories: &["all"],
        generation: true,
        status: true,
        ..PLAIN
    },
    BuiltIn { kind: "Secret", plural: "secrets", ..PLAIN },
    BuiltIn { kind: "Service", plural: "services", short_names: &["svc"], categories: &["all"], status: true, ..PLAIN },
    BuiltIn { kind: "ServiceAccount", plural: "serviceaccounts", short_names: &["sa"], ..PLAIN },
    BuiltIn {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        short_names: &["deploy"],
        categories: &["all"],
        generation: true,
        status: true,
        ..PLAIN
    },
    BuiltIn { group: "coordination.k8s.io", kind: "Lease", plural: "leases", ..PLAIN },
    BuiltIn {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        status: true,
        ..PLAIN
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
