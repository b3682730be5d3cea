//! Who asks: the administrator, an account by a token that was issued here, or nobody.

use std::collections::BTreeMap;

use subtle::ConstantTimeEq;

use super::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User, Wish};
use crate::http::error::ApiError;
use crate::http::request::Request;
use crate::server::ApiServer;

/// A token that was issued to an account.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) namespace: String,
    pub(crate) account: String,
    pub(crate) uid: String,
    pub(crate) id: String,
}

/// Every token that was issued. None of them is in a Debug form.
#[derive(Clone, Default)]
pub(crate) struct Tokens(pub(crate) BTreeMap<String, Issued>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} tokens", self.0.len())
    }
}

const ACCOUNT: &str = "system:serviceaccount:";

impl ApiServer {
    pub(super) fn authenticate(&self, request: &Request) -> Result<User, ApiError> {
        if let Some(subject) = &request.headers.certificate {
            let mut groups = subject.groups.clone();
            groups.push(AUTHENTICATED.to_owned());
            return Ok(User { name: subject.user.clone(), groups, ..User::default() });
        }
        let header = &request.headers.authorization.0;
        match header.strip_prefix("Bearer ").map(str::trim).filter(|token| !token.is_empty()) {
            Some(token) => self.bearer(token).ok_or_else(|| ApiError::new(401, "Unauthorized", "Unauthorized", None)),
            None => {
                let groups = vec![UNAUTHENTICATED.to_owned()];
                Ok(User { name: ANONYMOUS.to_owned(), groups, ..User::default() })
            }
        }
    }

    fn bearer(&self, token: &str) -> Option<User> {
        let administrator = self.administrator.as_ref()?;
        if bool::from(administrator.0.as_bytes().ct_eq(token.as_bytes())) {
            return Some(User::administrator());
        }
        let issued = self.tokens.0.get(token)?;
        let live = self.get("", "serviceaccounts", Some(&issued.namespace), &issued.account)?;
        if crate::object::fields::uid(live) != issued.uid {
            return None;
        }
        let credential = ("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("JTI={}", issued.id)]);
        Some(User {
            name: format!("{ACCOUNT}{}:{}", issued.namespace, issued.account),
            uid: issued.uid.clone(),
            groups: account_groups(&issued.namespace),
            extra: BTreeMap::from([credential]),
        })
    }

    /// Whom the user wants to be taken for.
    pub(super) fn impersonate(&self, request: &Request, user: User) -> Result<User, ApiError> {
        let wanted = &request.headers.impersonation;
        let Some(name) = &wanted.user else {
            if let Some(group) = wanted.groups.first() {
                let message = format!("requested [{{Group  {group}    }}] without impersonating a user");
                return Err(ApiError::bad_request(message));
            }
            return Ok(user);
        };
        let wish = Wish {
            verb: "impersonate".to_owned(),
            resource: "users".to_owned(),
            name: name.clone(),
            ..Wish::default()
        };
        self.require(&user, &wish)?;
        let mut groups = wanted.groups.clone();
        let account = name.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'));
        match account {
            Some((namespace, _)) if groups.is_empty() => groups = account_groups(namespace),
            _ if name != ANONYMOUS => groups.push(AUTHENTICATED.to_owned()),
            _ => {}
        }
        let uid = wanted.uid.clone().unwrap_or_default();
        Ok(User { name: name.clone(), uid, groups, extra: wanted.extra.clone() })
    }
}

fn account_groups(namespace: &str) -> Vec<String> {
    let all = "system:serviceaccounts";
    vec![all.to_owned(), format!("{all}:{namespace}"), AUTHENTICATED.to_owned()]
}
