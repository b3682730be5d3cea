//! The process of an exec or an attach, from its start to its result.

use std::pin::pin;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::connection::{Gone, IDLE_MAX, Io, ended};
use super::process_streams::{Input, ProcessStreams};
use crate::front::shared::SharedServer;
use crate::http::error::ApiError;
use crate::http::upgrade::{Place, StreamProtocol};
use crate::process::program::{Program, StandardStreams};
use crate::process::run::{Output, Process, Step};

/// Largest part of an output in bytes that is written at once.
const OUTPUT_BYTES_MAX: usize = 32 * 1024;
/// Exit code of a process that is killed with its container.
const KILLED: u8 = 137;

/// Runs a process, and reports its result.
pub(super) async fn run_process(
    server: &SharedServer,
    place: &Place,
    (program, is_attach): (Program, bool),
    (protocol, standard): (StreamProtocol, StandardStreams),
    io: Io,
) -> Result<(), Gone> {
    let shown = match &program {
        Program::Command { arguments, .. } => arguments.join(" "),
        Program::Fixed { .. } | Program::Attached { .. } => String::new(),
    };
    let mut streams = ProcessStreams::open(protocol, standard, io).await?;
    let mut process = Process::start(program, standard);
    let exit_code = loop {
        let pause = match process.next() {
            Step::Write(output, bytes) => {
                let is_open = match output {
                    Output::Stdout => standard.stdout,
                    Output::Stderr => standard.stderr,
                };
                for part in bytes.chunks(OUTPUT_BYTES_MAX).filter(|_| is_open) {
                    streams.write(output, part).await?;
                }
                continue;
            }
            Step::Yield => {
                tokio::task::yield_now().await;
                continue;
            }
            Step::Exit(exit_code) => break exit_code,
            Step::Sleep(pause) => Some(pause),
            Step::Read => None,
        };
        if wait(server, place, &mut process, &mut streams, pause).await? == Waited::ContainerEnded {
            break if is_attach { 0 } else { KILLED };
        }
    };
    streams.finish(protocol, &exit_status(exit_code, &shown, protocol)).await
}

/// Reports an error that occurred before the process started.
pub(super) async fn fail_process(
    message: &str,
    (protocol, standard): (StreamProtocol, StandardStreams),
    io: Io,
) -> Result<(), Gone> {
    let streams = ProcessStreams::open(protocol, standard, io).await?;
    streams.finish(protocol, &without_type(ApiError::internal(message).to_value())).await
}

/// Result of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// The process goes on.
    Continues,
    ContainerEnded,
}

/// Waits for input, or during a pause for its end, and passes input to the process.
async fn wait(
    server: &SharedServer,
    place: &Place,
    process: &mut Process,
    streams: &mut ProcessStreams,
    pause: Option<Duration>,
) -> Result<Waited, Gone> {
    let now = Instant::now();
    let until = now + pause.unwrap_or(IDLE_MAX);
    let mut ended = pin!(ended(server, place));
    loop {
        streams.flush().await?;
        let input = tokio::select! {
            // The end of the container counts first; then what the client has already sent.
            biased;
            () = &mut ended => return Ok(Waited::ContainerEnded),
            input = streams.next(), if pause.is_none() || process.accepts_input() => input?,
            () = tokio::time::sleep_until(until) => {
                return if pause.is_some() { Ok(Waited::Continues) } else { Err(Gone) };
            }
        };
        let is_interrupted = match input {
            Input::Bytes(bytes) => process.receive(&bytes),
            Input::Ended => {
                process.end_input();
                false
            }
            Input::Other => continue,
        };
        if pause.is_none() || is_interrupted {
            return Ok(Waited::Continues);
        }
    }
}

/// Returns the result of a process with this exit code.
fn exit_status(exit_code: u8, command: &str, protocol: StreamProtocol) -> Value {
    if exit_code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    // The API server rewrites the kubelet's message where it serves the WebSocket itself.
    let message = if protocol.has_close_messages() {
        format!("command terminated with exit code {exit_code}")
    } else {
        format!("error executing command [{command}], exit code {exit_code}")
    };
    json!({
        "metadata": {}, "status": "Failure",
        "message": format!("command terminated with non-zero exit code: {message}"),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": exit_code.to_string()}]},
    })
}

/// Returns a `Status` as it is sent on a stream.
fn without_type(status: Value) -> Value {
    let fields = status.as_object().cloned().unwrap_or_default();
    let is_content = |(name, _): &(String, Value)| name != "kind" && name != "apiVersion";
    Value::Object(fields.into_iter().filter(is_content).collect::<Map<_, _>>())
}
