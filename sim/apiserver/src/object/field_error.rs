//! Validation errors of single fields, with the messages of the real server.

use serde_json::Value;

/// Validation error of one field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        // The real server prints structs in Go's notation; JSON is close enough.
        Self { reason: "FieldValueInvalid", field: field.into(), message: format!("Invalid value: {value}: {detail}") }
    }

    /// An invalid value in another notation than JSON.
    pub(crate) fn invalid_text(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self { reason: "FieldValueInvalid", field: field.into(), message: format!("Invalid value: {value}: {detail}") }
    }

    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", field: field.into(), message }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[String]) -> Self {
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self { reason: "FieldValueNotSupported", field: field.into(), message }
    }

    pub(crate) fn too_long(field: impl Into<String>, bytes_max: usize) -> Self {
        let message = format!("Too long: may not be more than {bytes_max} bytes");
        Self { reason: "FieldValueTooLong", field: field.into(), message }
    }

    pub(crate) fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueNotFound", field: field.into(), message: format!("Not found: {value}") }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &str) -> Self {
        Self { reason: "FieldValueDuplicate", field: field.into(), message: format!("Duplicate value: {value}") }
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {detail}") }
    }

    /// A value of another type than the schema requires.
    pub(crate) fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }

    /// True if CEL rules are not evaluated because of this error.
    pub(crate) fn is_blocking(&self) -> bool {
        matches!(
            self.reason,
            "FieldValueRequired"
                | "FieldValueNotSupported"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
                | "FieldValueTypeInvalid"
        )
    }

    /// Returns the error in one line.
    pub(crate) fn full(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}
