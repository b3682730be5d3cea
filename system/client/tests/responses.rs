//! The client against valid and invalid responses, sent byte for byte over a real socket.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_client::{Client, ClientError, ClientSetupError, EventQuery, KnownState, Limits, TargetStateResponse};
use sindri_model::wire::{ApprovalState, DeploymentObject};
use sindri_model::{AgentId, Checksum, Entropy, Epoch, Sequence};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn agent_id() -> AgentId {
    AgentId::generate(&Entropy::new(|bytes| bytes.fill(1)))
}

fn client(base: &str) -> Client {
    Client::new(HttpConnector::new(), base.parse().unwrap(), "brokkr_BRabcdef_secret").unwrap()
}

/// Fetches a target state from a server that responds with these bytes and closes the connection.
async fn poll(response: &str, etag: Option<&str>) -> (Result<TargetStateResponse, ClientError>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}/prefix/", listener.local_addr().unwrap()));
    tokio::join!(client.get_target_state(agent_id(), etag), respond_once(&listener, response))
}

/// Reads one request, responds with these bytes, and returns the request.
async fn respond_once(listener: &TcpListener, response: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
    }
    stream.write_all(response.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    String::from_utf8(request).unwrap()
}

fn format_response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

fn revision(stack: u8, sequence: i64, content: &str, checksum: &str) -> String {
    let time = "2024-01-01T00:00:00Z";
    format!(
        r#"{{"id":"00000000-0000-4000-8000-0000000000{sequence:02}","created_at":"{time}","updated_at":"{time}",
        "sequence_id":{sequence},"stack_id":"00000000-0000-4000-8000-0000000001{stack:02}","yaml_content":"{content}",
        "yaml_checksum":"{checksum}","submitted_at":"{time}","is_deletion_marker":false}}"#
    )
}

fn valid_revision(stack: u8, sequence: i64) -> String {
    revision(stack, sequence, "a: 1", Checksum::compute("a: 1").as_str())
}

const EPOCH_AND_ETAG: &str = "x-sindri-epoch: 3\r\netag: \"t\"\r\n";

#[tokio::test]
async fn a_valid_target_state_is_accepted() {
    let body = format!("[{},{}]", valid_revision(1, 4), valid_revision(2, 7));
    let (state, request) = poll(&format_response("200 OK", EPOCH_AND_ETAG, &body), None).await;
    let TargetStateResponse::Changed { objects, etag, epoch, status: None, .. } = state.unwrap() else {
        panic!("unchanged")
    };
    assert_eq!((objects.len(), etag.as_deref(), epoch), (2, Some("\"t\""), Epoch(3)));
    assert!(request.starts_with(&format!("GET /prefix/api/v1/agents/{}/target-state HTTP/1.1\r\n", agent_id())));
    assert!(request.contains("authorization: Bearer brokkr_BRabcdef_secret\r\n"));
    assert!(!request.contains("if-none-match"));
}

#[tokio::test]
async fn bundles_that_were_left_out_are_added_and_verified() {
    let held: DeploymentObject = serde_json::from_str(&valid_revision(1, 4)).unwrap();
    let poll_holding = async |body: String| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client(&format!("http://{}", listener.local_addr().unwrap()));
        let response = format_response("200 OK", "x-sindri-epoch: 3\r\netag: W/\"t\"\r\n", &body);
        let held = [&held];
        let known = KnownState { held: &held, ..KnownState::default() };
        let poll = client.poll(agent_id(), known, Duration::ZERO);
        tokio::join!(poll, respond_once(&listener, &response))
    };
    let left_out = |stack, sequence, checksum: &str| revision(stack, sequence, "", checksum);
    let checksum = Checksum::compute("a: 1");
    let body = format!("[{},{}]", left_out(1, 4, checksum.as_str()), valid_revision(2, 7));
    let (state, request) = poll_holding(body).await;
    assert!(request.contains("sindri-held-revisions: 4\r\n"), "{request}");
    let TargetStateResponse::Changed { objects, etag, .. } = state.unwrap().state else { panic!("unchanged") };
    assert_eq!((&objects[0], objects.len(), etag.as_deref()), (&held, 2, Some("\"t\"")));
    // Another revision than the held one, and the held one with another checksum.
    for body in [left_out(2, 7, checksum.as_str()), left_out(1, 4, Checksum::compute("a: 2").as_str())] {
        let (state, _) = poll_holding(format!("[{body}]")).await;
        assert!(matches!(state, Err(ClientError::Malformed { .. })), "{state:?}");
    }
}

