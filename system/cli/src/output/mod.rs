//! Standard output of the commands: one object or a list, in the format that `--output` selects.
//!
//! An object says with [`Resource`] how it is shown; commands choose between a list, one object and the report of a change.

mod age;
mod cell;
mod resource;
mod table;
mod terminal;
mod wrap;
mod write;

use clap::ValueEnum;
use jiff::Timestamp;
use serde::Serialize;
use sindri_model::text::to_printable_lines;

use crate::failure::Failure;

pub(crate) use age::format_age;
pub(crate) use cell::{Cell, Style};
pub(crate) use resource::{Column, Resource, full_name};
pub(crate) use terminal::Terminal;
pub(crate) use write::{note, print, print_or_fail};

/// Format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns that fit the terminal, and sentences about changes.
    #[default]
    Table,
    /// All columns, not cut.
    Wide,
    /// JSON, with exact times.
    Json,
    /// YAML, with exact times.
    Yaml,
    /// One line `kind/name` for each object.
    Name,
}

impl Format {
    /// Returns true if people read the output, and programs do not parse it.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// Standard output of one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub format: Format,
    pub terminal: Terminal,
    /// Terminal behind standard error, at which progress is shown.
    pub error_terminal: Terminal,
    /// Time from which ages are computed.
    pub now: Timestamp,
}

impl Output {
    /// Prints a list: a table, or an array of documents. For people an empty one is a sentence on standard error.
    pub(crate) fn print_list<T: Resource>(&self, items: &[T]) -> Result<(), Failure> {
        if items.is_empty() && self.format.is_for_people() {
            note(T::NONE);
            return Ok(());
        }
        let names = || items.iter().map(full_name).collect();
        self.print_document(&items, names, || table::format_table(&self.columns(), items, self.layout()))
    }

    /// Prints one object: a line for each column, or a document.
    pub(crate) fn print_object<T: Resource>(&self, item: &T) -> Result<(), Failure> {
        let names = || vec![full_name(item)];
        self.print_document(item, names, || table::format_object(&T::columns(), item, self.layout()))
    }

    /// Prints the result of a change: a sentence, or the changed object.
    pub(crate) fn print_change<T: Resource>(&self, item: &T, sentence: &str) -> Result<(), Failure> {
        self.print_document(item, || vec![full_name(item)], || format!("{}\n", to_printable_lines(sentence)))
    }

    /// Prints a document, its names, or the text for people.
    pub(crate) fn print_document(
        &self,
        document: &impl Serialize,
        names: impl FnOnce() -> Vec<String>,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        print(&self.format_document(document, names, text)?)
    }

    /// Formats a document, its names, or the text for people.
    pub(crate) fn format_document(
        &self,
        document: &impl Serialize,
        names: impl FnOnce() -> Vec<String>,
        text: impl FnOnce() -> String,
    ) -> Result<String, Failure> {
        let to_failure = |error: String| Failure::Operation(format!("the output cannot be formatted: {error}"));
        match self.format {
            Format::Table | Format::Wide => Ok(text()),
            Format::Name => Ok(names().iter().map(|name| format!("{name}\n")).collect()),
            Format::Json => serde_json::to_string_pretty(document)
                .map(|text| format!("{text}\n"))
                .map_err(|error| to_failure(error.to_string())),
            Format::Yaml => serde_yaml::to_string(document).map_err(|error| to_failure(error.to_string())),
        }
    }

    /// Formats a table of objects for people, for commands that print more than one.
    pub(crate) fn format_table<T: Resource>(&self, items: &[T]) -> String {
        table::format_table(&self.columns(), items, self.layout())
    }

    /// Formats a table whose columns are known only when it is printed.
    pub(crate) fn format_grid(&self, header: &[String], rows: &[Vec<Cell>]) -> String {
        table::format_grid(header, rows, self.layout())
    }

    /// Cuts a line where the terminal ends.
    pub(crate) fn cut_line(&self, line: &str) -> String {
        self.layout().width.map_or_else(|| line.trim_end().to_owned(), |width| table::cut(line, width))
    }

    /// Wraps a line at words where the terminal ends, with an indent, to at most this number of lines. The last one is cut.
    pub(crate) fn wrap_line(&self, line: &str, lines_max: usize) -> String {
        self.layout().width.map_or_else(|| line.trim_end().to_owned(), |width| wrap::wrap(line, width, lines_max))
    }

    /// Returns true if such a table fits the terminal.
    pub(crate) fn fits(&self, header: &[String], rows: &[Vec<Cell>]) -> bool {
        table::fits(header, rows, self.layout())
    }

    fn columns<T: Resource>(&self) -> Vec<Column<T>> {
        let is_shown = |column: &Column<T>| !column.is_wide || self.format == Format::Wide;
        T::columns().into_iter().filter(is_shown).collect()
    }

    fn layout(&self) -> table::Layout {
        let width = self.terminal.width.filter(|_| self.format == Format::Table);
        table::Layout { width, has_colors: self.terminal.has_colors, now: self.now }
    }
}
