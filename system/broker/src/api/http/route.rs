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
use super::denial::Denial;
use super::describe::{DescribeHandler, Operation};
use super::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::store::{KeyAccess, KeyHolder, StoreError};

/// Role of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Admin,
    Agent,
    Generator,
}

impl Role {
    /// Returns the name in the OpenAPI document.
    fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::Generator => "generator",
        }
    }
}

/// Name in the OpenAPI document of an administrator whose key only reads.
const READER: &str = "reader";

/// Group of operations in the OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Administration,
    Agents,
    Approvals,
    Generators,
    Keys,
    Process,
    Stacks,
    Webhooks,
}

impl Tag {
    /// Every tag, by name.
    pub(crate) const ALL: [Self; 8] = [
        Self::Administration,
        Self::Agents,
        Self::Approvals,
        Self::Generators,
        Self::Keys,
        Self::Process,
        Self::Stacks,
        Self::Webhooks,
    ];

    /// Returns the name and the description.
    pub(crate) fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Administration => ("administration", "The whole fleet, its keys and the audit log."),
            Self::Agents => ("agents", "Agents, what they should have, and what they report."),
            Self::Approvals => ("approvals", "Plans that agents hold until they are approved."),
            Self::Generators => ("generators", "Owners of stacks, and the agents that are registered with them."),
            Self::Keys => ("keys", "The holder of a key."),
            Self::Process => ("process", "The broker's process: probes, metrics and this document."),
            Self::Stacks => ("stacks", "Stacks, their revisions, labels, annotations and status."),
            Self::Webhooks => ("webhooks", "Subscriptions to events, and the delivery of their messages."),
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
    pub tag: Tag,
    /// Reason for which a role is rejected.
    pub denial: Denial,
    /// True if a key that only reads does not allow it.
    pub changes: bool,
    /// True if the key of a deactivated agent does not allow it.
    pub needs_active_agent: bool,
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

    /// Returns the route in another group of the OpenAPI document.
    pub(crate) fn tagged(self, tag: Tag) -> Self {
        Self { tag, ..self }
    }

    /// Returns the route with another reason for which a role is rejected.
    pub(crate) fn denying(self, denial: Denial) -> Self {
        Self { denial, ..self }
    }

    /// Returns the route as one that changes nothing, although its method is not GET.
    pub(crate) fn reading(self) -> Self {
        Self { changes: false, ..self }
    }

    /// Returns the route as one that changes something, although its method is GET.
    pub(crate) fn changing(self) -> Self {
        Self { changes: true, ..self }
    }

    /// Returns the route as one that a deactivated agent may not use.
    pub(crate) fn for_active_agents(self) -> Self {
        Self { needs_active_agent: true, ..self }
    }

    /// Returns the names of the keys that the route accepts; `None` if no key is needed.
    pub(crate) fn role_names(&self) -> Option<Vec<&'static str>> {
        let roles = self.roles?;
        let reader = (roles.contains(&Role::Admin) && !self.changes).then_some(READER);
        Some(roles.iter().map(|role| role.as_str()).chain(reader).collect())
    }

    /// Returns the path and the handler behind a check of the roles.
    pub(crate) fn into_handler(self) -> (&'static str, MethodRouter<Broker>) {
        let (denial, changes, needs_active_agent) = (self.denial, self.changes, self.needs_active_agent);
        let handler = match self.roles {
            Some(roles) => {
                let access = RouteAccess { roles, denial, changes, needs_active_agent };
                self.handler.route_layer(from_fn_with_state(access, check_access))
            }
            None => self.handler,
        };
        (self.path, handler)
    }
}

/// Keys that a route accepts.
#[derive(Clone, Copy)]
struct RouteAccess {
    roles: Roles,
    denial: Denial,
    changes: bool,
    needs_active_agent: bool,
}

async fn check_access(
    State(RouteAccess { roles, denial, changes, needs_active_agent }): State<RouteAccess>,
    actor: Actor,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    let role = match (actor.holder, actor.access) {
        (KeyHolder::Admin(_), KeyAccess::ReadOnly) if changes => return Err(Denial::ReadOnlyKey.into()),
        (KeyHolder::Agent(_), KeyAccess::Deactivated) if needs_active_agent => return Err(Denial::AgentInactive.into()),
        (KeyHolder::Generator(_), KeyAccess::Deactivated) if changes => {
            return Err(StoreError::GeneratorInactive.into());
        }
        (KeyHolder::Admin(_), _) => Role::Admin,
        (KeyHolder::Agent(_), _) => Role::Agent,
        (KeyHolder::Generator(_), _) => Role::Generator,
    };
    if roles.contains(&role) { Ok(next.run(request).await) } else { Err(denial.into()) }
}

/// Returns the reason for which most routes with this path reject a role.
fn usual_denial(path: &str, roles: Option<Roles>) -> Denial {
    match (roles, path.split('/').nth(1)) {
        (Some([Role::Admin]), _) => Denial::AdminRequired,
        (_, Some("agents")) => Denial::AgentPakMismatch,
        (_, Some("generators")) => Denial::GeneratorNotOwned,
        (_, Some("stacks")) => Denial::StackNotOwned,
        _ => Denial::Forbidden,
    }
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
            let roles = roles.into();
            Route {
                method: Method::$method,
                path,
                roles,
                denial: usual_denial(path, roles),
                changes: Method::$method != Method::GET,
                needs_active_agent: false,
                name,
                summary,
                tag: Tag::Process,
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
