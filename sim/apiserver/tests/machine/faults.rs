//! Faults that a request is handled with.

use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Fault, Request, Response, StreamEnd, WatchId};

use crate::harness::*;

fn create(machine: &Machine) -> Request {
    machine.request(Method::POST, CONFIG_MAPS, "application/json", &config_map("a", &json!({})))
}

#[test]
fn a_refused_request_gets_the_real_error_and_changes_nothing() {
    let mut machine = Machine::new();
    let request = create(&machine);
    let fault = Fault::Refuse { status: 429, retry_after_secs: Some(3) };
    let Response::Full { status, headers, body } = machine.server.handle(machine.now, &request, Some(&fault)) else {
        panic!("expected a complete response");
    };
    assert_eq!((status, &body[..]), (429, &b"Too many requests, please try again later."[..]));
    assert!(headers.contains(&("retry-after", "3".to_owned())), "{headers:?}");
    for (status, reason) in [(500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")] {
        let fault = Fault::Refuse { status, retry_after_secs: None };
        let response = machine.server.handle(machine.now, &request, Some(&fault));
        let body = response.body_json().expect("a Status");
        assert_eq!(
            (response.status(), &body["kind"], &body["reason"]),
            (Some(status), &json!("Status"), &json!(reason))
        );
    }
    assert_eq!(machine.journal(), Vec::<String>::new());
}

#[test]
fn a_write_is_committed_if_its_response_is_lost_but_not_if_the_request_is_cut() {
    let mut machine = Machine::new();
    let request = create(&machine);
    assert_eq!(machine.server.handle(machine.now, &request, Some(&Fault::CutBeforeCommit)), Response::Cut);
    assert_eq!(machine.journal(), Vec::<String>::new());
    assert_eq!(machine.server.handle(machine.now, &request, Some(&Fault::LoseResponse)), Response::Cut);
    assert_eq!(machine.journal(), ["Create configmaps/a"]);
}

#[test]
fn a_watch_whose_response_is_lost_is_closed() {
    let mut machine = Machine::new();
    let request = machine.request(Method::GET, &format!("{CONFIG_MAPS}?watch=1"), "", &Value::Null);
    assert_eq!(machine.server.handle(machine.now, &request, Some(&Fault::LoseResponse)), Response::Cut);
    assert_eq!(machine.server.watch_count(), 0);
}

fn broken_watch(machine: &mut Machine, after_events: usize, how: StreamEnd) -> WatchId {
    let target = format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", machine.server.revision());
    let request = machine.request(Method::GET, &target, "", &Value::Null);
    let fault = Fault::BreakStream { after_events, how };
    match machine.server.handle(machine.now, &request, Some(&fault)) {
        Response::Watch(id) => id,
        other => panic!("expected a watch: {other:?}"),
    }
}

#[test]
fn a_stream_breaks_after_the_given_number_of_events_in_the_given_way() {
    for (how, last, is_cut) in
        [(StreamEnd::Closed, None, false), (StreamEnd::Expired, Some("ERROR"), false), (StreamEnd::Cut, None, true)]
    {
        let mut machine = Machine::new();
        let watch = broken_watch(&mut machine, 2, how);
        machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
        assert_eq!(machine.events(watch), ["ADDED a"], "{how:?}");
        assert!(!machine.server.watch_is_closed(watch), "{how:?}");
        machine.post(CONFIG_MAPS, &config_map("b", &json!({})));
        machine.post(CONFIG_MAPS, &config_map("c", &json!({})));
        let seen: Vec<&str> = ["ADDED b"].into_iter().chain(last).collect();
        assert_eq!(machine.events(watch), seen, "{how:?}");
        assert_eq!(machine.events(watch), Vec::<String>::new(), "{how:?}");
        assert!(machine.server.watch_is_closed(watch), "{how:?}");
        assert_eq!(machine.server.watch_is_cut(watch), is_cut, "{how:?}");
    }
}

#[test]
fn a_stream_can_break_before_its_first_event_without_affecting_other_requests() {
    let mut machine = Machine::new();
    let watch = broken_watch(&mut machine, 0, StreamEnd::Closed);
    machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
    assert_eq!(machine.events(watch), Vec::<String>::new());
    assert!(machine.server.watch_is_closed(watch));
    let request = machine.request(Method::GET, CONFIG_MAPS, "", &Value::Null);
    let fault = Fault::BreakStream { after_events: 0, how: StreamEnd::Cut };
    assert_eq!(machine.server.handle(machine.now, &request, Some(&fault)).status(), Some(200));
}
