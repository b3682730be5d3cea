//! `cargo xtask test`: every part with its time, and a line of counts at the end.
//!
//! A part that fails does not stop the others, except where they could not work without it.

use std::time::Instant;

use crate::postgres::Postgres;
use crate::process::{Run, build, root, target};
use crate::{REAL_BINARIES, documents, fuzz, mutants, tools};

/// Passed and failed.
#[derive(Clone, Copy, Default)]
struct Counts {
    passed: u64,
    failed: u64,
}

impl Counts {
    fn of(held: bool) -> Self {
        Self { passed: u64::from(held), failed: u64::from(!held) }
    }
}

/// Where tests find a PostgreSQL of their own.
const TEST_POSTGRES: &str = "SINDRI_TEST_POSTGRES_URL";

/// How a controller's author uses the simulated API server.
const EXAMPLE: &str = "sim/apiserver/examples/greeter";

/// How long the fuzzer has here; `cargo xtask fuzz` takes longer.
const FUZZ_SECONDS: u32 = 20;

type Part = (&'static str, fn() -> Result<Counts, String>);

/// Every part. The second of them builds what the others run.
const PARTS: [Part; 14] = [
    ("format", || succeeds(Run::cargo().args(["fmt", "--all", "--check"]))),
    ("build", || build_everything().map(|()| Counts::of(true))),
    ("lints", || {
        let lint = ["clippy", "--quiet", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"];
        succeeds(Run::cargo().args(lint))
    }),
    ("tests", || {
        let postgres = Postgres::start()?;
        cargo_test(release_tests(&["--workspace", "--bins", "--lib", "--tests"]).env(TEST_POSTGRES, postgres.url()))
    }),
    ("doc tests", || cargo_test(release_tests(&["--workspace", "--doc"]))),
    ("example", || {
        // A project of its own with its own features: what it builds is kept apart.
        let cargo = Run::cargo().directory(root().join(EXAMPLE)).env("CARGO_TARGET_DIR", target().join("example"));
        cargo_test(cargo.args(["test", "--quiet", "--locked", "--no-fail-fast"]))
    }),
    ("fuzz", || fuzz::run(FUZZ_SECONDS).map(|code| Counts::of(code == 0))),
    ("fidelity", || succeeds(Run::built("sindri-fidelity").args(["--sequences", "0", "--root"]).arg(root()))),
    ("control plane", control_plane),
    ("simulation", || succeeds(Run::built("sindri-sim").args(["sim", "--root"]).arg(root()))),
    ("simulation on turmoil", || {
        succeeds(Run::built("sindri-sim").args(["sim", "--engine", "turmoil", "--seeds", "2", "--root"]).arg(root()))
    }),
    ("determinism", || succeeds(Run::built("sindri-sim").args(["sim", "--determinism", "--root"]).arg(root()))),
    ("planted bugs", || mutants::catch_all().map(Counts::of)),
    ("documents", || documents::run_all().map(|(passed, failed)| Counts { passed, failed })),
];

/// Runs every part; the exit code is 0 only if nothing failed.
pub fn test() -> Result<u8, String> {
    tools::require_compiler()?;
    tools::require_kubectl()?;
    let (start, mut total, mut times) = (now(), Counts::default(), Vec::new());
    for (name, part) in PARTS {
        println!("\n=== {name}");
        let began = now();
        let counts = part().unwrap_or_else(|error| {
            println!("{error}");
            Counts::of(false)
        });
        total.passed += counts.passed;
        total.failed += counts.failed;
        times.push((name, (now() - began).as_secs_f64(), counts));
        if name == "build" && counts.failed > 0 {
            break;
        }
    }
    println!("\n{:<24} {:>8}  passed  failed", "part", "seconds");
    for (name, seconds, counts) in times {
        println!("{name:<24} {seconds:>8.1}  {:>6}  {:>6}", counts.passed, counts.failed);
    }
    println!("{:<24} {:>8.1}\n", "all", (now() - start).as_secs_f64());
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(u8::from(total.failed > 0))
}

fn build_everything() -> Result<(), String> {
    let mut binaries = REAL_BINARIES.to_vec();
    binaries.extend(["sindri-cluster", "sindri-fidelity", "sindri-record", "sindri-sim"]);
    build(&binaries)
}

/// What `sindri-cluster` ends with where something that it needs is missing; it has said what.
const EXIT_NOT_RUN: u8 = 3;

/// How many generated sequences both API servers get here; `cargo xtask fidelity` has more.
const GENERATED_SEQUENCES: &str = "100";

/// Builds the control plane, then tests with it. A machine that cannot build it has been told so in one line.
fn control_plane() -> Result<Counts, String> {
    match Run::built("sindri-cluster").arg("build").code()? {
        0 => {
            let which = ["--workspace", "--test", "control_plane", "--test", "recorded"];
            // Two at a time: each has a control plane. What was not run says so in its output.
            let how = ["--", "--include-ignored", "--nocapture", "--test-threads=2"];
            let mut counts = cargo_test(release_tests(&[which.as_slice(), &how].concat()))?;
            // Generated sequences, to the simulated server and to a real one.
            let sequences = ["--sequences", GENERATED_SEQUENCES, "--root"];
            let generated = succeeds(Run::built("sindri-fidelity").args(sequences).arg(root()))?;
            // The stories with the real broker and agent, each on a control plane of its own.
            let stories =
                succeeds(Run::built("sindri-conformance").args(["run", "--cluster", "local", "--root"]).arg(root()))?;
            counts.passed += generated.passed + stories.passed;
            counts.failed += generated.failed + stories.failed;
            Ok(counts)
        }
        EXIT_NOT_RUN => Ok(Counts::default()),
        code => Err(format!("the control plane could not be built (exit code {code})")),
    }
}

fn succeeds(run: Run) -> Result<Counts, String> {
    run.code().map(|code| Counts::of(code == 0))
}

/// The tests of the workspace.
fn release_tests(which: &[&str]) -> Run {
    Run::cargo().args(["test", "--quiet", "--release", "--no-fail-fast"]).args(which)
}

/// Runs tests and adds up what the test binaries say.
fn cargo_test(tests: Run) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let code = tests.watched(|line| {
        if let Some(result) = line.strip_prefix("test result: ") {
            counts.passed += number_before(result, " passed");
            counts.failed += number_before(result, " failed");
        }
    })?;
    if code != 0 && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    before
        .rsplit(|character: char| !character.is_ascii_digit())
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "tells how long each part took")]
fn now() -> Instant {
    Instant::now()
}
