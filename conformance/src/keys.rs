//! Finds access keys in the output of processes, and hides them. Only complete keys, as the broker prints them at their
//! creation; each process keeps its other secrets out of its output itself.

/// Prefix of every access key.
const KEY_START: &str = "brokkr_";

/// Returns the first key in a text.
pub fn find_key(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| word.starts_with(KEY_START))
}

/// Replaces the secret part of every key in a line.
pub fn hide_keys(line: &str) -> String {
    let is_key_character = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut parts = line.split(KEY_START);
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |shown, part| format!("{shown}{KEY_START}…{}", part.trim_start_matches(is_key_character)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden() {
        let line = "generator default (7), key, shown only once: brokkr_BRabc_secret";
        assert_eq!(hide_keys(line), "generator default (7), key, shown only once: brokkr_…");
        assert_eq!(find_key(line), Some("brokkr_BRabc_secret"));
        assert_eq!(hide_keys("pak=\"brokkr_BR1_x\", brokkr_BR2_y."), "pak=\"brokkr_…\", brokkr_….");
        assert_eq!(hide_keys("no key"), "no key");
    }
}
