//! Exceptions to the rule about words: file, word, reason.

pub const ALLOWED: &[(&str, &str, &str)] = &[
    ("xtask/src/tidy/allowed.rs", "*", "lists the exceptions"),
    ("xtask/src/tidy/words.rs", "*", "lists the words"),
    ("xtask/src/postgres.rs", "nobody", "name of a Unix user"),
];
