//! Records in the cluster of the resources that the controller has in the external API.

use serde_json::{Value, json};

use super::crd::{SHAPE, SHAPE_REF};
use crate::client::ResourceKind;
use crate::object::{name, text};
use crate::owners::owner_reference;

/// Namespace of the records in the cluster, and of the resources in the external API.
pub(super) const NAMESPACE: &str = "default";
/// Label of the controller's records.
pub const RECORD_LABEL: &str = "guests.example.com/record";
/// Kind of a record that is a ConfigMap, and of the report about leaks.
pub(super) const CONFIG_MAP: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };

/// Form of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordForm {
    /// A ConfigMap.
    ConfigMap,
    /// The custom resource `ShapeRef`. It stays when its shape is deleted: a dangling one reveals the deletion.
    ShapeRef,
    /// The custom resource `ShapeRef` with its shape as its owner: the garbage collector deletes the record before the
    /// controller has deleted the resource. Wrong on purpose.
    OwnedShapeRef,
}

impl RecordForm {
    /// Returns the kind of the records.
    pub fn kind(self) -> ResourceKind {
        match self {
            RecordForm::ConfigMap => CONFIG_MAP,
            RecordForm::ShapeRef | RecordForm::OwnedShapeRef => SHAPE_REF,
        }
    }

    /// Builds the record of the resource of a shape.
    pub(super) fn build(self, shape: &Value, resource: &str) -> Value {
        let kind = self.kind();
        let mut record = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {"name": record_name(resource), "namespace": NAMESPACE, "labels": {RECORD_LABEL: "shapes"}},
        });
        match self {
            RecordForm::ConfigMap => record["data"] = json!({"thing": resource}),
            RecordForm::ShapeRef | RecordForm::OwnedShapeRef => {
                record["spec"] = json!({"shape": name(shape), "resource": resource});
            }
        }
        if self == RecordForm::OwnedShapeRef {
            record["metadata"]["ownerReferences"] = json!([owner_reference(SHAPE, shape)]);
        }
        record
    }

    /// Returns the name of the resource that a record names.
    pub(super) fn read(self, record: &Value) -> &str {
        match self {
            RecordForm::ConfigMap => text(record, "/data/thing"),
            RecordForm::ShapeRef | RecordForm::OwnedShapeRef => text(record, "/spec/resource"),
        }
    }
}

/// Returns the name of the record of a resource.
pub(super) fn record_name(resource: &str) -> String {
    format!("record.{resource}")
}