/// Sends requests to a server that responds with each of these in turn, on a connection each; returns the requests.
async fn respond_all(listener: &TcpListener, responses: &[String]) -> Vec<String> {
    let mut requests = Vec::new();
    for response in responses {
        requests.push(respond_once(listener, response).await);
    }
    requests
}

#[tokio::test]
async fn a_broker_without_epochs_is_asked_for_everything_and_works_without_sindris_additions() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}", listener.local_addr().unwrap()));
    let history = format!("[{},{},{}]", valid_revision(2, 7), valid_revision(1, 4), valid_revision(1, 9));
    let (close, not_found) = ("connection: close\r\n", format_response("404 Not Found", "connection: close\r\n", ""));
    let responses = [
        format_response("200 OK", close, "[]"),
        format_response("200 OK", close, &history),
        not_found.clone(),
        not_found.clone(),
        format_response("200 OK", close, "[]"),
        // From here on the broker is Sindri's: what it does not offer is an error.
        format_response("200 OK", &format!("{EPOCH_AND_ETAG}{close}"), "[]"),
        not_found,
    ];
    let calls = async {
        let TargetStateResponse::Changed { objects, etag, epoch, .. } =
            client.get_target_state(agent_id(), None).await.unwrap()
        else {
            panic!("unchanged")
        };
        let sequences: Vec<i64> = objects.iter().map(|object| object.sequence_id.0).collect();
        assert_eq!((sequences, etag, epoch), (vec![7, 9], None, Epoch(1)));
        assert_eq!(client.list_policies(agent_id()).await.unwrap().policies, []);
        assert_eq!(client.list_outcomes(agent_id()).await.unwrap(), []);
        client.get_target_state(agent_id(), None).await.unwrap();
        client.get_target_state(agent_id(), None).await.unwrap();
        assert!(client.list_policies(agent_id()).await.is_err());
    };
    let ((), requests) = tokio::join!(calls, respond_all(&listener, &responses));
    let is_full: Vec<bool> = requests.iter().map(|request| request.contains("/target-state?mode=full ")).collect();
    assert_eq!(is_full, [false, true, false, false, true, true, false]);
}

#[tokio::test]
async fn a_missing_epoch_is_an_error_after_the_broker_has_sent_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}", listener.local_addr().unwrap()));
    let close = "connection: close\r\n";
    let responses =
        [format_response("200 OK", &format!("{EPOCH_AND_ETAG}{close}"), "[]"), format_response("200 OK", close, "[]")];
    let calls = async {
        client.get_target_state(agent_id(), None).await.unwrap();
        let stripped = client.get_target_state(agent_id(), None).await;
        assert!(matches!(stripped, Err(ClientError::Malformed { .. })), "{stripped:?}");
    };
    tokio::join!(calls, respond_all(&listener, &responses));
}

#[tokio::test]
async fn not_modified_is_accepted_only_for_a_conditional_request() {
    let (state, request) = poll(&format_response("304 Not Modified", "", ""), Some("\"t\"")).await;
    assert_eq!(state.unwrap(), TargetStateResponse::Unchanged { status: None });
    assert!(request.contains("if-none-match: \"t\"\r\n"));
    let (state, _) = poll(&format_response("304 Not Modified", "", ""), None).await;
    assert!(matches!(state, Err(ClientError::Malformed { .. })));
}

