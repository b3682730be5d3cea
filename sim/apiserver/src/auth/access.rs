//! Access to the server: authentication, impersonation and authorization of a request. Without an administrator every
//! request is the administrator's, who may impersonate every user.

use jiff::Timestamp;

use super::authenticator::{Authenticator, SERVICE_ACCOUNT_PREFIX, service_account_groups};
use super::authorization_request::AuthorizationRequest;
use super::rbac::find_permission;
use super::user::{ANONYMOUS, AUTHENTICATED, User};
use crate::http::error::ApiError;
use crate::http::request::Request;
use crate::http::response::Response;
use crate::storage::store::Store;

/// Returns the user of a request: the one that it impersonates, or its own.
pub(crate) fn identify_user(
    authenticator: &Authenticator,
    store: &Store,
    now: Timestamp,
    request: &Request,
) -> Result<User, ApiError> {
    let user = match &authenticator.administrator {
        None if request.headers.impersonation.user.is_none() => return Ok(User::administrator()),
        None => User::administrator(),
        Some(_) => authenticator.authenticate(store, now, request)?,
    };
    impersonate(store, request, user)
}

/// Returns the rejection of a request that does not come from the administrator.
pub(crate) fn reject_unless_administrator(
    authenticator: &Authenticator,
    store: &Store,
    now: Timestamp,
    request: &Request,
) -> Option<Response> {
    // Without an administrator every user is treated as one.
    authenticator.administrator.as_ref()?;
    let (verb, path) = (request.method.as_str().to_lowercase(), Some(request.path.clone()));
    let wanted = AuthorizationRequest { verb, path, ..AuthorizationRequest::default() };
    match authenticator.authenticate(store, now, request) {
        Err(error) => Some(error.into_response()),
        Ok(user) if user.is_master() => None,
        Ok(user) => Some(wanted.to_denial(&user).into_response()),
    }
}

/// Returns an error unless the user has a permission for the request.
pub(crate) fn authorize(store: &Store, user: &User, request: &AuthorizationRequest) -> Result<(), ApiError> {
    if find_permission(store, user, request).is_some() { Ok(()) } else { Err(request.to_denial(user)) }
}

/// Returns the user that a request impersonates, or its own user.
fn impersonate(store: &Store, request: &Request, user: User) -> Result<User, ApiError> {
    let wanted = &request.headers.impersonation;
    let Some(name) = &wanted.user else {
        if let Some(group) = wanted.groups.first() {
            let message = format!("requested [{{Group  {group}    }}] without impersonating a user");
            return Err(ApiError::bad_request(message));
        }
        return Ok(user);
    };
    let account = name.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|rest| rest.split_once(':'));
    let (resource, namespace, object) = match account {
        Some((namespace, account)) => ("serviceaccounts", namespace, account),
        None => ("users", "", name.as_str()),
    };
    let permission = AuthorizationRequest {
        verb: "impersonate".to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: object.to_owned(),
        ..AuthorizationRequest::default()
    };
    authorize(store, &user, &permission)?;
    let mut groups = wanted.groups.clone();
    match account {
        Some((namespace, _)) if groups.is_empty() => groups = service_account_groups(namespace),
        _ if name != ANONYMOUS => groups.push(AUTHENTICATED.to_owned()),
        _ => {}
    }
    let uid = wanted.uid.clone().unwrap_or_default();
    Ok(User { name: name.clone(), uid, groups, extra: wanted.extra.clone() })
}
