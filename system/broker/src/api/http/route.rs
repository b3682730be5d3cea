//! One line of the table of routes: where, who, what, and the handler. Nothing can be served without the rest.

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use http::Method;
use schemars::SchemaGenerator;

use super::authentication::Actor;
use super::describe::{Described, Operation};
use super::error_response::Refusal;
use crate::broker::Broker;
use crate::store::KeyHolder;

/// A kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Admin,
    Agent,
    Generator,
}

impl Role {
    /// As the document says it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::Generator => "generator",
        }
    }
}

/// Which kinds of keys a route takes. Whether it is the right agent or generator is the handler's to see.
pub(crate) type Roles = &'static [Role];

/// One operation.
pub(crate) struct Route {
    pub method: Method,
    pub path: &'static str,
    /// Nothing where no key is needed.
    pub roles: Option<Roles>,
    /// The operation's name in the document.
    pub name: &'static str,
    pub summary: &'static str,
    /// The statuses of refusals that the types do not tell of.
    pub also_refuses: &'static [u16],
    pub describe: fn(&mut Operation, &mut SchemaGenerator),
    handler: MethodRouter<Broker>,
}

impl Route {
    /// The same, with more statuses of refusals.
    pub(crate) fn or(self, statuses: &'static [u16]) -> Self {
        Self { also_refuses: statuses, ..self }
    }

    /// What serves it, behind a gate that opens for its roles only.
    pub(crate) fn gated(self) -> (&'static str, MethodRouter<Broker>) {
        let handler = match self.roles {
            Some(roles) => self.handler.route_layer(from_fn_with_state(roles, gate)),
            None => self.handler,
        };
        (self.path, handler)
    }
}

async fn gate(State(roles): State<Roles>, actor: Actor, request: Request, next: Next) -> Result<Response, Refusal> {
    let role = match actor.0 {
        KeyHolder::Admin => Role::Admin,
        KeyHolder::Agent(_) => Role::Agent,
        KeyHolder::Generator(_) => Role::Generator,
    };
    if roles.contains(&role) { Ok(next.run(request).await) } else { Err(Refusal::forbidden()) }
}

macro_rules! methods {
    ($($function:ident $method:ident,)*) => {$(
        /// A route of this method.
        pub(crate) fn $function<H, T, P>(
            path: &'static str,
            roles: impl Into<Option<Roles>>,
            name: &'static str,
            summary: &'static str,
            handler: H,
        ) -> Route
        where
            H: Handler<T, Broker> + Described<P>,
            T: 'static,
        {
            Route {
                method: Method::$method,
                path,
                roles: roles.into(),
                name,
                summary,
                also_refuses: &[],
                describe: <H as Described<P>>::describe,
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
