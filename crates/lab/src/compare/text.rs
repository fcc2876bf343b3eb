//! Texts that metrics are looked for in, beside a program's own output.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::time::Duration;

use host::Input;

/// A server that does not answer for this long will not.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most that is read of an answer.
const MOST: u64 = 16 << 20;

/// A file's text.
pub(super) fn of_file(path: &str) -> Result<String, String> {
    let bytes = Input::Metrics.read(path.as_ref());
    let bytes = bytes.map_err(|error| format!("{path}: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a command of the shell prints.
pub(super) fn of_command(line: &str) -> Result<String, String> {
    let mut command = Command::new("/bin/sh");
    let done = command.args(["-c", line]).stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("`{line}`: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() {
        return Ok(text(&done.stdout));
    }
    Err(format!(
        "`{line}` ended with {}, {}",
        done.status,
        super::metric::excerpt(&text(&done.stderr))
    ))
}

/// What a server answers to a GET, by HTTP 1.0, which has neither chunks nor connections that stay open.
pub(super) fn of_url(url: &str) -> Result<String, String> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| format!("{url}: write http://HOST[:PORT]/PATH"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = if host.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let answer = ask(&address, &format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n"));
    let answer = answer.map_err(|error| format!("{url}: {error}"))?;
    body(url, &answer)
}

/// The body of an answer.
pub(crate) fn body(url: &str, answer: &str) -> Result<String, String> {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| format!("{url}: no answer by HTTP"))?;
    match head.split_whitespace().nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(format!("{url}: {}", head.lines().next().unwrap_or_default())),
    }
}

fn ask(address: &str, question: &str) -> std::io::Result<String> {
    let nowhere = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let place = address.to_socket_addrs()?.next().ok_or_else(nowhere)?;
    let mut stream = TcpStream::connect_timeout(&place, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{of_command, of_file, of_url};
    use std::io::{Read, Write};

    #[test]
    fn a_url_gives_the_body_of_its_answer_and_errors_name_the_place() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            for answer in [
                "HTTP/1.0 200 OK\r\nA: b\r\n\r\nrequests 42\n",
                "HTTP/1.0 404 Not Found\r\n\r\n",
            ] {
                let (mut stream, _) = listener.accept().expect("a question");
                let mut question = [0; 512];
                let _ = stream.read(&mut question);
                stream.write_all(answer.as_bytes()).expect("an answer");
            }
        });
        let url = format!("http://127.0.0.1:{port}/metrics");
        assert_eq!(of_url(&url), Ok("requests 42\n".to_owned()));
        assert!(of_url(&url).expect_err("404").contains("404 Not Found"));
        server.join().expect("ended");
        assert!(
            of_command("echo why >&2; exit 3")
                .expect_err("fails")
                .contains("exit status: 3, what ends with `why`")
        );
        assert!(
            of_file("/nonexistent/x")
                .expect_err("nowhere")
                .contains("/nonexistent/x")
        );
    }
}
