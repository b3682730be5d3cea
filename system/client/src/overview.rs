//! Overview of stacks on clusters, the history of a stack, and events with the names of what they are about.

use http::StatusCode;
use jiff::Timestamp;
use sindri_model::wire::{NamedEvent, RevisionSummary, StatusOverview};
use sindri_model::{AgentId, EventId, StackId};

use crate::client::{Call, Client, find_next_query};
use crate::error::ClientError;

/// Pages of an overview; a broker with more has more stacks than a person reads.
const PAGES_MAX: usize = 1_000;

/// Events in one request.
pub const EVENTS_MAX: usize = 1_000;

/// Filter of events: an event must match every field that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// The stack.
    pub stack: Option<StackId>,
    /// The agent.
    pub agent: Option<AgentId>,
    /// Earliest time.
    pub since: Option<Timestamp>,
    /// Event that comes before the first one.
    pub after: Option<EventId>,
}

impl Client {
    /// Reads the state of each stack on each cluster, or of one stack on its clusters. The key of a generator reads its own.
    pub async fn get_overview(&self, stack: Option<StackId>) -> Result<StatusOverview, ClientError> {
        let filter = stack.map(|stack| format!("?stack={stack}")).unwrap_or_default();
        let mut overview: Option<StatusOverview> = None;
        let mut query = Some(filter);
        for _ in 0..PAGES_MAX {
            let Some(page_query) = query.take() else { break };
            let call = Call::get(format!("/status{page_query}"), "read the status of the stacks".to_owned());
            let response = self.send_expecting(&call, StatusCode::OK).await?;
            let page: StatusOverview = call.deserialize(&response.body)?;
            query = find_next_query(&response.headers);
            match &mut overview {
                None => overview = Some(page),
                Some(overview) => overview.stacks.extend(page.stacks),
            }
        }
        let missing = || Call::get("/status".to_owned(), "read the status of the stacks".to_owned());
        overview.ok_or_else(|| missing().malformed_response("there is no page"))
    }

    /// Lists the first thousand events after another one, oldest first. The key of a generator reads those about its stacks.
    pub async fn list_named_events(&self, query: &EventQuery) -> Result<Vec<NamedEvent>, ClientError> {
        let EventQuery { stack, agent, since, after } = query;
        let parameters = [
            stack.map(|stack| format!("&stack={stack}")),
            agent.map(|agent| format!("&agent={agent}")),
            since.map(|since| format!("&since={since}")),
            after.map(|after| format!("&after={after}")),
        ];
        let path = format!("/events?limit={EVENTS_MAX}{}", parameters.into_iter().flatten().collect::<String>());
        self.fetch_json(Call::get(path, "list the events".to_owned()), StatusCode::OK).await
    }

    /// Lists the newest revisions of a stack, at most this number, newest first, without their bundles.
    pub async fn list_history(&self, stack: StackId, limit: usize) -> Result<Vec<RevisionSummary>, ClientError> {
        let path = format!("/stacks/{stack}/history?limit={limit}");
        self.fetch_json(Call::get(path, format!("read the history of stack {stack}")), StatusCode::OK).await
    }
}
