//! Custom resources that a webhook converts: the conversions that it has made, by the content of the objects.
//!
//! Nothing is sent here. A conversion is a function of the object and the version, so that copies of a server can share what is
//! known of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::object::fields::metadata;

/// Largest number of known conversions.
const KNOWN_MAX: usize = 100_000;

type ContentDigest = [u8; 32];

/// Conversion webhook of a CRD.
#[derive(Debug)]
pub(crate) struct WebhookConversion {
    /// `spec.conversion.webhook`.
    pub(crate) settings: Value,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    converted: BTreeMap<ContentDigest, Arc<Value>>,
    /// The oldest first.
    order: VecDeque<ContentDigest>,
}

impl WebhookConversion {
    pub(crate) fn new(settings: Value) -> Self {
        Self { settings, known: Mutex::default() }
    }

    /// Returns an object as the webhook converted it to a version, with the resourceVersion of the object. `None` if it did not.
    pub(crate) fn find(&self, object: &Value, api_version: &str) -> Option<Value> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut converted = Value::clone(known.converted.get(&digest(object, api_version))?);
        if let Some(version) = object["metadata"].get("resourceVersion") {
            metadata(&mut converted).insert("resourceVersion".to_owned(), version.clone());
        }
        Some(converted)
    }

    /// Remembers a conversion.
    pub(crate) fn add(&self, object: &Value, api_version: &str, converted: Value) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = digest(object, api_version);
        if known.converted.insert(digest, Arc::new(converted)).is_none() {
            known.order.push_back(digest);
        }
        if known.order.len() > KNOWN_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.converted.remove(&oldest);
        }
    }
}

/// Returns an object without its resourceVersion, as webhooks get it.
pub(crate) fn without_resource_version(object: &Value) -> Value {
    let mut object = object.clone();
    metadata(&mut object).remove("resourceVersion");
    object
}

fn digest(object: &Value, api_version: &str) -> ContentDigest {
    let mut digest = Sha256::new();
    digest.update(api_version);
    digest.update([0]);
    digest.update(without_resource_version(object).to_string());
    digest.finalize().into()
}
