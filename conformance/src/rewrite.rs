//! A fault that any API server can have: writes of one object by any client are rewritten, as an admission webhook does.

use serde_json::{Value, json};
use sindri_world::environment::StepError;
use sindri_world::scenario::ClusterFault;

/// Only method of a supported fault, as in `PATCH configmaps/note`: an apply is a `PATCH`.
const METHOD: &str = "PATCH";

/// The object that is rewritten, and the patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Resource, such as `configmaps`.
    pub resource: String,
    /// Name, in any namespace.
    pub name: String,
    /// JSON merge patch.
    pub patch: Value,
}

impl Rewrite {
    /// Converts a fault of a scenario.
    pub fn from_fault(fault: &ClusterFault) -> Result<Self, StepError> {
        let ClusterFault { status: None, lose_response: false, cut: false, panic: false, rewrite: Some(patch), .. } =
            fault
        else {
            return Err(StepError::Unsupported("make an API server fail"));
        };
        if fault.times.is_some() {
            return Err(StepError::Unsupported("count what an API server rewrites"));
        }
        let words: Vec<&str> = fault.requests.split_whitespace().collect();
        let object = match words.as_slice() {
            [METHOD, object] => object.split_once('/').filter(|(_, name)| !name.contains('/')),
            _ => None,
        };
        let Some((resource, name)) = object else {
            return Err(StepError::Unsupported("rewrite anything but one object, as in PATCH configmaps/note"));
        };
        Ok(Self { resource: resource.to_owned(), name: name.to_owned(), patch: patch.clone() })
    }

    /// Converts it for the endpoint of the simulated API server.
    pub fn to_simulated(&self) -> Value {
        let Self { resource, name, patch } = self;
        json!({"method": METHOD, "resource": resource, "name": name, "fault": {"rewrite": patch}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(fields: Value) -> ClusterFault {
        let mut fault = json!({"cluster": "east", "requests": "PATCH configmaps/note"});
        fault.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(fault).unwrap()
    }

    #[test]
    fn a_fault_names_one_object_by_resource_and_name() {
        let patch = json!({"data": {"a": "hooked"}});
        let rewrite = Rewrite::from_fault(&fault(json!({"rewrite": patch}))).unwrap();
        assert_eq!(rewrite, Rewrite { resource: "configmaps".into(), name: "note".into(), patch: patch.clone() });
        let rule = json!({"method": "PATCH", "resource": "configmaps", "name": "note", "fault": {"rewrite": patch}});
        assert_eq!(rewrite.to_simulated(), rule);
    }

    #[test]
    fn a_fault_that_no_webhook_can_inject_is_unsupported() {
        for fields in [
            json!({"status": 503}),
            json!({"lose_response": true}),
            json!({"cut": true}),
            json!({"panic": true}),
            json!({"rewrite": {}, "cut": true}),
            json!({"rewrite": {}, "times": 2}),
            json!({"rewrite": {}, "requests": ""}),
            json!({"rewrite": {}, "requests": "PATCH"}),
            json!({"rewrite": {}, "requests": "PATCH configmaps/note !dry-run"}),
            json!({"rewrite": {}, "requests": "PUT configmaps/note"}),
            json!({"rewrite": {}, "requests": "PATCH namespaces/default/configmaps/note"}),
        ] {
            assert!(matches!(Rewrite::from_fault(&fault(fields.clone())), Err(StepError::Unsupported(_))), "{fields}");
        }
    }
}
