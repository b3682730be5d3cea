//! A panic in the work on one object is a failure that names the object.

use std::future::Future;

use sindri_model::ObjectKey;

use crate::cluster::{ClusterError, FailedOperation};
use crate::panics::catch_panic;

/// Does `verb` to an object; a panic becomes its error.
pub async fn isolate<T, E: From<ClusterError>>(
    verb: &'static str,
    key: &ObjectKey,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let to_error = |cause| ClusterError::Internal { operation: FailedOperation::on_object(verb, key), cause };
    catch_panic(work).await.unwrap_or_else(|cause| Err(to_error(cause).into()))
}
