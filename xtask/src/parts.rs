//! The parts of `cargo xtask test`, in their order.

use crate::counts::Counts;
use crate::postgres::Postgres;
use crate::process::{REAL_BINARIES, Run, build, root};
use crate::{charts, clients, crates, dependencies, documents, fuzz, login, mutants, report, tidy};

/// One part of the test command.
pub struct Part {
    pub name: &'static str,
    /// A few words for `--list`.
    pub about: &'static str,
    /// True for parts that only `--all` runs.
    pub is_nightly: bool,
    /// Binaries and tests that have to be built before.
    pub needs: Needs,
    /// Its order, relative to the others.
    pub order: Order,
    /// Runs it; the argument is true for the nightly command.
    pub run: fn(bool) -> Result<Counts, String>,
}

/// Order of a part, relative to the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Before the others, alone.
    First,
    /// It uses all cores: one at a time.
    Computes,
    /// It waits most of the time for timeouts and other processes: beside the parts that compute.
    Waits,
}

/// Part of the build that a part needs.
pub enum Needs {
    /// Nothing that the build makes.
    Nothing,
    /// These binaries.
    Binaries(&'static [&'static str]),
    /// All binaries and tests.
    Everything,
}

/// The part without which the others cannot run.
pub const BUILD: &str = "build";

pub const PARTS: &[Part] = &[
    Part {
        name: "format",
        about: "rustfmt",
        is_nightly: false,
        needs: Needs::Nothing,
        order: Order::First,
        run: |_| check(Run::cargo().args(["fmt", "--all", "--check"])),
    },
    Part {
        name: "tidy",
        about: "plain words, no import cycles",
        is_nightly: false,
        needs: Needs::Nothing,
        order: Order::First,
        run: |_| tidy::check().map(Counts::from_success),
    },
    Part {
        name: BUILD,
        about: "binaries and test binaries",
        is_nightly: false,
        needs: Needs::Nothing,
        order: Order::First,
        run: |_| build_everything().map(|()| Counts::from_success(true)),
    },
    Part {
        name: "lints",
        about: "clippy",
        is_nightly: false,
        needs: Needs::Everything,
        order: Order::First,
        run: |_| lints(),
    },
    Part {
        name: "tests",
        about: "unit and integration tests",
        is_nightly: false,
        needs: Needs::Everything,
        order: Order::Computes,
        run: |_| tests(),
    },
    Part {
        name: "control plane",
        about: "recordings, sequences and scenarios on a real Kubernetes",
        is_nightly: false,
        needs: Needs::Everything,
        order: Order::Waits,
        run: control_plane,
    },
    Part {
        name: "generated clients",
        about: "the OpenAPI document: linter, clients for TypeScript and Python against a broker",
        is_nightly: false,
        needs: Needs::Binaries(&["sindri-broker"]),
        order: Order::Waits,
        run: |_| clients::test(),
    },
    Part {
        name: "login",
        about: "people log in at an OpenID Connect provider",
        is_nightly: false,
        needs: Needs::Binaries(&["sindri-broker", "sindri"]),
        order: Order::Waits,
        run: |_| login::test(),
    },
    Part {
        name: "charts",
        about: "the charts render what deploy/ contains, and every value has an effect",
        is_nightly: false,
        needs: Needs::Nothing,
        order: Order::Waits,
        run: |_| charts::test(),
    },
    Part {
        name: "crates",
        about: "the crates that others can depend on can be packaged, and fuzz targets be built",
        is_nightly: false,
        needs: Needs::Nothing,
        order: Order::Waits,
        run: |_| crates::test(),
    },
    Part {
        name: "dependencies",
        about: "licences and sources of all dependencies",
        is_nightly: true,
        needs: Needs::Nothing,
        order: Order::Waits,
        run: |_| dependencies::test(),
    },
    Part {
        name: "installation",
        about: "the charts on a real Kubernetes, with helm and the programs of their pods",
        is_nightly: false,
        needs: Needs::Everything,
        order: Order::Waits,
        run: |_| installation(),
    },
    Part {
        name: "doc tests",
        about: "examples in doc comments",
        is_nightly: false,
        needs: Needs::Everything,
        order: Order::Computes,
        run: |_| cargo_test(&["--workspace", "--doc"]),
    },
    Part {
        name: "fidelity",
        about: "the simulated API server against recordings",
        is_nightly: false,
        needs: Needs::Binaries(&["sindri-fidelity"]),
        order: Order::Computes,
        run: |_| check(Run::built("sindri-fidelity").args(["--sequences", "0", "--root"]).arg(root())),
    },
    Part {
        name: "simulation",
        about: "every scenario, then explored with seeds",
        is_nightly: false,
        needs: Needs::Binaries(&["sindri-sim"]),
        order: Order::Computes,
        run: |all| simulation(&[], all),
    },
    Part {
        name: "random worlds",
        about: "worlds that a seed makes",
        is_nightly: false,
        needs: Needs::Binaries(&["sindri-sim"]),
        order: Order::Computes,
        run: random_worlds,
    },
    Part {
        name: "report",
        about: "the page of a failing run in a browser",
        is_nightly: false,
        needs: Needs::Binaries(&["sindri-sim"]),
        order: Order::Waits,
        run: |_| report::test(),
    },
    Part {
        name: "simulation on turmoil",
        about: "every scenario on the second engine, explored with seeds",
        is_nightly: true,
        needs: Needs::Binaries(&["sindri-sim"]),
        order: Order::Computes,
        run: |all| simulation(&["--engine", "turmoil"], all),
    },
    Part {
        name: "determinism",
        about: "scenarios on both engines: the same seed gives the same trace",
        is_nightly: false,
        needs: Needs::Binaries(&["sindri-sim"]),
        order: Order::Computes,
        run: determinism,
    },
    Part {
        name: "documents",
        about: "commands in README.md and docs/",
        is_nightly: false,
        needs: Needs::Everything,
        order: Order::Waits,
        run: |all| documents::run_all(all),
    },
    Part {
        name: "planted bugs",
        about: "each bug of sim/mutants is caught",
        is_nightly: true,
        needs: Needs::Everything,
        order: Order::Computes,
        run: |_| planted_bugs(),
    },
    Part {
        name: "fuzz",
        about: "server-side apply and CEL under a fuzzer",
        is_nightly: true,
        needs: Needs::Nothing,
        order: Order::Computes,
        run: |_| fuzz::run_all(FUZZ_SECONDS).map(Counts::from_success),
    },
];

