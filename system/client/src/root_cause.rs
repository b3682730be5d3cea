//! The innermost cause of an error.

use std::error::Error;
use std::io;

use crate::tls::describe_tls_error;

/// Returns the message of the innermost cause: "connection refused" instead of "client error (Connect)".
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = find_source(cause) {
        cause = source;
    }
    cause.downcast_ref().map_or_else(|| cause.to_string(), describe_tls_error)
}

/// Returns the source of an error. `source()` of an I/O error skips the error that it wraps.
pub(crate) fn find_source<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}
