//! A server behind a port of a pod: it answers HTTP requests with a page, and sends back any other bytes.

/// Largest head of an HTTP request in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Methods by which a request of HTTP is recognized.
const METHODS: [&str; 7] = ["GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ", "OPTIONS "];
/// Beginning of a reply that is a whole HTTP response.
const HTTP: &str = "HTTP/";

/// Answer of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PortAnswer {
    /// HTTP requests get a page with this text; other bytes come back.
    Echo { page: String },
    /// The first bytes get this text, and the connection ends; HTTP requests get it as a page, unless it is a whole response.
    Reply { text: String },
    /// Nothing listens.
    Refused,
}

/// Output of a server after some input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortOutput {
    pub(crate) bytes: Vec<u8>,
    /// True if the server has closed the connection.
    pub(crate) has_ended: bool,
}

/// One connection to a port.
#[derive(Clone, Debug)]
pub(crate) struct PortServer {
    answer: PortAnswer,
    /// Beginning of what may be an HTTP request.
    head: Vec<u8>,
    is_plain: bool,
    has_ended: bool,
}

impl PortServer {
    /// Accepts a connection.
    pub(crate) fn accept(answer: PortAnswer) -> Self {
        Self { answer, head: Vec::new(), is_plain: false, has_ended: false }
    }

    /// Handles bytes of the client.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> PortOutput {
        if self.has_ended {
            return PortOutput::default();
        }
        if self.is_plain {
            return self.answer_plain(bytes.to_vec());
        }
        self.head.extend_from_slice(bytes);
        match find_http(&self.head) {
            None => {
                self.is_plain = true;
                let head = std::mem::take(&mut self.head);
                self.answer_plain(head)
            }
            Some(false) => PortOutput::default(),
            Some(true) => self.answer_http(),
        }
    }

    /// Handles the end of the client's bytes.
    pub(crate) fn end_input(&mut self) -> PortOutput {
        let was_open = !std::mem::replace(&mut self.has_ended, true);
        PortOutput { bytes: Vec::new(), has_ended: was_open }
    }

    fn answer_plain(&mut self, bytes: Vec<u8>) -> PortOutput {
        match &self.answer {
            PortAnswer::Echo { .. } => PortOutput { bytes, has_ended: false },
            PortAnswer::Reply { text } => {
                self.has_ended = true;
                PortOutput { bytes: text.clone().into_bytes(), has_ended: true }
            }
            PortAnswer::Refused => self.end_input(),
        }
    }

    fn answer_http(&mut self) -> PortOutput {
        self.has_ended = true;
        let bytes = match &self.answer {
            PortAnswer::Reply { text } if text.starts_with(HTTP) => text.clone().into_bytes(),
            PortAnswer::Reply { text } | PortAnswer::Echo { page: text } => {
                let body = if self.head.starts_with(b"HEAD ") { "" } else { text };
                let length = text.len();
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}");
                format!("{head}\r\nconnection: close\r\n\r\n{body}").into_bytes()
            }
            PortAnswer::Refused => Vec::new(),
        };
        PortOutput { bytes, has_ended: true }
    }
}

/// Returns true if the bytes have the whole head of an HTTP request, false if they may become one, and none otherwise.
fn find_http(bytes: &[u8]) -> Option<bool> {
    let begins = |method: &&&str| {
        let count = method.len().min(bytes.len());
        bytes[..count] == method.as_bytes()[..count]
    };
    METHODS.iter().find(begins)?;
    let line_end = bytes.iter().position(|byte| *byte == b'\n');
    let is_http = line_end.is_none_or(|end| bytes[..end].windows(HTTP.len()).any(|part| part == HTTP.as_bytes()));
    let is_complete = bytes.windows(4).any(|part| part == b"\r\n\r\n");
    (is_http && bytes.len() <= HEAD_BYTES_MAX).then_some(is_complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(answer: PortAnswer, input: &[&str]) -> (String, bool) {
        let mut server = PortServer::accept(answer);
        let (mut bytes, mut has_ended) = (Vec::new(), false);
        for input in input {
            let output = server.receive(input.as_bytes());
            bytes.extend(output.bytes);
            has_ended |= output.has_ended;
        }
        (String::from_utf8(bytes).expect("a text"), has_ended)
    }

    #[test]
    fn bytes_come_back_and_http_requests_get_a_page() {
        let echo = || PortAnswer::Echo { page: "web-0\n".to_owned() };
        assert_eq!(exchange(echo(), &["PING\r\n", "more"]), ("PING\r\nmore".to_owned(), false));
        assert_eq!(exchange(echo(), &["GET lost\n"]), ("GET lost\n".to_owned(), false));
        let (page, has_ended) = exchange(echo(), &["GE", "T / HTTP/1.1\r\nhost: x\r\n", "\r\n"]);
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nweb-0\n") && has_ended, "{page}");
        let (page, _) = exchange(echo(), &["HEAD / HTTP/1.1\r\n\r\n"]);
        assert!(page.contains("content-length: 6\r\n") && page.ends_with("\r\n\r\n"), "{page}");
    }

    #[test]
    fn a_reply_is_text_a_page_or_a_whole_response() {
        let reply = |text: &str| PortAnswer::Reply { text: text.to_owned() };
        assert_eq!(exchange(reply("+PONG\r\n"), &["PING\r\n"]), ("+PONG\r\n".to_owned(), true));
        assert!(exchange(reply("hello"), &["GET / HTTP/1.1\r\n\r\n"]).0.ends_with("\r\n\r\nhello"));
        let teapot = "HTTP/1.1 418 I'm a teapot\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(exchange(reply(teapot), &["GET / HTTP/1.1\r\n\r\n"]).0, teapot);
    }
}
