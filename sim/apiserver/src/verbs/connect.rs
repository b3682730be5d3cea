//! Streams of a pod: `exec`, `attach` and `portforward`.
//!
//! The API server checks the request and passes it to the kubelet of the pod's node, which has errors of its own: plain text
//! instead of `Status` objects. With the newest subprotocol of WebSockets the API server accepts the connection before it asks the
//! kubelet, whose errors then arrive on the streams.

use http::Method;
use serde_json::{Value, json};

use super::admit::admit_connect;
use super::read::find_live;
use super::resource_request::ResourceRequest;
use crate::admission::attributes::Kind;
use crate::auth::access::authorize;
use crate::http::error::{ApiError, details};
use crate::http::request::Request;
use crate::http::response::Response;
use crate::http::upgrade::{Place, Session, StreamProtocol, Upgrade};
use crate::object::containers::{find_container_start, find_pod_start};
use crate::object::fields::{array_at, string_at, uid};
use crate::process::program::{Program, StandardStreams};
use crate::state::server_state::ServerState;

/// Containers of a pod, in the order in which errors name them.
const CONTAINER_LISTS: [&str; 3] = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"];
/// Error of a command without arguments, as a container runtime words it.
const NO_COMMAND: &str = "error executing command in container: failed to exec in container: failed to create exec: \
    OCI runtime exec failed: args must not be empty";
/// Search path of a container's processes.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Options of a request, after webhooks have changed them.
struct ConnectOptions(Value);

impl ConnectOptions {
    /// Reads the options from the query.
    fn from_query(request: &ResourceRequest<'_>) -> Result<Self, ApiError> {
        let http = request.http;
        let mut options = json!({"kind": kind_of(request.subresource), "apiVersion": "v1"});
        if request.subresource == "portforward" {
            let mut ports = Vec::new();
            for port in values_of(http, "ports").flat_map(|values| values.split(',')) {
                let number = parse_port(port)?;
                ports.push(number);
            }
            if !ports.is_empty() {
                options["ports"] = json!(ports);
            }
            return Ok(Self(options));
        }
        for name in ["stdin", "stdout", "stderr", "tty"] {
            // Every other text is true, also an empty one.
            let is_set = http.query.get(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"));
            if is_set {
                options[name] = json!(true);
            }
        }
        if let Some(container) = http.parameter("container") {
            options["container"] = json!(container);
        }
        let command: Vec<&str> = values_of(http, "command").collect();
        if request.subresource == "exec" && !command.is_empty() {
            options["command"] = json!(command);
        }
        Ok(Self(options))
    }

    /// Returns the streams that the kubelet serves: a terminal has no error output of its own.
    fn streams(&self) -> StandardStreams {
        let is_set = |name: &str| self.0.get(name) == Some(&Value::Bool(true));
        let tty = is_set("tty");
        StandardStreams { stdin: is_set("stdin"), stdout: is_set("stdout"), stderr: is_set("stderr") && !tty, tty }
    }

    fn command(&self) -> Vec<String> {
        array_at(&self.0, "/command").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn ports(&self) -> Vec<u16> {
        let numbers = array_at(&self.0, "/ports").iter().filter_map(Value::as_u64);
        numbers.filter_map(|port| u16::try_from(port).ok()).collect()
    }
}

/// Returns every value of a query parameter, also the empty ones.
fn values_of<'a>(http: &'a Request, name: &'a str) -> impl Iterator<Item = &'a str> {
    let later = http.repeated.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str());
    http.query.get(name).map(String::as_str).into_iter().chain(later)
}

/// Parses the number of a port, with the errors of Go.
fn parse_port(text: &str) -> Result<u16, ApiError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let problem = if is_number { "value out of range" } else { "invalid syntax" };
    let invalid = || {
        let message = format!("cannot convert to []int32: strconv.ParseUint: parsing {text:?}: {problem}");
        ApiError::bad_request(message)
    };
    text.parse::<u16>().ok().filter(|_| is_number).ok_or_else(invalid)
}

fn kind_of(subresource: &str) -> &'static str {
    match subresource {
        "exec" => "PodExecOptions",
        "attach" => "PodAttachOptions",
        _ => "PodPortForwardOptions",
    }
}

