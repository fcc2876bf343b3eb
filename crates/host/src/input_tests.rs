//! What is read of files on the command line, and what is refused before a byte is read.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Input, InputError, stream};

const ALL: [Input; 10] = [
    Input::Result,
    Input::Plan,
    Input::Archive,
    Input::Arms,
    Input::FinishedRuns,
    Input::Goals,
    Input::Configuration,
    Input::Log,
    Input::Metrics,
    Input::Program,
];

fn refused(input: Input, path: &Path) -> String {
    let read = input.read_within(path, Duration::from_millis(200));
    read.expect_err("refused").to_string()
}

fn named_pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
    path
}

#[test]
fn directories_devices_and_sockets_are_refused_by_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    for input in ALL {
        let why = refused(input, folder.path());
        assert!(why.starts_with("it is a directory, expected a regular file"), "{why}");
        for device in ["/dev/zero", "/dev/null", "/dev/tty"] {
            assert!(
                refused(input, device.as_ref()).starts_with("it is a device"),
                "{device}"
            );
        }
        assert!(refused(input, &socket).starts_with("it is a socket"));
        let why = refused(input, &folder.path().join("none"));
        assert!(why.starts_with("the file cannot be read: No such file"), "{why}");
    }
}

#[test]
fn a_file_over_its_limit_is_refused_unread() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sparse");
    let file = File::create(&path).expect("a file");
    for input in ALL {
        for size in [input.most().0 + 1, 1 << 42] {
            file.set_len(size).expect("a sparse file");
            let why = refused(input, &path);
            let limit = format!("it is larger than {}, the limit for {}", input.most(), input.row().0);
            assert!(why.starts_with(&limit), "{why}");
        }
    }
    file.set_len(Input::Arms.most().0).expect("a sparse file");
    assert_eq!(
        Input::Arms.read(&path).expect("at the limit").len() as u64,
        Input::Arms.most().0
    );
}

#[test]
fn a_named_pipe_is_read_to_its_end_and_not_beyond_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = named_pipe(folder.path());
    let write = |bytes: Vec<u8>| {
        let path = path.clone();
        // The writer of too much sees its reader go: an error that is expected.
        std::thread::spawn(move || {
            File::options()
                .write(true)
                .open(path)
                .map(|mut pipe| pipe.write_all(&bytes))
        })
    };
    let writer = write(vec![b'x'; 200_000]);
    assert_eq!(Input::Arms.read(&path).expect("all of it").len(), 200_000);
    writer.join().expect("ended").expect("opened").expect("written");
    let writer = write(vec![0; 8 << 20]);
    assert!(matches!(Input::Arms.read(&path), Err(InputError::TooLarge { .. })));
    writer
        .join()
        .expect("ended")
        .expect("opened")
        .expect_err("its reader is gone");
}

#[test]
fn a_named_pipe_without_a_writer_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = named_pipe(folder.path());
    assert!(refused(Input::Result, &path).starts_with("nothing was written to this named pipe for 0 s"));
    for input in [Input::FinishedRuns, Input::Program] {
        assert_eq!(refused(input, &path), "it is a pipe, expected a regular file");
    }
}

#[test]
fn a_pipe_of_the_shell_is_read_by_its_name_in_dev_fd() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    let writing = std::thread::spawn(move || {
        // Longer than a named pipe may be silent in this test.
        std::thread::sleep(Duration::from_millis(400));
        writer.write_all(b"late").expect("written");
    });
    let read = Input::Result.read_within(path.as_ref(), Duration::from_millis(100));
    assert_eq!(read.expect("read"), b"late");
    writing.join().expect("ended");
}

#[test]
fn text_names_the_line_that_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    std::fs::write(&path, b"one\ntwo\n\xff\n").expect("written");
    let why = Input::Plan.text(&path).expect_err("no text").to_string();
    assert_eq!(why, "line 3 is not UTF-8 text");
    std::fs::write(&path, "one\n").expect("written");
    assert_eq!(Input::Plan.text(&path).expect("text"), "one\n");
}

#[test]
fn a_stream_is_a_file_or_a_pipe_of_any_length_and_no_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long");
    File::create(&path).expect("a file").set_len(1 << 42).expect("sparse");
    assert_eq!(stream(&path).expect("opened").1, Some(1 << 42));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    let writing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        writer.write_all(&[7; 200_000]).expect("written");
    });
    let (mut pipe, length) = stream(name.as_ref()).expect("opened");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut pipe, &mut bytes).expect("read");
    writing.join().expect("ended");
    assert_eq!((bytes.len(), length), (200_000, None));
    let why = stream("/dev/zero".as_ref()).expect_err("refused").to_string();
    assert!(why.starts_with("it is a device"), "{why}");
}
