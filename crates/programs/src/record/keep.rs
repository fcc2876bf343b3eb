//! What of a file is kept, and what was left out of it.

use super::secrets;

/// A part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The bytes that the capture gets.
    pub(super) bytes: Vec<u8>,
    /// What it does not get, in words for the list; empty if that is the whole file.
    pub(super) left_out: Vec<String>,
    /// Nothing in it is worth a place in the capture, not even that it is there.
    pub(super) is_idle: bool,
}

impl Kept {
    pub(super) fn whole(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            ..Self::default()
        }
    }

    pub(super) fn idle() -> Self {
        Self {
            is_idle: true,
            ..Self::default()
        }
    }

    /// A part, and what was left out, how often.
    pub(super) fn part(bytes: Vec<u8>, left_out: usize, of_what: &str) -> Self {
        let left_out = (left_out > 0).then(|| format!("{of_what} ({left_out})"));
        Self {
            bytes,
            left_out: left_out.into_iter().collect(),
            is_idle: false,
        }
    }

    /// Lines for which `keeps` holds, without secrets. The others are blank, so that numbers of lines stay true; blank
    /// lines at the end go, and so does a file without any such line.
    pub(super) fn lines(bytes: &[u8], keeps: impl Fn(&str) -> bool) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (mut kept, mut blanked, mut redacted) = (String::new(), 0, Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            if keeps(line) {
                let clean = secrets::line(line);
                if clean != line {
                    redacted.push(format!("a secret in line {number}"));
                }
                kept += &clean;
            } else if !line.trim().is_empty() {
                blanked += 1;
            }
            kept.push('\n');
        }
        let mut part = Self::text(kept, blanked, "lines that decide nothing about pages");
        part.left_out.extend(redacted);
        part
    }

    /// A part that is text: blank lines at its end go, and so does one without any other.
    pub(super) fn text(mut text: String, left_out: usize, of_what: &str) -> Self {
        let end = text.trim_end_matches('\n').len();
        if end == 0 {
            return Self::idle();
        }
        text.truncate(end + 1);
        Self::part(text.into_bytes(), left_out, of_what)
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    #[test]
    fn lines_keep_their_numbers_and_lose_their_secrets() {
        let text = b"# a comment\nname = x\n\nhuge = on\nhuge_password = x\nlast = 1\n";
        let kept = Kept::lines(text, |line| line.starts_with("huge"));
        assert_eq!(kept.bytes, b"\n\n\nhuge = on\nhuge_password = <redacted>\n");
        assert_eq!(
            kept.left_out,
            ["lines that decide nothing about pages (3)", "a secret in line 5"]
        );
        assert_eq!(Kept::lines(text, |_| false), Kept::idle());
    }
}
