//! Validation of the options of lists and watches.

use serde_json::json;

use super::resource_request::ResourceRequest;
use crate::http::error::ApiError;
use crate::object::field_error::FieldError;

const MATCH: &str = "resourceVersionMatch";

impl ResourceRequest<'_> {
    /// Validates the options of a list or a watch.
    pub(super) fn check_list_options(&self, watching: bool) -> Result<(), ApiError> {
        for name in ["limit", "timeoutSeconds"] {
            if let Some(value) = self.http.parameter(name).filter(|value| value.parse::<i64>().is_err()) {
                return Err(ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax")));
            }
        }
        let errors = if watching { self.watch_errors() } else { self.list_errors() };
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid_kind("meta.k8s.io", "ListOptions", "", &errors))
    }

    fn watch_errors(&self) -> Vec<FieldError> {
        let rule = self.http.parameter(MATCH);
        let initial = self.http.parameter("sendInitialEvents").is_some();
        let forbidden = |detail: &str| FieldError::forbidden(MATCH, detail);
        match (initial, rule) {
            (false, None) | (true, Some("NotOlderThan")) => Vec::new(),
            (false, Some(_)) => {
                vec![forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")]
            }
            (true, rule) => {
                let mut errors =
                    vec![forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")];
                if let Some(rule) = rule {
                    let supported = ["\"NotOlderThan\"".to_owned()];
                    errors.push(FieldError::unsupported(MATCH, &json!(rule), &supported));
                }
                errors
            }
        }
    }

    fn list_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let forbidden = |detail: &str| FieldError::forbidden(MATCH, detail);
        let version = self.http.parameter("resourceVersion");
        if let Some(rule) = self.http.parameter(MATCH) {
            if version.is_none() {
                errors.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
            }
            if self.http.parameter("continue").is_some() {
                errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
            }
            if !matches!(rule, "Exact" | "NotOlderThan") {
                let supported = ["\"Exact\"", "\"NotOlderThan\"", "\"\""].map(str::to_owned);
                errors.push(FieldError::unsupported(MATCH, &json!(rule), &supported));
            }
            if rule == "Exact" && version == Some("0") {
                errors.push(forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
            }
        }
        if self.http.parameter("sendInitialEvents").is_some() {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        errors
    }
}
