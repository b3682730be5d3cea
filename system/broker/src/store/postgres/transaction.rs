//! Runs an operation on a pooled connection: in one transaction, or without one if it only reads.

use deadpool_postgres::{Client, Pool};

use super::origin::Origin;
use super::session::PostgresSession;
use crate::store::records::StoreError;
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::{Access, Operation};
use crate::store::sql::observer_slot::ObserverSlot;

/// Runs an operation in one transaction, and passes its changes to the observer when they are durable.
pub(super) async fn transact<T>(
    pool: &Pool,
    origin: &Origin,
    observer: &ObserverSlot,
    cipher: &CipherSlot,
    access: Access,
    operation: Operation<T>,
) -> Result<T, StoreError> {
    let mut connection = BorrowedConnection::get(pool, origin, access).await?;
    let mut session = PostgresSession::begin(connection.client()?, origin, cipher, access).await?;
    let done = match operation(&mut session).await {
        Ok(result) => Ok((result, session.commit().await?)),
        Err(error) => {
            session.roll_back().await?;
            Err(error)
        }
    };
    connection.is_idle = true;
    let (result, changes) = done?;
    observer.notify(&changes);
    Ok(result)
}

/// Runs an operation that only reads. It is one statement, or tolerates changes between two.
pub(super) async fn read<T>(
    pool: &Pool,
    origin: &Origin,
    cipher: &CipherSlot,
    operation: Operation<T>,
) -> Result<T, StoreError> {
    let mut connection = BorrowedConnection::get(pool, origin, Access::Read).await?;
    let result = {
        let mut session = PostgresSession::without_transaction(connection.client()?, origin, cipher, Access::Read);
        operation(&mut session).await
    };
    connection.is_idle = true;
    result
}

/// A connection that returns to its pool only if its last statement has completed. An operation that is dropped half-way
/// closes its connection: the server rolls back, and no later call waits for a response that may never come.
struct BorrowedConnection {
    client: Option<Client>,
    is_idle: bool,
}

impl BorrowedConnection {
    async fn get(pool: &Pool, origin: &Origin, access: Access) -> Result<Self, StoreError> {
        let client = pool.get().await.map_err(|_| StoreError::Unavailable)?;
        // After the connection was made: making it may have shown that the database was replaced.
        match access {
            Access::Read | Access::Write => origin.check_confirmed()?,
            Access::Recover => {}
        }
        Ok(Self { client: Some(client), is_idle: false })
    }

    fn client(&self) -> Result<&Client, StoreError> {
        self.client.as_ref().ok_or(StoreError::Unavailable)
    }
}

impl Drop for BorrowedConnection {
    fn drop(&mut self) {
        if let Some(client) = self.client.take()
            && !self.is_idle
        {
            drop(Client::take(client));
        }
    }
}