/// Accepts or rejects a request for the streams of a pod.
pub(super) fn connect(state: &ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    if request.http.query.contains_key("dryRun") {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    let mut options = ConnectOptions::from_query(request)?;
    let kind = Kind { group: String::new(), version: "v1".to_owned(), kind: kind_of(request.subresource).to_owned() };
    admit_connect(state, request, kind, &mut options.0)?;
    // A WebSocket is a GET; it needs the permission of a POST, too.
    if authorize(&state.store, &request.user, &request.to_authorization_request("create")).is_err() {
        let message = format!("pods {:?} is forbidden: ", request.name);
        return Err(ApiError::new(403, "Forbidden", message, Some(details(&request.name, "", "pods"))));
    }
    let pod = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let connection = Connection { state, request, pod: &pod, options };
    if request.subresource == "portforward" { connection.forward_ports() } else { connection.start_process() }
}

/// A request for the streams of an existing pod.
struct Connection<'a> {
    state: &'a ServerState,
    request: &'a ResourceRequest<'a>,
    pod: &'a Value,
    options: ConnectOptions,
}

impl Connection<'_> {
    fn start_process(&self) -> Result<Response, ApiError> {
        let container = self.choose_container()?;
        self.check_node()?;
        let headers = &self.request.http.headers.upgrade;
        if headers.accepts_v5() {
            let protocol = match headers.negotiate_v5(self.is_get()) {
                Ok(protocol) => protocol,
                Err(rejection) => return Ok(rejection),
            };
            let streams = self.options.streams();
            let failed = |(_, message): (u16, String)| {
                let message = format!("unable to upgrade connection: {message}");
                (String::new(), Session::Failed { message, streams })
            };
            let (started_at, session) = self.find_process(container).unwrap_or_else(failed);
            return Ok(self.accept(protocol, Some(container), started_at, session));
        }
        self.check_upgrade()?;
        let (started_at, session) = match self.find_process(container) {
            Ok(found) => found,
            Err((status, message)) => return Ok(kubelet_error(status, &message)),
        };
        Ok(match headers.negotiate_process(self.is_get()) {
            Ok(protocol) => self.accept(protocol, Some(container), started_at, session),
            Err(rejection) => rejection,
        })
    }

    fn forward_ports(&self) -> Result<Response, ApiError> {
        self.check_node()?;
        self.check_upgrade()?;
        let headers = &self.request.http.headers.upgrade;
        let ports = self.options.ports();
        if headers.is_websocket() && !headers.accepts_tunnel() {
            if ports.is_empty() {
                return Ok(kubelet_error(400, "query parameter \"port\" is required"));
            }
            if ports.contains(&0) {
                return Ok(kubelet_error(400, "port \"0\" must be > 0"));
            }
        }
        let Some(started_at) = find_pod_start(self.pod) else {
            return Ok(kubelet_error(500, &format!("pod not found ({:?})", self.full_name())));
        };
        Ok(match headers.negotiate_ports(self.is_get()) {
            Ok(protocol) => self.accept(protocol, None, started_at.to_owned(), Session::Ports { ports }),
            Err(rejection) => rejection,
        })
    }

    fn is_get(&self) -> bool {
        self.request.http.method == Method::GET
    }

    fn full_name(&self) -> String {
        format!("{}_{}", self.request.name, self.request.namespace.as_deref().unwrap_or_default())
    }

    /// Returns the container that the request names, or the only one.
    fn choose_container(&self) -> Result<&str, ApiError> {
        let (pod, name) = (self.pod, &self.request.name);
        let all = || CONTAINER_LISTS.into_iter().flat_map(|list| array_at(pod, list)).map(|it| string_at(it, "/name"));
        let wanted = string_at(&self.options.0, "/container");
        if !wanted.is_empty() {
            let invalid = || ApiError::bad_request(format!("container {wanted} is not valid for pod {name}"));
            return all().find(|container| *container == wanted).ok_or_else(invalid);
        }
        match array_at(pod, "/spec/containers") {
            [only] => Ok(string_at(only, "/name")),
            _ => {
                let choices = all().collect::<Vec<_>>().join(" ");
                let message = format!("a container name must be specified for pod {name}, choose one of: [{choices}]");
                Err(ApiError::bad_request(message))
            }
        }
    }

    /// Checks that the pod is assigned to a node that exists.
    fn check_node(&self) -> Result<(), ApiError> {
        let node = string_at(self.pod, "/spec/nodeName");
        if node.is_empty() {
            let message = format!("pod {} does not have a host assigned", self.request.name);
            return Err(ApiError::bad_request(message));
        }
        if self.state.store.find("", "nodes", None, node).is_none() {
            let message = format!("nodes {node:?} not found");
            return Err(ApiError::new(404, "NotFound", message, Some(details(node, "", "nodes"))));
        }
        Ok(())
    }

    fn check_upgrade(&self) -> Result<(), ApiError> {
        if self.request.http.headers.upgrade.is_requested() {
            return Ok(());
        }
        Err(ApiError::bad_request("Upgrade request required"))
    }

    /// Returns the start of a container and its process, or the status and the message of the kubelet's error.
    fn find_process(&self, container: &str) -> Result<(String, Session), (u16, String)> {
        let streams = self.options.streams();
        if !streams.stdin && !streams.stdout && !streams.stderr {
            return Err((400, "you must specify at least 1 of stdin, stdout, stderr".to_owned()));
        }
        let is_attach = self.request.subresource == "attach";
        let Some(started_at) = find_container_start(self.pod, container) else {
            let full_name = self.full_name();
            let message = format!("container {container} not found in pod {full_name}");
            return Err((500, if is_attach { message } else { format!("container not found ({container:?})") }));
        };
        let session = if is_attach { self.attach(container, streams) } else { self.execute(container, streams) };
        Ok((started_at.to_owned(), session))
    }

    fn attach(&self, name: &str, streams: StandardStreams) -> Session {
        let container = self.find_spec(name);
        let log = self.state.workloads.log_of(self.pod, container).unwrap_or_else(|| format!("{name} started\n"));
        // The process has a terminal if its container was started with one.
        let tty = container.get("tty") == Some(&Value::Bool(true));
        let streams = StandardStreams { tty, stderr: streams.stderr && !tty, ..streams };
        Session::Process { program: Program::Attached { log }, streams, is_attach: true }
    }

    fn execute(&self, container: &str, streams: StandardStreams) -> Session {
        let arguments = self.options.command();
        let program = match self.state.workloads.find_exec_rule(self.pod, container, &arguments) {
            Some(rule) => {
                Program::Fixed { stdout: rule.stdout.clone(), stderr: rule.stderr.clone(), exit_code: rule.exit_code }
            }
            None if arguments.is_empty() => return Session::Failed { message: NO_COMMAND.to_owned(), streams },
            None => Program::Command { arguments, variables: self.variables(container, streams.tty) },
        };
        Session::Process { program, streams, is_attach: false }
    }

    fn find_spec(&self, container: &str) -> &Value {
        let mut all = CONTAINER_LISTS.into_iter().flat_map(|list| array_at(self.pod, list));
        all.find(|spec| string_at(spec, "/name") == container).unwrap_or(&Value::Null)
    }

    /// Returns the environment variables of a container whose values are in its pod.
    fn variables(&self, container: &str, tty: bool) -> Vec<(String, String)> {
        let mut variables = vec![("PATH", PATH), ("HOSTNAME", &self.request.name)];
        if tty {
            variables.push(("TERM", "xterm"));
        }
        let declared = array_at(self.find_spec(container), "/env").iter();
        let declared = declared.filter(|variable| variable.get("valueFrom").is_none());
        variables.extend(declared.map(|variable| (string_at(variable, "/name"), string_at(variable, "/value"))));
        variables.push(("HOME", "/root"));
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn accept(
        &self,
        protocol: StreamProtocol,
        container: Option<&str>,
        started_at: String,
        session: Session,
    ) -> Response {
        let place = Place {
            namespace: self.request.namespace.clone().unwrap_or_default(),
            pod: self.request.name.clone(),
            uid: uid(self.pod).to_owned(),
            container: container.map(str::to_owned),
            started_at,
        };
        let websocket_key = self.request.http.headers.upgrade.websocket_key.clone();
        Response::Upgrade(Box::new(Upgrade { protocol, websocket_key, place, session }))
    }
}

/// Returns an error of the kubelet, which is plain text.
fn kubelet_error(status: u16, message: &str) -> Response {
    let headers = vec![("content-type", "text/plain; charset=utf-8".to_owned())];
    Response::Full { status, headers, body: message.to_owned().into() }
}
