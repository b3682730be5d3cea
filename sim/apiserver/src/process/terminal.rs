//! A terminal between a client and a process: it shows what is typed, and passes on whole lines.

/// Longest line in bytes; what is typed beyond is dropped.
const LINE_BYTES_MAX: usize = 4096;

/// Result of typed bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Typed {
    /// Bytes that the terminal shows.
    pub(super) echo: Vec<u8>,
    /// Input of the process.
    pub(super) input: Vec<u8>,
    /// True if the input has ended (Ctrl-D).
    pub(super) has_ended: bool,
    /// True if the process is interrupted (Ctrl-C).
    pub(super) is_interrupted: bool,
}

/// A terminal, with the line that is being typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Terminal {
    line: Vec<u8>,
}

impl Terminal {
    /// Handles typed bytes.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Typed {
        let mut typed = Typed::default();
        for byte in bytes {
            self.receive_byte(*byte, &mut typed);
        }
        typed
    }

    fn receive_byte(&mut self, byte: u8, typed: &mut Typed) {
        match byte {
            b'\r' | b'\n' => {
                typed.echo.extend(b"\r\n");
                typed.input.append(&mut self.line);
                typed.input.push(b'\n');
            }
            0x03 => {
                typed.echo.extend(b"^C\r\n");
                self.line.clear();
                typed.input.clear();
                typed.is_interrupted = true;
            }
            0x04 if self.line.is_empty() => typed.has_ended = true,
            0x04 => typed.input.append(&mut self.line),
            0x08 | 0x7f if self.line.is_empty() => {}
            0x08 | 0x7f => {
                self.line.pop();
                typed.echo.extend(b"\x08 \x08");
            }
            _ if self.line.len() < LINE_BYTES_MAX => {
                typed.echo.push(byte);
                self.line.push(byte);
            }
            _ => {}
        }
    }

    /// Returns output as a terminal receives it: each line starts at the left.
    pub(super) fn show(output: &[u8]) -> Vec<u8> {
        output
            .iter()
            .flat_map(|byte| if *byte == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(byte) })
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_before_the_process_reads_it() {
        let mut terminal = Terminal::default();
        let typed = terminal.receive(b"helx\x7flo");
        assert_eq!((typed.echo.as_slice(), typed.input.as_slice()), (&b"helx\x08 \x08lo"[..], &b""[..]));
        let typed = terminal.receive(b"\r");
        assert_eq!((typed.echo.as_slice(), typed.input.as_slice()), (&b"\r\n"[..], &b"hello\n"[..]));
        assert!(terminal.receive(b"\x04").has_ended);
        assert!(terminal.receive(b"abc\x03").is_interrupted);
        assert_eq!(terminal.receive(b"\n").input, b"\n", "the interrupted line is gone");
        assert_eq!(Terminal::show(b"a\nb"), b"a\r\nb");
    }
}
