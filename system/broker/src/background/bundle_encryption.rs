//! Encrypts bundles that were stored before encryption was turned on.

use std::time::Duration;

use sindri_model::Sequence;
use tokio::time::sleep;

use crate::broker::Broker;
use crate::store::{BundleCipher, RewriteBundle, StoreError, is_encrypted};

/// Largest number of revisions that one transaction reads.
pub(crate) const BATCH_MAX: i64 = 8;
/// Pause between two transactions, for the calls of requests.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

impl Broker {
    /// Goes through all revisions once and encrypts those that are not. New ones are encrypted when they are stored.
    pub(super) async fn encrypt_old_bundles(&self) {
        let Some(cipher) = self.bundle_cipher.as_ref().filter(|cipher| cipher.encrypts_new()) else { return };
        let mut after = Sequence::default();
        loop {
            match self.encrypt_next_bundles(cipher, after).await {
                Ok(Some(last)) => {
                    after = last;
                    sleep(PAUSE).await;
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "stored bundles cannot be encrypted");
                    sleep(RETRY_PAUSE).await;
                }
            }
        }
        tracing::info!("all stored bundles are encrypted");
    }

    async fn encrypt_next_bundles(
        &self,
        cipher: &BundleCipher,
        after: Sequence,
    ) -> Result<Option<Sequence>, StoreError> {
        let (cipher, entropy) = (cipher.clone(), self.entropy.clone());
        let encrypt: RewriteBundle = Box::new(move |revision, stored| {
            let is_plain = !stored.is_empty() && !is_encrypted(stored);
            Ok(is_plain.then(|| cipher.encrypt(&entropy, revision, stored)))
        });
        self.store.rewrite_bundles(after, BATCH_MAX, encrypt).await
    }
}
