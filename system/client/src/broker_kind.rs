//! The broker on the other side: Sindri's, or another one that offers the same published API and none of Sindri's
//! additions.
//!
//! Only Sindri's broker sends the epoch with a target state. A broker that has sent it once is Sindri's for the rest of the
//! process: without its policies a suspended stack would be written, so a missing operation of it is an error, such as
//! that of a proxy that serves another path.

use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;

use crate::error::ClientError;

/// Kind of a broker, as its responses show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BrokerKind {
    /// No target state was received yet.
    #[default]
    Unknown,
    /// No response had an epoch.
    Published,
    /// A response had an epoch.
    Sindri,
}

/// Kind of the broker, shared by all clones of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObservedKind(Arc<Mutex<BrokerKind>>);

impl ObservedKind {
    pub(crate) fn get(&self) -> BrokerKind {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a target state had an epoch or not; returns the kind of the broker.
    pub(crate) fn observe(&self, has_epoch: bool) -> BrokerKind {
        let mut kind = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kind = match (*kind, has_epoch) {
            (_, true) | (BrokerKind::Sindri, false) => BrokerKind::Sindri,
            (BrokerKind::Unknown | BrokerKind::Published, false) => BrokerKind::Published,
        };
        *kind
    }

    /// Replaces the error of an operation that only Sindri's broker offers by an empty result, if the broker is another one.
    pub(crate) fn without_additions<T: Default>(&self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        match result {
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) && self.get() == BrokerKind::Published => {
                Ok(T::default())
            }
            other => other,
        }
    }
}
