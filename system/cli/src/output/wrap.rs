//! Text that is longer than a line of the terminal.

use super::table::cut;

const INDENT: &str = "  ";
/// Width of a terminal below which lines are not wrapped but cut.
const WIDTH_MIN: usize = 16;

/// Wraps a text at words to at most this number of lines. A word that is longer than a line is divided, and what does not fit
/// into the last line is cut with an ellipsis.
pub(super) fn wrap(text: &str, width: usize, lines_max: usize) -> String {
    if width < WIDTH_MIN {
        return cut(text.trim_end(), width);
    }
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        let indent = if lines.is_empty() { "" } else { INDENT };
        let space = width - indent.len();
        if lines.len() + 1 >= lines_max {
            lines.push(format!("{indent}{}", cut(rest, space)));
            break;
        }
        let (line, remaining) = split_line(rest, space);
        lines.push(format!("{indent}{line}"));
        rest = remaining;
    }
    lines.join("\n")
}

/// Splits after the last word that fits.
fn split_line(text: &str, width: usize) -> (&str, &str) {
    let Some((end, _)) = text.char_indices().nth(width) else { return (text, "") };
    // A space at the limit ends the last word that fits.
    let limit = text[end..].chars().next().map_or(end, |next| end + next.len_utf8());
    match text[..limit].rfind(' ').filter(|space| !text[..*space].trim().is_empty()) {
        Some(space) => (text[..space].trim_end(), text[space..].trim_start()),
        None => text.split_at(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_at_words_with_an_indent_and_the_last_line_is_cut() {
        let text = "web Failed on prod: the admission webhook refused the object";
        assert_eq!(wrap(text, 80, 4), text);
        assert_eq!(wrap(text, 26, 4), "web Failed on prod: the\n  admission webhook\n  refused the object");
        assert_eq!(wrap(text, 26, 2), "web Failed on prod: the\n  admission webhook refus…");
        assert_eq!(wrap("four four four four", 19, 4), "four four four four");
        assert_eq!(wrap("four four four four four", 19, 4), "four four four four\n  four");
        for width in 1..60 {
            let wrapped = wrap(text, width, 4);
            assert!(
                wrapped.lines().count() <= 4 && wrapped.lines().all(|line| line.chars().count() <= width),
                "{wrapped}"
            );
        }
    }

    #[test]
    fn a_long_word_is_divided_between_characters() {
        let word = "ü".repeat(40);
        let wrapped = wrap(&word, 20, 4);
        assert_eq!(wrapped.replace(['\n', ' '], ""), word);
        assert_eq!(wrapped.lines().count(), 3);
    }
}
