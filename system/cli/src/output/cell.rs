//! One cell of a table: a text or a time, with a style.

use jiff::Timestamp;
use sindri_model::text::to_printable;

use super::age::format_age;

/// Emphasis of a text on a terminal with colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// No emphasis.
    #[default]
    Plain,
    /// Green: in order.
    Good,
    /// Yellow: it waits for something, or is incomplete.
    Warning,
    /// Red: it failed.
    Bad,
}

impl Style {
    /// Returns the text with the escape sequences of this style.
    pub(crate) fn paint(self, text: &str, has_colors: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
        };
        if has_colors && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Content of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Text(String),
    Time(Timestamp),
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    content: Content,
    style: Style,
}

impl Cell {
    /// Creates a cell with a text.
    pub(crate) fn text(text: impl ToString) -> Self {
        Self { content: Content::Text(text.to_string()), style: Style::Plain }
    }

    /// Creates a cell with a text, or `-` without one.
    pub(crate) fn optional(text: Option<impl ToString>) -> Self {
        text.map_or_else(|| Self::text("-"), Self::text)
    }

    /// Creates a cell that shows the age of a time.
    pub(crate) fn time(time: Timestamp) -> Self {
        Self { content: Content::Time(time), style: Style::Plain }
    }

    /// Creates a cell that shows the age of a time, or `never`.
    pub(crate) fn last_time(time: Option<Timestamp>) -> Self {
        time.map_or_else(|| Self::text("never"), Self::time)
    }

    /// Returns the same cell with a style.
    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Formats the content as one line.
    pub(super) fn format(&self, now: Timestamp) -> String {
        let text = match &self.content {
            Content::Text(text) => text.clone(),
            Content::Time(time) => format_age(*time, now),
        };
        to_printable(&text)
    }
}
