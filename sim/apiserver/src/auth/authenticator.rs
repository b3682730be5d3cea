//! Authentication: client certificates, the token of the administrator, and tokens that were issued to service accounts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use subtle::ConstantTimeEq;

use super::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};
use crate::http::error::ApiError;
use crate::http::request::{Credentials, Request};
use crate::object::fields::uid;
use crate::storage::store::Store;

/// Prefix of the user names of service accounts.
pub(crate) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Issuer of the tokens of service accounts, and the audience of the API server.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Claims of a token that was issued to a service account.
#[derive(Clone)]
pub(crate) struct TokenClaims {
    pub(crate) namespace: String,
    pub(crate) account: String,
    pub(crate) uid: String,
    pub(crate) id: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) expires_at: Timestamp,
}

/// Issued tokens and their claims. Its Debug form shows none of them.
#[derive(Clone, Default)]
pub(crate) struct Tokens(pub(crate) BTreeMap<String, TokenClaims>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} tokens", self.0.len())
    }
}

/// Credentials that the server accepts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Authenticator {
    /// Token of the administrator; without one, every request is treated as the administrator's.
    pub(crate) administrator: Option<Credentials>,
    /// Tokens of service accounts.
    pub(crate) tokens: Tokens,
}

impl Authenticator {
    /// Returns the user that sent a request.
    pub(super) fn authenticate(&self, store: &Store, now: Timestamp, request: &Request) -> Result<User, ApiError> {
        if let Some(subject) = &request.headers.certificate {
            let mut groups = subject.groups.clone();
            groups.push(AUTHENTICATED.to_owned());
            return Ok(User { name: subject.user.clone(), groups, ..User::default() });
        }
        let header = &request.headers.authorization.0;
        match header.strip_prefix("Bearer ").map(str::trim).filter(|token| !token.is_empty()) {
            Some(token) => self
                .authenticate_token(store, now, token, &[])
                .map(|(user, _)| user)
                .ok_or_else(|| ApiError::new(401, "Unauthorized", "Unauthorized", None)),
            None => {
                let groups = vec![UNAUTHENTICATED.to_owned()];
                Ok(User { name: ANONYMOUS.to_owned(), groups, ..User::default() })
            }
        }
    }

    /// Returns the user of a valid token, and those of these audiences for which it is. Without audiences, it must be for the
    /// API server.
    pub(crate) fn authenticate_token(
        &self,
        store: &Store,
        now: Timestamp,
        token: &str,
        audiences: &[&str],
    ) -> Option<(User, Vec<String>)> {
        let wanted = if audiences.is_empty() { &[ISSUER] } else { audiences };
        let common = |known: &dyn Fn(&str) -> bool| -> Option<Vec<String>> {
            let common: Vec<String> = wanted.iter().filter(|one| known(one)).map(|one| (*one).to_owned()).collect();
            (!common.is_empty()).then_some(common)
        };
        let is_administrator = |secret: &Credentials| bool::from(secret.0.as_bytes().ct_eq(token.as_bytes()));
        if self.administrator.as_ref().is_some_and(is_administrator) {
            return Some((User::administrator(), common(&|audience| audience == ISSUER)?));
        }
        let claims = self.tokens.0.get(token).filter(|claims| claims.expires_at > now)?;
        let audiences = common(&|audience| claims.audiences.iter().any(|known| known == audience))?;
        let live = store.find("", "serviceaccounts", Some(&claims.namespace), &claims.account)?;
        if uid(live) != claims.uid {
            return None;
        }
        let credential = ("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("JTI={}", claims.id)]);
        let user = User {
            name: format!("{SERVICE_ACCOUNT_PREFIX}{}:{}", claims.namespace, claims.account),
            uid: claims.uid.clone(),
            groups: service_account_groups(&claims.namespace),
            extra: BTreeMap::from([credential]),
        };
        Some((user, audiences))
    }
}

/// Returns the groups of the service accounts of a namespace.
pub(super) fn service_account_groups(namespace: &str) -> Vec<String> {
    let all = "system:serviceaccounts";
    vec![all.to_owned(), format!("{all}:{namespace}"), AUTHENTICATED.to_owned()]
}
