//! The server as a machine: a request and the time go in, a response and events come out.
//!
//! The verbs are in `verbs`, the consequences that follow later are in `controllers`; both work on the [`ServerState`].

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use crate::auth::access;
use crate::auth::authorization_request::AuthorizationRequest;
use crate::auth::flow::{FlowHeaders, flow_headers};
use crate::bootstrap::{initial_store, remove_objects_of_controllers};
use crate::controllers::namespace::create_namespace;
use crate::controllers::{node, run};
use crate::discovery::documents;
use crate::http::error::ApiError;
use crate::http::error_response::{fault_response, timeout_response};
use crate::http::media;
use crate::http::request::{Credentials, Fault, Request};
use crate::http::response::{Response, WatchId};
use crate::http::route::{Route, route};
use crate::http::upgrade::Place;
use crate::http::webhook_call::{RequestStart, WebhookAnswer, WebhookAnswers, WebhookCall};
use crate::object::containers::{find_container_start, find_pod_start};
use crate::object::fields::uid;
use crate::object::key::StoredKey;
use crate::persistence;
use crate::process::port_server::PortAnswer;
use crate::state::certificate_signer::CertificateSigner;
use crate::state::container_rules::{ExecRule, PortRule};
use crate::state::delays::ControllerDelays;
use crate::state::pod_outcome::PodRule;
use crate::state::server_state::ServerState;
use crate::state::watch::Watch;
use crate::storage::ids::Ids;
use crate::storage::journal::Write;
use crate::verbs::convert_by_webhook::convert_objects;
use crate::verbs::dispatch::handle_objects;
use crate::writes::workload_triggers::reschedule_running_pods;

/// Largest number of times that a request waits for webhooks.
pub(crate) const WEBHOOK_ROUNDS_MAX: usize = 256;
/// Error of a webhook that cannot be called.
const UNREACHABLE: &str = "connect: connection refused";

/// Result of a run of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The response. The request is done.
    Response(Response),
    /// The webhooks that must be called first.
    Calls(Vec<WebhookCall>),
}

/// One Kubernetes API server as a machine.
#[derive(Clone, Debug)]
pub struct ApiServer {
    state: ServerState,
}

impl ApiServer {
    /// Returns a fresh server with its first objects. Identities come from a generator with this seed.
    #[must_use]
    pub fn new(seed: u64, now: Timestamp) -> Self {
        Self::with_delays(seed, now, ControllerDelays::default())
    }

