//! PersistentVolume.

use serde_json::{Value, json};

use crate::object::fields::stamp;
use crate::object::finalizers::add_finalizer;
use crate::strategy::{PrepareContext, Strategy};

pub(super) struct PersistentVolume;

impl Strategy for PersistentVolume {
    fn prepare_for_create(&self, context: &mut PrepareContext<'_>, object: &mut Value) {
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": stamp(context.now)});
        add_finalizer(object, "kubernetes.io/pv-protection");
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