#[tokio::test]
async fn a_poll_sends_the_newest_proposal_and_reads_that_of_the_response() {
    for (header, proposals) in
        [("", None), ("Sindri-Proposals: 9\r\n", Some(Sequence(9))), ("Sindri-Proposals: x\r\n", None)]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client(&format!("http://{}", listener.local_addr().unwrap()));
        let known = KnownState { etag: Some("\"t\""), proposals: Some(Sequence(7)), ..KnownState::default() };
        let response = format_response("304 Not Modified", header, "");
        let (polled, request) =
            tokio::join!(client.poll(agent_id(), known, Duration::ZERO), respond_once(&listener, &response));
        assert_eq!(polled.unwrap().proposals, proposals);
        assert!(request.contains("sindri-proposals: 7\r\n"), "{request}");
    }
}

#[tokio::test]
async fn the_agent_status_is_read_from_the_response_header() {
    use sindri_model::wire::AgentStatus;
    for (word, status) in
        [("ACTIVE", Some(AgentStatus::Active)), ("INACTIVE", Some(AgentStatus::Inactive)), ("RESTING", None)]
    {
        let header = format!("Sindri-Agent-Status: {word}\r\n");
        let (state, _) = poll(&format_response("304 Not Modified", &header, ""), Some("\"t\"")).await;
        assert_eq!(state.unwrap(), TargetStateResponse::Unchanged { status });
        let (state, _) = poll(&format_response("200 OK", &format!("{EPOCH_AND_ETAG}{header}"), "[]"), None).await;
        assert!(
            matches!(state.unwrap(), TargetStateResponse::Changed { status: received, .. } if received == status),
            "{word}"
        );
    }
}

#[tokio::test]
async fn an_invalid_response_is_an_error_and_never_an_empty_list() {
    let secret = "password: hunter2";
    let cases = [
        ("html", format_response("200 OK", EPOCH_AND_ETAG, "<html>sign in</html>")),
        ("empty", format_response("200 OK", EPOCH_AND_ETAG, "")),
        ("not a list", format_response("200 OK", EPOCH_AND_ETAG, "{}")),
        ("null", format_response("200 OK", EPOCH_AND_ETAG, "null")),
        ("truncated JSON", format_response("200 OK", EPOCH_AND_ETAG, "[")),
        ("an invalid epoch", format_response("200 OK", "x-sindri-epoch: new\r\n", "[]")),
        ("another status", format_response("204 No Content", EPOCH_AND_ETAG, "")),
        ("a redirect", format_response("302 Found", "location: /\r\n", "")),
        ("a wrong checksum", format_response("200 OK", EPOCH_AND_ETAG, &format!("[{}]", revision(1, 4, secret, "00")))),
        ("a wrong type", format_response("200 OK", EPOCH_AND_ETAG, &format!("[\"{secret}\"]"))),
        (
            "descending",
            format_response("200 OK", EPOCH_AND_ETAG, &format!("[{},{}]", valid_revision(1, 7), valid_revision(2, 4))),
        ),
        (
            "a stack twice",
            format_response("200 OK", EPOCH_AND_ETAG, &format!("[{},{}]", valid_revision(1, 4), valid_revision(1, 7))),
        ),
    ];
    for (name, response) in cases {
        let error = poll(&response, None).await.0.unwrap_err();
        assert!(matches!(error, ClientError::Malformed { .. }), "{name}: {error}");
        assert!(error.is_transient(), "{name}");
        assert!(!error.to_string().contains("hunter2"), "{name}: the error contains a secret");
    }
}

#[tokio::test]
async fn a_truncated_response_means_that_the_broker_is_unreachable() {
    let truncated = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nx-sindri-epoch: 1\r\n\r\n[]";
    for response in ["", "HTTP/1.1 200", truncated] {
        let error = poll(response, None).await.0.unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { .. }), "{response:?}: {error}");
        assert!(error.is_transient() && !error.to_string().contains('\n'));
    }
}