/// Compiles everything that tests run.
const COMPILE: [&str; 3] = ["test", "--workspace", "--no-run"];
/// Variable in which tests find a PostgreSQL of their own.
const TEST_POSTGRES: &str = "SINDRI_TEST_POSTGRES_URL";
const FUZZ_SECONDS: u32 = 120;

/// The part with this name.
pub fn find(name: &str) -> Result<&'static Part, String> {
    let names = || PARTS.iter().map(|part| part.name).collect::<Vec<_>>().join(", ");
    PARTS.iter().find(|part| part.name == name).ok_or_else(|| format!("there is no part {name:?}; parts: {}", names()))
}

/// Builds the binaries and tests of a part.
pub fn build_for(part: &Part) -> Result<(), String> {
    match part.needs {
        Needs::Nothing => Ok(()),
        Needs::Binaries(binaries) => build(binaries),
        Needs::Everything => build_everything(),
    }
}

/// Builds what the other parts run.
fn build_everything() -> Result<(), String> {
    match Run::cargo().args(COMPILE).code()? {
        0 => {}
        code => return Err(format!("cargo test --no-run failed (exit code {code})")),
    }
    let mut binaries = REAL_BINARIES.to_vec();
    binaries.extend(["sindri-cluster", "sindri-fidelity", "sindri-record", "sindri-sim"]);
    build(&binaries)
}

/// Fails if a crate has warnings. The compiler of the workspace is clippy (see `.cargo/config.toml`), so that nothing is
/// compiled a second time: cargo repeats the warnings of crates that are up to date.
fn lints() -> Result<Counts, String> {
    let (code, output) = Run::cargo().args(COMPILE).captured()?;
    let has_warnings = output.lines().any(|line| line.starts_with("warning"));
    if code != 0 || has_warnings {
        println!("{output}");
    }
    Ok(Counts::from_success(code == 0 && !has_warnings))
}

fn tests() -> Result<Counts, String> {
    let postgres = Postgres::start()?;
    run_tests(test_command(&["--workspace", "--bins", "--lib", "--tests"]).env(TEST_POSTGRES, postgres.url()))
}

fn simulation(engine: &[&str], all: bool) -> Result<Counts, String> {
    let run = Run::built("sindri-sim").args(["sim", "--root"]).arg(root()).args(engine);
    check(run.args(["--seeds", if all { NIGHTLY_SEEDS } else { SEEDS }]))
}

/// Random worlds of the test command, and of the nightly one.
const WORLDS: &str = "100";
const NIGHTLY_WORLDS: &str = "5000";
/// Memory that they may need: a run gives back what it took.
const WORLDS_MEGABYTES: &str = "300";
const NIGHTLY_WORLDS_MEGABYTES: &str = "1000";

fn random_worlds(all: bool) -> Result<Counts, String> {
    let count = if all { NIGHTLY_WORLDS } else { WORLDS };
    let memory = if all { NIGHTLY_WORLDS_MEGABYTES } else { WORLDS_MEGABYTES };
    check(Run::built("sindri-sim").args(["sim", "--worlds", count, "--memory-max", memory]))
}

