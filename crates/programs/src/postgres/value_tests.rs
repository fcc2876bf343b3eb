//! The scanner's corners; whole lines are held against the server in `tests/against/postgres.rs`.

use super::line;

#[test]
fn quotes_escapes_and_comments() {
    let read = |text: &str| line(text).map(|(name, value)| format!("{name}={value}"));
    for (text, expected) in [
        (r"a 'it''s'", Ok("a=it's")),
        (r"a = '\x\101\n#' # c", Ok("a=xA\n#")),
        ("a = 'no end", Err(())),
        ("a", Err(())),
        ("= 5", Err(())),
        ("ext.name = off", Ok("ext.name=off")),
        ("a.b.c = 1", Err(())),
        ("1a = 1", Err(())),
        ("a = +5kB#c", Ok("a=+5kB")),
        ("a = -.5e-3", Ok("a=-.5e-3")),
        ("a = /var/lib", Err(())),
        ("a = C:/x-1", Ok("a=C:/x-1")),
        ("a =", Err(())),
    ] {
        assert_eq!(read(text), expected.map(str::to_owned), "{text}");
    }
}
