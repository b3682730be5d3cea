//! Log lines, to standard error. Every line that belongs to a request carries the request's name.

use std::fmt;
use std::io;

use sindri_broker::with_request_id;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::config::Config;
use super::settings::{LOG_FORM, LOG_LEVEL};

/// Begins to write log lines as the settings say.
pub fn begin(config: &Config) {
    let level: LevelFilter = config.text(&LOG_LEVEL).parse().expect("the setting takes no other words");
    let lines = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    match config.text(&LOG_FORM) {
        "off" => {}
        "json" => lines.json().event_format(JsonLines(Format::default().json().flatten_event(true))).init(),
        _ => lines.event_format(PrettyLines(Format::default().with_target(false))).init(),
    }
}

/// Lines for people.
struct PrettyLines(Format);

/// Lines for programs.
struct JsonLines(Format<Json>);

impl<S, N> FormatEvent<S, N> for PrettyLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        with_request_id(|id| match id {
            Some(id) => writeln!(writer, "{} request_id={id}", line.trim_end()),
            None => writer.write_str(&line),
        })
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        with_request_id(|id| match (id, line.trim_end().strip_suffix('}')) {
            // Visible characters; as a string of JSON it has its quotes escaped.
            (Some(id), Some(open)) => writeln!(writer, "{open},\"request_id\":{}}}", serde_json::Value::from(id)),
            (_, None) | (None, Some(_)) => writer.write_str(&line),
        })
    }
}
