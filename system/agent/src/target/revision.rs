//! What the broker wants of one stack, read once: for the claims of all stacks first, and then for its own pass.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use sindri_model::wire::DeploymentObject;
use sindri_model::{Bundle, BundleError, ObjectKey};

/// What one revision declares; nothing is known of one that cannot be read.
pub type Declared = Option<Vec<Arc<ObjectKey>>>;

/// A revision or a removal.
pub struct Revision {
    object: DeploymentObject,
    /// What it declares.
    pub declared: Declared,
    /// Kept until the first pass takes it: what that makes of it is kept instead, and not both.
    bundle: Mutex<Option<Bundle>>,
}

impl Revision {
    /// Reads what the broker sent.
    pub fn read(object: DeploymentObject) -> Self {
        let bundle = parse(&object).ok();
        let keys = |bundle: &Bundle| bundle.objects().iter().map(|object| object.key.clone()).collect();
        Self { declared: bundle.as_ref().map(keys), bundle: Mutex::new(bundle), object }
    }

    /// Whether it is what the broker sent now.
    pub fn is(&self, object: &DeploymentObject) -> bool {
        self.object == *object
    }

    /// Its objects, or what is wrong with them.
    pub fn bundle(&self) -> Result<Bundle, BundleError> {
        let kept = self.bundle.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.map_or_else(|| parse(&self.object), Ok)
    }
}

impl Deref for Revision {
    type Target = DeploymentObject;

    fn deref(&self) -> &DeploymentObject {
        &self.object
    }
}

/// A removal declares nothing.
fn parse(object: &DeploymentObject) -> Result<Bundle, BundleError> {
    if object.is_deletion_marker { Ok(Bundle::default()) } else { Bundle::parse(&object.yaml_content) }
}