    /// Returns a fresh server whose controllers have these delays.
    #[must_use]
    pub fn with_delays(seed: u64, now: Timestamp, delays: ControllerDelays) -> Self {
        let mut state = ServerState::new(seed, delays);
        state.store = initial_store(now);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            create_namespace(&mut state, now, name);
        }
        state.journal.take();
        Self { state }
    }

    /// Replaces the objects and their history by those of an earlier clone, as a restore of etcd from a snapshot does. The
    /// generator of identities and the journal go on, and open watches end.
    pub fn restore(&mut self, snapshot: &Self) {
        let mut state = snapshot.state.clone();
        std::mem::swap(&mut state.ids, &mut self.state.ids);
        std::mem::swap(&mut state.journal, &mut self.state.journal);
        std::mem::swap(&mut state.watches, &mut self.state.watches);
        state.watches.close_all();
        self.state = state;
    }

    /// Returns all objects as a document for [`Self::import`].
    #[must_use]
    pub fn export(&self) -> Value {
        persistence::export(&self.state.store)
    }

    /// Replaces all objects by those of a document.
    ///
    /// # Errors
    /// With the reason, if the document is not one of [`Self::export`].
    pub fn import(&mut self, now: Timestamp, document: &Value) -> Result<(), String> {
        persistence::import(&mut self.state, now, document)
    }

    /// Returns the same server without a journal, for callers that do not read it.
    #[must_use]
    pub fn without_journal(mut self) -> Self {
        self.state.journal.disable();
        self
    }

    /// Returns the same server without the controllers that run beside an API server: namespaces get no default objects
    /// and are not emptied, and no garbage is collected. CRDs are still served, which the API server itself does.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.state.runs_controllers = false;
        remove_objects_of_controllers(&mut self.state.store);
        self
    }

    /// Returns the same server without the admission that requires a service account for each pod and mounts its token.
    #[must_use]
    pub fn without_account_admission(mut self) -> Self {
        self.state.requires_service_accounts = false;
        self
    }

    /// Returns the same server with one administrator, who has this token; roles and bindings decide about all others.
    #[must_use]
    pub fn with_administrator(mut self, token: &str) -> Self {
        self.state.authenticator.administrator = Some(Credentials(token.to_owned()));
        self
    }

    /// Returns the same server with a signer of the certificates of clients. Without one, approved requests wait.
    #[must_use]
    pub fn with_signer(mut self, signer: Arc<dyn CertificateSigner>) -> Self {
        self.state.signer = Some(signer);
        self
    }

    /// Returns the same server with the controllers that create pods and endpoints, beside those that it has already.
    #[must_use]
    pub fn with_workloads(mut self) -> Self {
        self.state.workloads.controllers = true;
        self
    }

    /// Returns the same server with nodes, a scheduler that assigns pods to them, and kubelets that run them there.
    #[must_use]
    pub fn with_kubelet(mut self, now: Timestamp, nodes: &[&str]) -> Self {
        self.state.workloads.kubelet = true;
        for (index, name) in nodes.iter().enumerate() {
            node::add_node(&mut self.state, now, name, index);
        }
        self.take_journal();
        self
    }

    /// Sets the outcome of the containers that a rule matches. A newer rule comes before the older ones.
    pub fn add_pod_rule(&mut self, now: Timestamp, rule: PodRule) {
        self.state.workloads.add_rule(rule);
        reschedule_running_pods(&mut self.state, now);
    }

    /// Removes every pod rule, so that all containers run from now on.
    pub fn clear_pod_rules(&mut self, now: Timestamp) {
        self.state.workloads.rules.clear();
        reschedule_running_pods(&mut self.state, now);
    }

    /// Returns the pod rules; the first that matches decides.
    #[must_use]
    pub fn pod_rules(&self) -> &[PodRule] {
        &self.state.workloads.rules
    }

    /// Sets the result of the commands in containers that a rule matches. A newer rule comes before the older ones.
    pub fn add_exec_rule(&mut self, rule: ExecRule) {
        self.state.workloads.add_exec_rule(rule);
    }

    /// Removes every rule for commands in containers.
    pub fn clear_exec_rules(&mut self) {
        self.state.workloads.exec_rules.clear();
    }

    /// Returns the rules for commands in containers; the first that matches decides.
    #[must_use]
    pub fn exec_rules(&self) -> &[ExecRule] {
        &self.state.workloads.exec_rules
    }

    /// Sets the answer of the ports of pods that a rule matches. A newer rule comes before the older ones.
    pub fn add_port_rule(&mut self, rule: PortRule) {
        self.state.workloads.add_port_rule(rule);
    }

    /// Removes every rule for ports of pods.
    pub fn clear_port_rules(&mut self) {
        self.state.workloads.port_rules.clear();
    }

    /// Returns the rules for ports of pods; the first that matches decides.
    #[must_use]
    pub fn port_rules(&self) -> &[PortRule] {
        &self.state.workloads.port_rules
    }

    /// True if the pod or the container of a stream still runs.
    pub(crate) fn is_running(&self, place: &Place) -> bool {
        let Some(pod) = self.find_pod(place) else { return false };
        let started_at = match &place.container {
            Some(container) => find_container_start(pod, container),
            None => find_pod_start(pod),
        };
        started_at == Some(&place.started_at)
    }

    /// Returns the answer of a port of a pod, which is refused once the pod is gone.
    pub(crate) fn answer_port(&self, place: &Place, port: u16) -> PortAnswer {
        let pod = self.find_pod(place);
        pod.map_or(PortAnswer::Refused, |pod| self.state.workloads.answer_port(pod, port))
    }

    fn find_pod(&self, place: &Place) -> Option<&Arc<Value>> {
        self.get("", "pods", Some(&place.namespace), &place.pod).filter(|pod| uid(pod) == place.uid)
    }

    /// Handles one request. No webhook is called: those that must be fail as if they were unreachable.
    pub fn handle(&mut self, now: Timestamp, request: &Request, fault: Option<&Fault>) -> Response {
        self.handle_with(now, request, fault, |_| Err(UNREACHABLE.to_owned()))
    }

    /// Handles one request, whose webhooks a function answers.
    pub fn handle_with(
        &mut self,
        now: Timestamp,
        request: &Request,
        fault: Option<&Fault>,
        mut answer: impl FnMut(&WebhookCall) -> WebhookAnswer,
    ) -> Response {
        let mut answers = WebhookAnswers::default();
        for _ in 0..WEBHOOK_ROUNDS_MAX {
            match self.try_handle(now, request, fault, &mut answers) {
                Handled::Response(response) => return response,
                Handled::Calls(calls) => calls.iter().for_each(|call| answers.add(call, answer(call))),
            }
        }
        timeout_response()
    }

    /// Handles one request as far as the answers of webhooks are known. If one is missing, nothing is changed and the calls
    /// are returned; the caller makes them, adds their answers, and handles the request again.
    pub fn try_handle(
        &mut self,
        now: Timestamp,
        request: &Request,
        fault: Option<&Fault>,
        answers: &mut WebhookAnswers,
    ) -> Handled {
        // Tasks that were due before this request run before it, even if the caller did not call `tick` in between.
        self.tick(now);
        let result = match fault {
            None => self.respond(now, request, answers),
            Some(Fault::Refuse { status, retry_after_secs }) => Ok(fault_response(*status, *retry_after_secs)),
            Some(Fault::CutBeforeCommit) => Ok(Response::Cut),
            Some(Fault::Rewrite(patch)) => self.respond(now, &request.with_patched_body(patch), answers),
            Some(Fault::BreakStream { after_events, how }) => {
                let response = self.respond(now, request, answers);
                if let Ok(Response::Watch(id)) = &response
                    && let Some(watch) = self.state.watches.get_mut(*id)
                {
                    watch.break_after(*after_events, *how);
                }
                response
            }
            Some(Fault::LoseResponse) => self.respond(now, request, answers).map(|response| {
                if let Response::Watch(id) = response {
                    self.close_watch(id);
                }
                Response::Cut
            }),
        };
        result.map_or_else(Handled::Calls, Handled::Response)
    }

    /// Runs the controllers up to this time.
    pub fn tick(&mut self, now: Timestamp) {
        while let Some(task) = self.state.schedule.take_due(now) {
            run::run_task(&mut self.state, now, task);
        }
        self.state.store.compact(now, self.state.delays.history);
    }

    /// Returns the time of the next controller task.
    #[must_use]
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.state.schedule.next()
    }

    /// Returns the headers of a watch.
    #[must_use]
    pub fn watch_headers(&self, id: WatchId) -> Vec<(&'static str, String)> {
        let watch = self.state.watches.get(id);
        let media = watch.map_or("application/json", Watch::media);
        let flow = watch.map(|watch| watch.flow_headers.clone()).unwrap_or_default();
        std::iter::once(("content-type", media.to_owned())).chain(flow).collect()
    }

    /// Returns the conversion webhooks that must be called before the next events of a watch are read. A failed conversion
    /// leaves the objects as they are stored.
    pub fn watch_calls(&self, id: WatchId, answers: &WebhookAnswers) -> Vec<WebhookCall> {
        let Some(watch) = self.state.watches.get(id) else { return Vec::new() };
        let target = &watch.scope.target;
        if target.resource.conversion.is_none() {
            return Vec::new();
        }
        let (store, objects) = (&self.state.store, watch.unread_objects(&self.state.store));
        match convert_objects(store, &target.resource, &target.api_version(), &objects, answers) {
            Err(ApiError::AwaitsWebhooks(calls)) => calls,
            Ok(()) | Err(_) => Vec::new(),
        }
    }

    /// Returns the events of a watch since the last call: lines of JSON, or Protobuf messages with their length before them.
    pub fn watch_events(&mut self, id: WatchId, now: Timestamp) -> Vec<Bytes> {
        self.state.watches.get_mut(id).map(|watch| watch.read(&self.state.store, now)).unwrap_or_default()
    }

    /// True if a watch has ended and all its events were read.
    #[must_use]
    pub fn watch_is_closed(&self, id: WatchId) -> bool {
        self.state.watches.get(id).is_none_or(Watch::is_closed)
    }

    /// True if the connection of a watch breaks where the watch ends.
    #[must_use]
    pub fn watch_is_cut(&self, id: WatchId) -> bool {
        self.state.watches.get(id).is_some_and(Watch::is_cut)
    }

    /// Returns the time at which a watch has output without a change: a bookmark, or its end.
    #[must_use]
    pub fn watch_wakes_at(&self, id: WatchId) -> Option<Timestamp> {
        self.state.watches.get(id).and_then(Watch::next_wake)
    }

    /// Drops a watch.
    pub fn close_watch(&mut self, id: WatchId) {
        self.state.watches.remove(id);
    }

    /// Returns the number of open watches.
    #[must_use]
    pub fn watch_count(&self) -> usize {
        self.state.watches.len()
    }

    /// Drops the whole history, so that each watch that is behind ends with 410.
    pub fn compact(&mut self) {
        self.state.store.compact_all();
    }

    /// Removes and returns the committed writes since the last call, in order.
    pub fn take_journal(&mut self) -> Vec<Write> {
        self.state.journal.take()
    }

    /// Returns every object, by resource, namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = (&StoredKey, &Arc<Value>)> {
        self.state.store.all().map(|entry| (&*entry.key, &**entry.object))
    }

    /// Returns one object.
    #[must_use]
    pub fn get(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> Option<&Arc<Value>> {
        self.state.store.find(group, plural, namespace, name)
    }

    /// Returns the revision of the newest change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.state.store.revision()
    }

    /// Returns a value that changes whenever watches or the tick loop may have something to do.
    pub(crate) fn pulse(&self) -> (u64, u64, Option<Timestamp>) {
        (self.state.store.revision(), self.state.store.compacted(), self.state.schedule.next())
    }

    /// Returns the rejection of a request that does not come from the administrator.
    pub(crate) fn reject_unless_administrator(&self, now: Timestamp, request: &Request) -> Option<Response> {
        access::reject_unless_administrator(&self.state.authenticator, &self.state.store, now, request)
    }

    /// Responds to a request. The error are the calls of webhooks whose answers are missing; then nothing has changed.
    fn respond(
        &mut self,
        now: Timestamp,
        request: &Request,
        answers: &mut WebhookAnswers,
    ) -> Result<Response, Vec<WebhookCall>> {
        let allocator = self.state.allocator.clone();
        if answers.start.is_none() {
            let result = self.respond_once(now, request, answers);
            if result.is_ok() {
                return result;
            }
            self.state.allocator = allocator.clone();
            answers.start = Some(RequestStart { time: now, seed: self.state.ids.next_seed() });
        }
        // All further runs generate the same values, so that reviews do not change.
        let seed = answers.start.map_or(0, |start| start.seed);
        let ids = std::mem::replace(&mut self.state.ids, Ids::new(seed));
        let result = self.respond_once(now, request, answers);
        self.state.ids = ids;
        if result.is_err() {
            self.state.allocator = allocator;
        }
        result
    }

    /// Adds headers to a response, or to those of a watch.
    fn with_flow_headers(&mut self, response: Response, flow: Option<FlowHeaders>) -> Response {
        let Some(flow) = flow else { return response };
        if let Response::Watch(id) = response {
            if let Some(watch) = self.state.watches.get_mut(id) {
                watch.flow_headers = flow.into();
            }
            return response;
        }
        flow.into_iter().fold(response, |response, (name, value)| response.with_header(name, value))
    }

    fn respond_once(
        &mut self,
        now: Timestamp,
        request: &Request,
        answers: &WebhookAnswers,
    ) -> Result<Response, Vec<WebhookCall>> {
        let (request, route) = match route(&request.path) {
            Route::Watch(inner) => (&request.as_watch(), *inner),
            other => (request, other),
        };
        let user = access::identify_user(&self.state.authenticator, &self.state.store, now, request);
        let attributes = AuthorizationRequest::from_request(request, &route);
        let flow = user.as_ref().ok().and_then(|user| flow_headers(&self.state.store, user, &attributes));
        let user = user.and_then(|user| access::authorize(&self.state.store, &user, &attributes).map(|()| user));
        let is_document = matches!(route, Route::Version | Route::Keys | Route::Issuer | Route::OpenApi2);
        let is_document = is_document || matches!(route, Route::OpenApi3Index | Route::OpenApi3 { .. });
        let result = match (user, route) {
            (Err(error), _) => Err(error),
            (Ok(user), Route::Objects(objects)) => {
                handle_objects(&mut self.state, now, request, user, objects, answers)
            }
            (Ok(_), other) => documents::respond(&self.state.store, &self.state.registry, request, &other),
        };
        let to_response = |error: ApiError| error.into_response().in_notation(media::plain_notation(request));
        if let Err(ApiError::AwaitsWebhooks(calls)) = result {
            return Err(calls);
        }
        let response = result.unwrap_or_else(to_response);
        let response = if is_document { response } else { response.in_form(request) };
        let response = self.with_flow_headers(response, flow);
        Ok(if request.method == Method::HEAD { response.without_body() } else { response.encoded(request) })
    }
}
