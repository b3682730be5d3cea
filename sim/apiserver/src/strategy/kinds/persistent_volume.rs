//! PersistentVolume.

use serde_json::{Value, json};

use crate::object::fields::format_timestamp;
use crate::object::finalizers::add_finalizer;
use crate::strategy::{PrepareContext, Strategy};

pub(super) struct PersistentVolume;

impl Strategy for PersistentVolume {
    fn prepare_for_create(&self, context: &mut PrepareContext<'_>, object: &mut Value) {
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": format_timestamp(context.now)});
        add_finalizer(object, "kubernetes.io/pv-protection");
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