/// Scenarios whose traces are compared on each engine: seeds per scenario, and the share of the scenarios.
const TRACES: [[&str; 2]; 2] = [["2", "1/2"], ["1", "1/4"]];
/// The same of the nightly command.
const NIGHTLY_TRACES: [[&str; 2]; 2] = [["4", "1/1"]; 2];

fn determinism(all: bool) -> Result<Counts, String> {
    let compare = |engine, [seeds, share]: [&str; 2]| {
        let run = Run::built("sindri-sim").args(["sim", "--determinism", "--root"]).arg(root());
        check(run.args(["--engine", engine, "--seeds", seeds, "--shard", share]))
    };
    let [fast, turmoil] = if all { NIGHTLY_TRACES } else { TRACES };
    Ok(compare("fast", fast)?.and(&compare("turmoil", turmoil)?))
}

/// Seeds per scenario, of which the first is the scenario as it is written.
const SEEDS: &str = "3";
const NIGHTLY_SEEDS: &str = "100";

/// Minutes of random worlds for each planted bug.
const PLANTED_BUG_MINUTES: u32 = 5;

fn planted_bugs() -> Result<Counts, String> {
    let all = mutants::Selection { names: Vec::new(), minutes: PLANTED_BUG_MINUTES };
    mutants::catch_all(&all).map(Counts::from_success)
}

/// Exit code of `sindri-cluster` where something that it needs is missing; it has printed what.
const EXIT_NOT_RUN: u8 = 3;
/// Generated request sequences that both API servers get.
const SEQUENCES: &str = "30";
const NIGHTLY_SEQUENCES: &str = "300";

/// Scenarios that run at the same time on control planes of their own: most of their time they wait.
const SCENARIOS_AT_ONCE: &str = "3";

/// Builds the control plane. The inner error is the reason why that is not possible here.
fn build_control_plane() -> Result<Result<(), &'static str>, String> {
    match Run::built("sindri-cluster").arg("build").code()? {
        0 => Ok(Ok(())),
        EXIT_NOT_RUN => Ok(Err("it needs Go 1.26 to be built")),
        code => Err(format!("the control plane could not be built (exit code {code})")),
    }
}

/// Variable in which a test finds helm.
const TEST_HELM: &str = "SINDRI_TEST_HELM";
/// Succeeds if processes may have mounts of their own, which the pods of the test need.
const MOUNTS: &str =
    r#"if [ "$(id -u)" = 0 ]; then unshare --mount true; else unshare --user --map-root-user --mount true; fi"#;

/// Installs the charts on a real control plane.
fn installation() -> Result<Counts, String> {
    let skipped = |reason: &str| Ok(Counts::skipped(format!("installation ({reason})")));
    if !Run::program("sh").args(["-c", MOUNTS]).captured().is_ok_and(|(code, _)| code == 0) {
        return skipped("processes may not have mounts of their own here");
    }
    let helm = match charts::prepare_helm()? {
        Ok(helm) => helm,
        Err(reason) => return skipped(reason),
    };
    if let Err(reason) = build_control_plane()? {
        return skipped(reason);
    }
    let tests = ["--workspace", "--test", "installation", "--", "--include-ignored", "--nocapture"];
    run_tests(test_command(&tests).env(TEST_HELM, helm))
}

/// Builds the control plane, then tests with it.
fn control_plane(all: bool) -> Result<Counts, String> {
    if let Err(reason) = build_control_plane()? {
        return Ok(Counts::skipped(format!("control plane ({reason})")));
    }
    // Two at a time: each has a control plane. Tests that cannot run here print why.
    let tests = ["--workspace", "--test", "control_plane", "--test", "recorded", "--"];
    let how = ["--include-ignored", "--nocapture", "--test-threads=2"];
    let counts = cargo_test(&[tests.as_slice(), &how].concat())?;
    // Generated sequences, to the simulated server and to a real one.
    let sequences = ["--sequences", if all { NIGHTLY_SEQUENCES } else { SEQUENCES }, "--root"];
    let generated = check(Run::built("sindri-fidelity").args(sequences).arg(root()))?;
    // The scenarios with the real broker and agent, each on a control plane of its own.
    let scenarios = ["run", "--cluster", "local", "--jobs", SCENARIOS_AT_ONCE, "--root"];
    let scenarios = check(Run::built("sindri-conformance").args(scenarios).arg(root()))?;
    Ok(counts.and(&generated).and(&scenarios))
}

/// One check: it passes if the program succeeds.
fn check(run: Run) -> Result<Counts, String> {
    run.code().map(|code| Counts::from_success(code == 0))
}

fn test_command(which: &[&str]) -> Run {
    Run::cargo().args(["test", "--quiet", "--no-fail-fast"]).args(which)
}

fn cargo_test(which: &[&str]) -> Result<Counts, String> {
    run_tests(test_command(which))
}

/// Runs tests and adds up the results that the test binaries print.
fn run_tests(tests: Run) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let code = tests.watched(|line| counts.add_test_result(line))?;
    if code != 0 && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}
