//! `cargo xtask fuzz`: server-side apply under input that finds its own way.
//!
//! The whole target is built with the compiler's counters, which the stable compiler has as well as the nightly one.

use crate::process::{Run, root, target};
use crate::tools;

const PROJECT: &str = "sim/merge/fuzz";
/// Where each input led, and what it was compared with.
const COUNTERS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];
const INPUT_BYTES_MAX: &str = "-max_len=512";
const ANSWER_SECONDS_MAX: &str = "-timeout=10";

/// Builds the target and lets it run for so long. What was found is kept below `target/fuzz`, and so is what leads there.
pub fn run(seconds: u32) -> Result<u8, String> {
    tools::require_compiler()?;
    tools::require_cpp_compiler()?;
    let directory = target().join("fuzz");
    // A named triple keeps the counters out of build scripts.
    let triple = tools::host_triple()?;
    let build = Run::cargo().directory(root().join(PROJECT)).env("RUSTFLAGS", COUNTERS.join(" "));
    let build = build.args(["build", "--quiet", "--release", "--locked", "--target", &triple, "--target-dir"]);
    match build.arg(&directory).code()? {
        0 => {}
        code => return Err(format!("the fuzz target could not be built (exit code {code})")),
    }
    let corpus = directory.join("corpus");
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    println!("fuzzing server-side apply for {seconds} s");
    let fuzzer = Run::program(directory.join(triple).join("release/apply"));
    let fuzzer = fuzzer.args([INPUT_BYTES_MAX, ANSWER_SECONDS_MAX, "-verbosity=0", "-print_final_stats=1"]);
    let fuzzer = fuzzer.arg(format!("-artifact_prefix={}/", directory.display()));
    let (code, told) = fuzzer.arg(format!("-max_total_time={seconds}")).arg(&corpus).captured()?;
    // Of a run that found nothing only how much it tried is of interest.
    let is_shown = |line: &&str| code != 0 || line.starts_with("stat::");
    told.lines().filter(is_shown).for_each(|line| println!("{line}"));
    Ok(code)
}
