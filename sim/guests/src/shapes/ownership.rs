//! Schemes by which the controller recognizes its own resources.

use std::fmt::Debug;

use serde_json::{Value, json};

use super::observed::ObservedShapes;
use super::records::RecordForm;
use crate::object::{name, text, uid};

/// Prefix of names under the scheme [`Prefix`].
const PREFIX: &str = "shape.";
/// Label under the scheme [`Labels`].
const OWNER_LABEL: &str = "guests.example.com/owner";
/// Value of [`OWNER_LABEL`].
const OWNER: &str = "shapes";
/// Finalizer that keeps a shape until its resource is deleted.
pub const FINALIZER: &str = "guests.example.com/shapes";
/// Number of characters of the shape's UID in a unique resource name.
const UID_CHARACTERS: usize = 8;

/// Time at which the name of a resource is recorded in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordTiming {
    /// Never.
    Never,
    /// Before its creation: a crash in between leaves a record without a resource.
    BeforeCreate,
    /// After its creation: a crash in between leaves an unknown resource. Wrong on purpose.
    AfterCreate,
}

/// A way to distinguish the controller's resources from those of other clients.
pub trait OwnershipScheme: Debug + Send + Sync {
    /// Returns the name of the resource of a shape.
    fn resource_name(&self, shape: &Value) -> String;

    /// Returns true if a resource belongs to the controller.
    fn owns(&self, resource: &Value, observed: &ObservedShapes) -> bool;

    /// Returns the labels of a resource.
    fn labels(&self) -> Value {
        json!({})
    }

    /// Returns the time at which resources are recorded.
    fn record_timing(&self) -> RecordTiming {
        RecordTiming::Never
    }

    /// Returns the form of the records.
    fn record_form(&self) -> RecordForm {
        RecordForm::ConfigMap
    }

    /// Returns true if a finalizer keeps a shape until its resource is deleted.
    fn uses_finalizer(&self) -> bool {
        false
    }
}

fn full_name(shape: &Value) -> String {
    format!("{}.{}", text(shape, "/metadata/namespace"), name(shape))
}

fn unique_name(shape: &Value) -> String {
    let uid: String = uid(shape).chars().take(UID_CHARACTERS).collect();
    format!("{}.{uid}", full_name(shape))
}

/// A resource belongs to the controller if its name has the prefix.
#[derive(Clone, Copy, Debug)]
pub struct Prefix;

impl OwnershipScheme for Prefix {
    fn resource_name(&self, shape: &Value) -> String {
        format!("{PREFIX}{}", full_name(shape))
    }

    fn owns(&self, resource: &Value, _: &ObservedShapes) -> bool {
        name(resource).starts_with(PREFIX)
    }
}

/// A resource belongs to the controller if it has the label.
#[derive(Clone, Copy, Debug)]
pub struct Labels;

impl OwnershipScheme for Labels {
    fn resource_name(&self, shape: &Value) -> String {
        full_name(shape)
    }

    fn owns(&self, resource: &Value, _: &ObservedShapes) -> bool {
        resource.pointer("/metadata/labels").is_some_and(|labels| labels[OWNER_LABEL] == OWNER)
    }

    fn labels(&self) -> Value {
        json!({OWNER_LABEL: OWNER})
    }
}

/// A resource belongs to the controller if its name is recorded in the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    /// Time at which resources are recorded.
    pub timing: RecordTiming,
    /// Form of the records.
    pub form: RecordForm,
}

impl Checkpoint {
    /// Records of this form, each written before its resource is created.
    pub fn before_create(form: RecordForm) -> Self {
        Self { timing: RecordTiming::BeforeCreate, form }
    }
}

impl OwnershipScheme for Checkpoint {
    fn resource_name(&self, shape: &Value) -> String {
        unique_name(shape)
    }

    fn owns(&self, resource: &Value, observed: &ObservedShapes) -> bool {
        observed.records.contains(name(resource))
    }

    fn record_timing(&self) -> RecordTiming {
        self.timing
    }

    fn record_form(&self) -> RecordForm {
        self.form
    }
}

/// A resource belongs to the controller if a shape with the finalizer has its name.
#[derive(Clone, Copy, Debug)]
pub struct Finalizer;

impl OwnershipScheme for Finalizer {
    fn resource_name(&self, shape: &Value) -> String {
        unique_name(shape)
    }

    fn owns(&self, resource: &Value, observed: &ObservedShapes) -> bool {
        let mut kept = observed.shapes.iter().filter(|shape| has_finalizer(shape));
        kept.any(|shape| self.resource_name(shape) == name(resource))
    }

    fn uses_finalizer(&self) -> bool {
        true
    }
}

/// Every resource belongs to the controller: it has the external API for itself, and deletes the resources that no shape
/// declares. Wrong in an external API that other clients use too.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

impl OwnershipScheme for Exclusive {
    fn resource_name(&self, shape: &Value) -> String {
        full_name(shape)
    }

    fn owns(&self, _: &Value, _: &ObservedShapes) -> bool {
        true
    }
}

/// Every resource with the name of a shape belongs to the controller. Wrong on purpose: other clients choose names too.
#[derive(Clone, Copy, Debug)]
pub struct ByName;

impl OwnershipScheme for ByName {
    fn resource_name(&self, shape: &Value) -> String {
        full_name(shape)
    }

    fn owns(&self, _: &Value, _: &ObservedShapes) -> bool {
        true
    }
}

/// Returns true if a shape has the finalizer.
pub fn has_finalizer(shape: &Value) -> bool {
    let finalizers = shape.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == FINALIZER))
}