#[tokio::test]
async fn a_rejection_keeps_the_message_of_the_broker() {
    let body = r#"{"code":"forbidden","message":"this key may not do that"}"#;
    for (response, code, transient, ending) in [
        (
            format_response("403 Forbidden", "", body),
            "forbidden",
            false,
            "the broker responded with 403: this key may not do that",
        ),
        (format_response("502 Bad Gateway", "", "<html>"), "unexplained", true, "502: no explanation was given"),
        (format_response("429 Too Many Requests", "", "slow down"), "unexplained", true, "429: slow down"),
    ] {
        let error = poll(&response, None).await.0.unwrap_err();
        let ClientError::Rejected { problem, .. } = &error else { panic!("{error}") };
        assert_eq!((problem.code.as_str(), error.is_transient()), (code, transient));
        assert!(error.to_string().ends_with(ending), "{error}");
    }
}

#[tokio::test]
async fn only_an_explained_rejection_is_one_of_the_broker_itself() {
    let problem = r#"{"code":"unauthorized","message":"unknown key"}"#;
    for (status, body, is_refused) in [
        ("401 Unauthorized", problem, true),
        ("401 Unauthorized", "<html>login</html>", false),
        ("403 Forbidden", "", false),
        ("404 Not Found", "default backend - 404", false),
        ("503 Service Unavailable", problem, false),
    ] {
        let error = poll(&format_response(status, "", body), None).await.0.unwrap_err();
        assert_eq!(error.is_refused_by_broker(), is_refused, "{status} {body}");
    }
}

#[tokio::test]
async fn only_the_broker_itself_can_say_that_something_does_not_exist() {
    let problem = r#"{"code":"agent_not_found","message":"there is no such agent"}"#;
    for (body, is_not_found) in [(problem, true), ("<html>", false), ("404 page not found", false), ("{}", false)] {
        let error = poll(&format_response("404 Not Found", "", body), None).await.0.unwrap_err();
        assert_eq!(error.is_not_found(), is_not_found, "{body}");
    }
}

#[tokio::test]
async fn a_timeout_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limits = Limits { deadline: Duration::from_millis(30), ..Limits::default() };
    let client = client(&format!("http://{}", listener.local_addr().unwrap())).with_limits(limits);
    let error = client.whoami().await.unwrap_err();
    assert!(error.to_string().ends_with("cannot be reached: no response within 0.03 s"), "{error}");
}

#[tokio::test]
async fn a_response_above_the_limit_is_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limits = Limits { response_bytes_max: 10, ..Limits::default() };
    let client = client(&format!("http://{}", listener.local_addr().unwrap())).with_limits(limits);
    let response = format_response("200 OK", "", "[1,2,3,4,5,6,7,8]");
    let (error, _) = tokio::join!(client.list_agents(), respond_once(&listener, &response));
    assert_eq!(
        error.unwrap_err().to_string(),
        "cannot list the agents: the response is invalid: it is larger than 10 bytes"
    );
}

