//! Requests that submitted revisions, for the log lines and traces of agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Sequence;

/// Header of a target state response: as JSON, the requests that submitted its newest revisions, by sequence. Only of
/// revisions that the agent has not applied, and not more than [`REQUESTS_MAX`] or [`HEADER_BYTES_MAX`].
pub const REQUESTS_HEADER: &str = "sindri-requests";

/// Limit on the requests in the header.
pub const REQUESTS_MAX: usize = 16;

/// Limit on the length of the header: proxies reject responses whose headers are larger than some kilobytes.
const HEADER_BYTES_MAX: usize = 2_048;

/// Request that submitted a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittingRequest {
    /// Request id.
    pub id: String,
    /// Position of the submission in a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Requests by the sequences of the revisions that they submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmittingRequests(pub BTreeMap<Sequence, SubmittingRequest>);

impl SubmittingRequests {
    /// Returns the value of the header, with the newest requests that fit into it; `None` if there are none. Ids have only
    /// visible ASCII characters, so it is valid as a header.
    pub fn to_header(&self) -> Option<String> {
        (1..=self.0.len().min(REQUESTS_MAX)).rev().find_map(|count| {
            let newest = self.0.iter().rev().take(count).map(|(sequence, request)| (sequence.0, request));
            let text = serde_json::to_string(&newest.collect::<BTreeMap<i64, _>>()).ok()?;
            (text.len() <= HEADER_BYTES_MAX).then_some(text)
        })
    }

    /// Reads the header. A value that cannot be read is ignored, because nothing but log lines depends on it.
    pub fn from_header(text: &str) -> Self {
        let requests: BTreeMap<i64, SubmittingRequest> = serde_json::from_str(text).unwrap_or_default();
        Self(requests.into_iter().map(|(sequence, request)| (Sequence(sequence), request)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_newest_requests() {
        assert_eq!(SubmittingRequests::default().to_header(), None);
        let request = |id: &str| SubmittingRequest { id: id.to_owned(), traceparent: None };
        let many: BTreeMap<_, _> = (1..=40).map(|number| (Sequence(number), request("a,\"b\"={}"))).collect();
        let header = SubmittingRequests(many).to_header().unwrap();
        assert!(header.is_ascii());
        let read = SubmittingRequests::from_header(&header);
        assert_eq!(read.0.len(), REQUESTS_MAX);
        assert_eq!(read.0.keys().next(), Some(&Sequence(25)));
        assert!(read.0.values().all(|read| *read == request("a,\"b\"={}")));
        let long: BTreeMap<_, _> = (1..=40).map(|number| (Sequence(number), request(&"x".repeat(128)))).collect();
        let header = SubmittingRequests(long).to_header().unwrap();
        assert!(header.len() <= HEADER_BYTES_MAX);
        assert!(SubmittingRequests::from_header(&header).0.contains_key(&Sequence(40)));
        assert_eq!(SubmittingRequests::from_header("no JSON"), SubmittingRequests::default());
    }
}
