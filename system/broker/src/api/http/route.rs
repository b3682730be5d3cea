//! One line of the table of routes: method, path, roles, name, summary and handler. A handler cannot be served without
//! the others.

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use http::Method;
use schemars::SchemaGenerator;

use super::authentication::Actor;
use super::describe::{DescribeHandler, Operation};
use super::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::store::KeyHolder;

/// Role of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Admin,
    Agent,
    Generator,
}

impl Role {
    /// Returns the name in the OpenAPI document.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::Generator => "generator",
        }
    }
}

/// Roles that a route accepts. The handler checks that it is the right agent or generator.
pub(crate) type Roles = &'static [Role];

/// One operation.
pub(crate) struct Route {
    pub method: Method,
    pub path: &'static str,
    /// `None` if no key is needed.
    pub roles: Option<Roles>,
    /// The `operationId` in the OpenAPI document.
    pub name: &'static str,
    pub summary: &'static str,
    /// Error statuses beyond those that the types of the handler describe.
    pub other_errors: &'static [u16],
    pub describe: fn(&mut Operation, &mut SchemaGenerator),
    handler: MethodRouter<Broker>,
}

impl Route {
    /// Returns the route with further error statuses.
    pub(crate) fn with_errors(self, statuses: &'static [u16]) -> Self {
        Self { other_errors: statuses, ..self }
    }

    /// Returns the path and the handler behind a check of the roles.
    pub(crate) fn into_handler(self) -> (&'static str, MethodRouter<Broker>) {
        let handler = match self.roles {
            Some(roles) => self.handler.route_layer(from_fn_with_state(roles, check_role)),
            None => self.handler,
        };
        (self.path, handler)
    }
}

async fn check_role(
    State(roles): State<Roles>,
    actor: Actor,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    let role = match actor.0 {
        KeyHolder::Admin => Role::Admin,
        KeyHolder::Agent(_) => Role::Agent,
        KeyHolder::Generator(_) => Role::Generator,
    };
    if roles.contains(&role) { Ok(next.run(request).await) } else { Err(ErrorResponse::forbidden()) }
}

macro_rules! methods {
    ($($function:ident $method:ident,)*) => {$(
        /// Returns a route of this method.
        pub(crate) fn $function<H, T, P>(
            path: &'static str,
            roles: impl Into<Option<Roles>>,
            name: &'static str,
            summary: &'static str,
            handler: H,
        ) -> Route
        where
            H: Handler<T, Broker> + DescribeHandler<P>,
            T: 'static,
        {
            Route {
                method: Method::$method,
                path,
                roles: roles.into(),
                name,
                summary,
                other_errors: &[],
                describe: <H as DescribeHandler<P>>::describe,
                handler: on(MethodFilter::$method, handler),
            }
        }
    )*};
}

methods! {
    get GET,
    post POST,
    put PUT,
    patch PATCH,
    delete DELETE,
}
