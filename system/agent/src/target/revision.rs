//! A revision or removal from the target state, with its bundle parsed once: first for the claims of all stacks, then for the
//! pass of its own stack.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use sindri_model::wire::{DeploymentObject, SubmittingRequest};
use sindri_model::{Bundle, BundleError, DocumentError, ObjectKey};
use sindri_traces::RequestContext;

use crate::panics::catch_panic_of;

/// Keys of the objects that a revision declares; `None` if its bundle cannot be parsed.
pub type DeclaredKeys = Option<Vec<Arc<ObjectKey>>>;

/// A revision or a removal.
pub struct Revision {
    wire: DeploymentObject,
    /// True if it was read from the copy in the cluster, because the broker has not responded yet.
    is_from_copy: bool,
    /// Request that submitted it, if the broker has named it.
    request: Option<RequestContext>,
    /// Keys of the declared objects.
    pub declared: DeclaredKeys,
    /// Parsed bundle, until the first pass takes it. The pass keeps its own form, so that only one stays in memory.
    bundle: Mutex<Option<Bundle>>,
}

impl Revision {
    /// Parses the bundle of a deployment object.
    pub fn from_wire(wire: DeploymentObject) -> Self {
        Self::parse(wire, false)
    }

    /// Returns the same revision with the request that submitted it.
    pub fn with_request(self, request: Option<&SubmittingRequest>) -> Self {
        Self { request: request.and_then(RequestContext::from_origin), ..self }
    }

    /// Parses the bundle of a deployment object of the copy in the cluster.
    pub fn from_copy(wire: DeploymentObject) -> Self {
        Self::parse(wire, true)
    }

    fn parse(wire: DeploymentObject, is_from_copy: bool) -> Self {
        let bundle = parse_bundle(&wire).ok();
        let keys = |bundle: &Bundle| bundle.objects().iter().map(|object| object.key.clone()).collect();
        Self { declared: bundle.as_ref().map(keys), bundle: Mutex::new(bundle), wire, is_from_copy, request: None }
    }

    /// Returns true if the broker has sent an equal deployment object.
    pub fn is_same_as(&self, wire: &DeploymentObject) -> bool {
        !self.is_from_copy && self.wire == *wire
    }

    /// Returns true if it was read from the copy in the cluster: only drift is corrected, and nothing is deleted.
    pub fn is_from_copy(&self) -> bool {
        self.is_from_copy
    }

    /// Returns the request that submitted it, if the broker has named it.
    pub fn request(&self) -> Option<&RequestContext> {
        self.request.as_ref()
    }

    /// Returns the parsed bundle; parses it again if an earlier call took it.
    pub fn take_bundle(&self) -> Result<Bundle, BundleError> {
        let bundle = self.bundle.lock().unwrap_or_else(PoisonError::into_inner).take();
        bundle.map_or_else(|| parse_bundle(&self.wire), Ok)
    }
}

impl Deref for Revision {
    type Target = DeploymentObject;

    fn deref(&self) -> &DeploymentObject {
        &self.wire
    }
}

/// Parses the bundle; that of a removal is empty. A panic is an error of this bundle.
fn parse_bundle(wire: &DeploymentObject) -> Result<Bundle, BundleError> {
    if wire.is_deletion_marker {
        return Ok(Bundle::default());
    }
    catch_panic_of(|| Bundle::parse(&wire.yaml_content))
        .unwrap_or_else(|cause| Err(BundleError { errors: vec![DocumentError::Internal(cause)] }))
}
