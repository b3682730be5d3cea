//! `cargo xtask fuzz`: server-side apply or CEL under a coverage-guided fuzzer.
//!
//! The fuzz target is built with coverage counters, which are a pass of LLVM and work with the stable compiler too.

use clap::ValueEnum;

use crate::process::{Run, root, target};
use crate::tools;

/// Counters for the branches that an input takes and for the values that it is compared with.
const COUNTERS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];
const INPUT_BYTES_MAX: &str = "-max_len=512";
const INPUT_SECONDS_MAX: &str = "-timeout=10";

/// Code that is fuzzed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Subject {
    /// Server-side apply.
    Apply,
    /// CEL: parser, checker, evaluation, patterns, times and quantities.
    Cel,
}

impl Subject {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Apply, Self::Cel];

    /// Returns the name of the fuzz target.
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Cel => "cel",
        }
    }

    /// Returns the folder of the fuzz target.
    fn project(self) -> &'static str {
        match self {
            Self::Apply => "sim/merge/fuzz",
            Self::Cel => "system/cel/fuzz",
        }
    }
}

/// Fuzzes everything, each for this time; returns true if nothing was found.
pub fn run_all(seconds: u32) -> Result<bool, String> {
    let codes: Vec<u8> = Subject::ALL.into_iter().map(|subject| run(subject, seconds)).collect::<Result<_, _>>()?;
    Ok(codes.iter().all(|code| *code == 0))
}

/// Fails if the lock file of a fuzz target is not that of its crates, for example after one of them got a dependency.
pub fn check_lock_files() -> Result<(), String> {
    Subject::ALL.into_iter().try_for_each(|subject| {
        let metadata = Run::cargo().directory(root().join(subject.project()));
        let (code, output) = metadata.args(["metadata", "--locked", "--format-version", "1"]).captured()?;
        let project = subject.project();
        if code == 0 {
            Ok(())
        } else {
            Err(format!("{project}/Cargo.lock: {}", output.lines().last().unwrap_or_default()))
        }
    })
}

/// Builds a fuzz target and runs it. Inputs that crash it and the corpus are kept below `target/fuzz`.
pub fn run(subject: Subject, seconds: u32) -> Result<u8, String> {
    tools::require_compiler()?;
    tools::require_cpp_compiler()?;
    let directory = target().join("fuzz");
    // A named triple keeps the counters out of build scripts.
    let triple = tools::host_triple()?;
    let build = Run::cargo().directory(root().join(subject.project())).env("RUSTFLAGS", COUNTERS.join(" "));
    let build = build.args(["build", "--release", "--locked", "--target", &triple, "--target-dir"]);
    match build.arg(&directory).code()? {
        0 => {}
        code => return Err(format!("the fuzz target could not be built (exit code {code})")),
    }
    let corpus = directory.join("corpus").join(subject.name());
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    println!("fuzzing {} for {seconds} s", subject.name());
    let fuzzer = Run::program(directory.join(triple).join("release").join(subject.name()));
    let fuzzer = fuzzer.args([INPUT_BYTES_MAX, INPUT_SECONDS_MAX, "-verbosity=0", "-print_final_stats=1"]);
    let fuzzer = fuzzer.arg(format!("-artifact_prefix={}/{}-", directory.display(), subject.name()));
    let (code, output) = fuzzer.arg(format!("-max_total_time={seconds}")).arg(&corpus).captured()?;
    // A run without a crash prints only its statistics.
    let is_printed = |line: &&str| code != 0 || line.starts_with("stat::");
    output.lines().filter(is_printed).for_each(|line| println!("{line}"));
    Ok(code)
}
