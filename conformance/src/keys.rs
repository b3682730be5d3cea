//! Access keys in what processes say: found, and never shown. Only whole keys of brokers, as they are written out when they are
//! made; other secrets of a process are its own to keep out of what it says.

/// How every access key begins.
const KEY_START: &str = "brokkr_";

/// The key in a text, if there is one.
pub fn key_in(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| word.starts_with(KEY_START))
}

/// A line as it may be shown, whatever stands around a key.
pub fn hide_keys(line: &str) -> String {
    let is_of_key = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut parts = line.split(KEY_START);
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |shown, part| format!("{shown}{KEY_START}…{}", part.trim_start_matches(is_of_key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_shown() {
        let line = "generator default (7), its key, shown this once: brokkr_BRabc_secret";
        assert_eq!(hide_keys(line), "generator default (7), its key, shown this once: brokkr_…");
        assert_eq!(key_in(line), Some("brokkr_BRabc_secret"));
        assert_eq!(hide_keys("pak=\"brokkr_BR1_x\", brokkr_BR2_y."), "pak=\"brokkr_…\", brokkr_….");
        assert_eq!(hide_keys("no key"), "no key");
    }
}