#[tokio::test]
async fn a_list_has_every_page_and_the_query_of_the_link() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}", listener.local_addr().unwrap()));
    let key = |name: &str| format!(r#"[{{"id":"00000000-0000-4000-8000-000000000001","name":"{name}"}}]"#);
    let next = "link: <?limit=1&after=a>; rel=\"next\"\r\nconnection: close\r\n";
    let responses = [
        format_response("200 OK", next, &key("one")),
        // Neither the page before nor another server is a next page.
        format_response("200 OK", "link: <https://b.example/?limit=1>; rel=\"next\"\r\n", &key("two")),
    ];
    let (keys, requests) = tokio::join!(client.list_keys(), respond_all(&listener, &responses));
    let names: Vec<String> = keys.unwrap().into_iter().map(|key| key.name).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(requests[0].starts_with("GET /api/v1/paks HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[1].starts_with("GET /api/v1/paks?limit=1&after=a HTTP/1.1\r\n"), "{}", requests[1]);
}

#[tokio::test]
async fn the_version_of_a_broker_is_read_without_a_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/prefix", listener.local_addr().unwrap());
    let client = Client::without_key(HttpConnector::new(), address.parse().unwrap()).unwrap();
    let response = format_response("200 OK", "", r#"{"openapi":"3.1.0","info":{"title":"a","version":"1.2.3"}}"#);
    let (version, request) = tokio::join!(client.get_broker_version(), respond_once(&listener, &response));
    assert_eq!(version.unwrap(), "1.2.3");
    assert!(request.starts_with("GET /prefix/docs/openapi.json ") && !request.contains("authorization"), "{request}");
}

#[tokio::test]
async fn the_class_of_a_failed_connection_is_known() {
    use sindri_client::ConnectionFailure;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let tls = client(&address);
    let (error, _) = tokio::join!(tls.whoami(), respond_once(&listener, "\u{15}\u{3}\u{3}\0\u{2}\u{2}F"));
    assert!(matches!(error, Err(ClientError::Unreachable { failure: ConnectionFailure::NotHttp, .. })), "{error:?}");
    drop(listener);
    let error = client(&address).whoami().await;
    assert!(matches!(error, Err(ClientError::Unreachable { failure: ConnectionFailure::Refused, .. })), "{error:?}");
}

#[test]
fn invalid_parameters_of_a_client_are_rejected() {
    let create_client = |base: &str, key: &str| Client::new(HttpConnector::new(), base.parse().unwrap(), key).map(drop);
    assert_eq!(create_client("http://a:1", " brokkr_a_b\n"), Ok(()));
    for base in ["/path", "host:1", "http://a/?query"] {
        assert_eq!(create_client(base, "k"), Err(ClientSetupError::Address(base.to_owned())));
    }
    assert_eq!(create_client("http://a:1", "two\nlines"), Err(ClientSetupError::Key));
}

#[tokio::test]
async fn lists_follow_the_links_to_their_next_pages() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}", listener.local_addr().unwrap()));
    let approval = |number: u8| {
        format!(
            r#"{{"id":"00000000-0000-4000-8000-0000000000{number:02}","agent_id":"{agent}","stack_id":"{agent}",
            "deployment_object_id":"{agent}","digest":"d","state":"pending","reasons":[],"plan":"",
            "created_at":"2024-01-01T00:00:00Z"}}"#,
            agent = agent_id()
        )
    };
    let event = |number: u8| {
        format!(
            r#"{{"id":"00000000-0000-4000-8000-0000000000{number:02}","created_at":"2024-01-01T00:00:00Z",
            "agent_id":"{agent}","agent_name":"east","cluster_name":"c","stack_id":"{agent}","stack_name":"web",
            "sequence_id":1,"is_deletion_marker":false,"status":"SUCCESS"}}"#,
            agent = agent_id()
        )
    };
    // The pages are full by their size, and not by the number of their results.
    let page = |items: &[String], next: Option<&str>| {
        let link = next.map(|next| format!("link: <?{next}>; rel=\"next\"\r\n")).unwrap_or_default();
        format_response("200 OK", &format!("connection: close\r\n{link}"), &format!("[{}]", items.join(",")))
    };
    let responses = [
        page(&[approval(1)], Some("limit=1000&after=1")),
        page(&[approval(2)], None),
        page(&[event(9), event(8)], Some("order=newest_first&after=8")),
        page(&[event(7)], Some("order=newest_first&after=7")),
        page(&[event(9)], None),
    ];
    let calls = async {
        let approvals = client.list_approvals(Some(ApprovalState::Pending)).await.unwrap();
        assert_eq!(approvals.len(), 2);
        let (events, has_more) = client.list_newest_events(&EventQuery::default(), 2).await.unwrap();
        assert_eq!((events.len(), has_more), (2, true));
        let (events, has_more) = client.list_newest_events(&EventQuery::default(), 2).await.unwrap();
        assert_eq!((events.len(), has_more), (1, false));
    };
    let ((), requests) = tokio::join!(calls, respond_all(&listener, &responses));
    for (request, query) in requests.iter().zip([
        "/approvals?limit=1000&state=pending ",
        "/approvals?limit=1000&after=1 ",
        "/events?order=newest_first&limit=3 ",
        "/events?order=newest_first&after=8 ",
        "/events?order=newest_first&limit=3 ",
    ]) {
        assert!(request.contains(query), "{request}");
    }
}
