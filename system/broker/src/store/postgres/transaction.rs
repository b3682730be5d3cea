//! Runs an operation in one transaction on a pooled connection.

use deadpool_postgres::{Client, Pool};

use super::session::PostgresSession;
use crate::store::records::StoreError;
use crate::store::sql::database::Operation;
use crate::store::sql::observer_slot::ObserverSlot;

/// Runs an operation in one transaction, and passes its changes to the observer when they are durable.
pub(super) async fn transact<T>(
    pool: &Pool,
    observer: &ObserverSlot,
    operation: Operation<T>,
) -> Result<T, StoreError> {
    let client = pool.get().await.map_err(|_| StoreError::Unavailable)?;
    let mut guard = ConnectionGuard { client: Some(client), is_idle: false };
    let Some(client) = &guard.client else { return Err(StoreError::Unavailable) };
    let mut session = PostgresSession::begin(client).await?;
    let done = match operation(&mut session).await {
        Ok(result) => Ok((result, session.commit().await?)),
        Err(error) => {
            session.roll_back().await?;
            Err(error)
        }
    };
    guard.is_idle = true;
    let (result, changes) = done?;
    observer.notify(&changes);
    Ok(result)
}

/// Returns a connection to its pool only between two transactions. A transaction that is dropped half-way closes the
/// connection, and the server rolls it back.
struct ConnectionGuard {
    client: Option<Client>,
    is_idle: bool,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if let Some(client) = self.client.take()
            && !self.is_idle
        {
            drop(Client::take(client));
        }
    }
}
