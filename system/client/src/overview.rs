//! Overview of stacks on clusters, the history of a stack, and events with the names of what they are about.

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use sindri_model::wire::{NamedEvent, RevisionSummary, StatusOverview};
use sindri_model::{AgentId, EventId, StackId};

use crate::client::{Call, Client};
use crate::error::ClientError;

/// Events in one request.
const EVENTS_MAX: usize = 1_000;

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

impl EventQuery {
    /// Returns the parameters, each with its separator.
    fn to_parameters(self) -> String {
        let Self { stack, agent, since, after } = self;
        let parameters = [
            stack.map(|stack| format!("&stack={stack}")),
            agent.map(|agent| format!("&agent={agent}")),
            since.map(|since| format!("&since={since}")),
            after.map(|after| format!("&after={after}")),
        ];
        parameters.into_iter().flatten().collect()
    }
}

impl Client {
    /// Reads the state of each stack on each cluster, or of one stack on its clusters. The key of a generator reads its own.
    pub async fn get_overview(&self, stack: Option<StackId>) -> Result<StatusOverview, ClientError> {
        let filter = stack.map(|stack| format!("?stack={stack}")).unwrap_or_default();
        let operation = "read the status of the stacks";
        let mut overview: Option<StatusOverview> = None;
        let receive = |_: &HeaderMap, page: StatusOverview| {
            match &mut overview {
                None => overview = Some(page),
                Some(overview) => overview.stacks.extend(page.stacks),
            }
            true
        };
        self.for_each_page("/status", filter, operation, receive).await?;
        let missing = || Call::get("/status".to_owned(), operation.to_owned());
        overview.ok_or_else(|| missing().malformed_response("there is no page"))
    }

    /// Lists all events after another one, oldest first. The key of a generator reads those about its stacks.
    pub async fn list_named_events(&self, query: &EventQuery) -> Result<Vec<NamedEvent>, ClientError> {
        let query = format!("?limit={EVENTS_MAX}{}", query.to_parameters());
        self.fetch_pages("/events", query, "list the events", usize::MAX).await
    }

    /// Lists the newest events, at most this number, newest first; and whether there are more.
    pub async fn list_newest_events(
        &self,
        query: &EventQuery,
        limit: usize,
    ) -> Result<(Vec<NamedEvent>, bool), ClientError> {
        // One more, to know whether there are more.
        let wanted = limit.saturating_add(1);
        let query = format!("?order=newest_first&limit={}{}", wanted.min(EVENTS_MAX), query.to_parameters());
        let mut events = self.fetch_pages("/events", query, "list the newest events", wanted).await?;
        let has_more = events.len() > limit;
        events.truncate(limit);
        Ok((events, has_more))
    }

    /// Lists the newest revisions of a stack, at most this number, newest first, without their bundles.
    pub async fn list_history(&self, stack: StackId, limit: usize) -> Result<Vec<RevisionSummary>, ClientError> {
        let path = format!("/stacks/{stack}/history?limit={limit}");
        self.fetch_json(Call::get(path, format!("read the history of stack {stack}")), StatusCode::OK).await
    }
}
