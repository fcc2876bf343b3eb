//! Texts that metrics are looked for in, beside a program's own output. None of them is waited for without end.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use host::Input;
use model::Bytes;

use super::live::{Arm, command};

/// What does not answer for this long will not: a server, and a command that asks one.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most that is read of an answer.
const MOST: Bytes = Bytes::mib(16);

/// A file's text. A pipe or a device is no file of results: reading it may have no end.
pub(crate) fn of_file(path: &str) -> Result<String, String> {
    let is_file = std::fs::metadata(path).map(|about| about.is_file());
    if !is_file.map_err(|error| format!("{path}: {error}"))? {
        return Err(format!("{path}: it is not a regular file"));
    }
    let bytes = Input::Metrics.read(path.as_ref());
    let bytes = bytes.map_err(|error| format!("{path}: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a command of the shell prints, within [`TIMEOUT`]; then its process group is ended.
pub(crate) fn of_command(line: &str, stop: &dyn Fn() -> bool) -> Result<String, String> {
    of_command_within(line, TIMEOUT, stop)
}

fn of_command_within(line: &str, time: Duration, stop: &dyn Fn() -> bool) -> Result<String, String> {
    let done = command(&Arm::default(), line, time, stop);
    let done = done.map_err(|error| format!("from=cmd: `{line}`: {error}"))?;
    let Some(done) = done else {
        return Err(format!(
            "from=cmd: `{line}` was still running after {} s (its process group is ended)",
            time.as_secs_f64()
        ));
    };
    if done.status.success() {
        return Ok(done.output);
    }
    Err(format!(
        "`{line}` ended with {}, {}",
        done.status,
        super::metric::excerpt(&done.errors)
    ))
}

/// What a server answers to a GET, by HTTP 1.0, which has neither chunks nor connections that stay open.
pub(crate) fn of_url(url: &str) -> Result<String, String> {
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
    let until = Instant::now() + TIMEOUT;
    let mut stream = TcpStream::connect_timeout(&place, TIMEOUT)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    let mut piece = [0; 1 << 16];
    // One that answers a byte at a time is no answer either.
    loop {
        if answer.len() as u64 > MOST.0 {
            return Err(std::io::Error::other(format!("its answer is larger than {MOST}")));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{of_command, of_command_within, of_file, of_url};
    use std::io::{Read, Write};
    use std::time::Duration;

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
            of_command("echo why >&2; exit 3", &|| false)
                .expect_err("fails")
                .contains("exit status: 3, what ends with `why`")
        );
        assert!(
            of_file("/nonexistent/x")
                .expect_err("nowhere")
                .contains("/nonexistent/x")
        );
    }

    #[test]
    fn what_never_answers_ends_with_all_that_it_started_and_is_named() {
        // The sleep is a child of the shell, in its group.
        let mark = format!("3600.{}", std::process::id());
        let line = format!(": hangs; sleep {mark}; :");
        let error = of_command_within(&line, Duration::from_millis(100), &|| false).expect_err("it hangs");
        assert!(
            error.contains("from=cmd") && error.contains("still running after 0.1 s"),
            "{error}"
        );
        let left = || {
            let all = std::fs::read_dir("/proc").expect("/proc").flatten();
            let arguments = all.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
            arguments
                .filter(|arguments| String::from_utf8_lossy(arguments).contains(&mark))
                .count()
        };
        // The sleep is no child of this process: it ends when the kernel next runs it.
        let began = std::time::Instant::now();
        while left() > 0 && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(left(), 0);
        assert!(of_command("sleep 3600", &|| true).is_err(), "the user has had enough");
    }

    #[test]
    fn an_answer_without_end_is_given_up_and_of_an_output_without_end_the_last_part_is_searched() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a question");
            let mut sent = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
            while sent.is_ok() {
                sent = stream.write_all(&[b'x'; 1 << 16]);
            }
        });
        let why = of_url(&format!("http://127.0.0.1:{port}/")).expect_err("endless");
        assert!(why.ends_with("its answer is larger than 16M"), "{why}");
        server.join().expect("ended");
        let long = of_command("echo first 1; head -c 40000000 /dev/zero; echo last 2", &|| false).expect("an output");
        let find =
            |name: &str| super::super::metric::find(&format!("{name} ([0-9])").parse().expect("a pattern"), &long);
        assert_eq!(find("last"), Ok(2.0));
        let why = find("first").expect_err("not kept");
        assert!(why.ends_with("(of an output only the last 1M is searched)"), "{why}");
    }

    #[test]
    fn only_regular_files_are_read() {
        let pipe = std::env::temp_dir().join(format!("hugewise-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|made| made.success()), "mkfifo");
        let error = of_file(&pipe.display().to_string()).expect_err("a pipe");
        std::fs::remove_file(&pipe).expect("removed");
        assert!(error.contains("not a regular file"), "{error}");
        assert!(
            of_file("/dev/zero")
                .expect_err("endless")
                .contains("not a regular file")
        );
    }
}
