//! Inputs that the fuzzer found, and that once failed.

#[path = "../../fuzz/input.rs"]
pub mod input;

#[test]
fn inputs_that_once_failed_are_handled() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/regressions");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        input::check(&std::fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{folder} has no file");
}
