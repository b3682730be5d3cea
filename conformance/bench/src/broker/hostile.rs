//! A tenant that lists large stacks and submits hostile texts, and the idle polls of another.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::http_load::{LoadGenerator, get, post};
use super::prepare::BrokerData;
use super::server::{Bench, Server};
use crate::figures::{Bar, Figures, median};

const YAML: &str = "application/yaml";
/// Revisions of 2 MB: together 200 MB.
const REVISIONS: usize = 100;
const REVISION_BYTES: usize = 2_000_000;
const LISTS: usize = 100;
const LISTS_EACH: usize = 5;
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(2);

/// Measures the memory for parallel lists.
pub fn measure_lists(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let server = bench.start_broker(&bench.create_directory("lists")?, &["--log", "off"])?;
    let stack = create_stack(bench, &server)?;
    let mut load = LoadGenerator::connect(server.address, 1)?;
    let path = format!("/api/v1/stacks/{stack}/deployment-objects");
    let text = format!("a: \"{}\"\n", "x".repeat(REVISION_BYTES));
    for _ in 0..REVISIONS {
        bench.check_interrupt()?;
        load.call(&post(&path, &server.key, YAML, &text), 201)?;
    }
    let mut lists = LoadGenerator::connect(server.address, LISTS)?;
    let (request, mut sent) = (get(&path, &server.key, None), 0);
    let next = |_| {
        sent += 1;
        (sent <= LISTS * LISTS_EACH).then_some(Cow::Borrowed(request.as_slice()))
    };
    lists.run(next, |_, response| super::http_load::expect_status(&response, 200).map(drop))?;
    figures.add("100 parallel lists of 200 MB of revisions, memory", server.peak()?, "MB", Bar::AtMost(300.0));
    Ok(())
}

/// Measures idle polls while another tenant submits hostile texts.
pub fn measure_polls(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let server = bench.start_broker(&bench.create_directory("hostile")?, &["--log", "off"])?;
    let stack = create_stack(bench, &server)?;
    let mut data = BrokerData::connect(bench, &server)?;
    let generator = data.create_generator_named("tenant")?;
    let agent = data.create_agents(&generator, "agent", 1)?.remove(0);
    let mut load = LoadGenerator::connect(server.address, 1)?;
    let path = format!("/api/v1/agents/{}/target-state", agent.id);
    let first = load.call(&get(&path, &agent.key, None), 200)?;
    let etag = first.header("etag").ok_or("a target state has no ETag")?.to_owned();
    let poll = get(&path, &agent.key, Some(&etag));
    let mut measure = || -> Result<f64, String> {
        let mut latencies = Vec::new();
        for _ in 0..ROUNDS {
            latencies.push(load.run_for(SPAN, 304, || Cow::Borrowed(&poll))?.p99);
        }
        Ok(median(latencies))
    };
    let quiet = measure()?;
    let is_over = AtomicBool::new(false);
    let (hostile, submitted) = std::thread::scope(|scope| {
        let submitting = scope.spawn(|| submit_hostile_texts(&server, &stack, &is_over));
        let hostile = measure();
        is_over.store(true, Ordering::SeqCst);
        (hostile, submitting.join())
    });
    let (hostile, submitted) = (hostile?, submitted.map_err(|_| "the hostile tenant panicked")??);
    figures.add("idle poll, p99, quiet", quiet, "ms", Bar::None);
    figures.add("idle poll, p99, another tenant submits hostile texts", hostile, "ms", Bar::None);
    figures.add("hostile texts that were submitted", submitted, "", Bar::AtLeast(1.0));
    figures.add("idle poll, p99, hostile texts per quiet", hostile / quiet, "ratio", Bar::AtMost(5.0));
    Ok(())
}

fn create_stack(bench: &Bench, server: &Server) -> Result<String, String> {
    let mut data = BrokerData::connect(bench, server)?;
    let generator = data.create_generator()?;
    Ok(data.create_stacks(&generator, "large", 1)?.remove(0))
}

/// Submits texts of 2 MB whose parsing is much work, one after another. Returns their number.
fn submit_hostile_texts(server: &Server, stack: &str, is_over: &AtomicBool) -> Result<f64, String> {
    let fill = |part: &str| part.repeat(REVISION_BYTES / part.len());
    let texts = [fill("["), fill("{a: "), fill("- "), fill("a: b: c\n---\n"), fill("\"\\u0041\" : 'b' # c\n")];
    let path = format!("/api/v1/stacks/{stack}/deployment-objects");
    let requests = texts.map(|text| post(&path, &server.key, YAML, &text));
    let (mut load, mut count) = (LoadGenerator::connect(server.address, 1)?, 0.0);
    let mut next = requests.iter().cycle();
    let more = |_| if is_over.load(Ordering::SeqCst) { None } else { next.next().map(|text| Cow::Borrowed(&**text)) };
    load.run(more, |_, response| {
        count += 1.0;
        let is_expected = [201, 400].contains(&response.status);
        if is_expected { Ok(()) } else { Err(format!("a hostile text got status {}", response.status)) }
    })?;
    Ok(count)
}
