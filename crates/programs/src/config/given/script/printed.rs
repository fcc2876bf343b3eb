//! What commands print: `echo`, `printf`, and `cat` of the lines behind it.

use super::commands::Command;
use super::words::Word;

/// The lines that a command prints.
pub(super) fn printed(
    program: &str,
    arguments: &[Word],
    command: &Command,
    piped: Vec<(usize, Word)>,
) -> Vec<(usize, Word)> {
    let is_option = |word: &&Word| matches!(&*word.text, "-n" | "-e" | "-en" | "-ne" | "-E" | "--");
    let options = arguments.iter().take_while(is_option).count();
    let arguments = &arguments[options..];
    let all = match (program, arguments) {
        ("cat", files) if files.iter().all(|word| word.text == "-") => {
            return piped.into_iter().chain(of_text(command)).collect();
        }
        ("cat", _) => return Vec::new(),
        ("echo", _) => Word::join(arguments, " "),
        (_, [format, value]) if matches!(&*format.text, "%s" | "%s\\n" | "%d" | "%d\\n") => value.clone(),
        (_, [only]) if !only.text.contains('%') => only.clone(),
        _ => {
            let all = Word::join(arguments, " ");
            let open = format!("{} ", all.text);
            Word { open, ..all }
        }
    };
    let text = all.text.replace("\\n", "\n");
    let line = |text: &str| {
        let (text, open) = (text.to_owned(), all.open.clone());
        (command.line, Word { text, open })
    };
    text.lines().map(line).collect()
}

/// The lines that are written behind a command.
pub(super) fn of_text(command: &Command) -> impl Iterator<Item = (usize, Word)> {
    command.text.iter().map(|(line, text)| {
        let open = Some(text)
            .filter(|text| text.contains('$'))
            .cloned()
            .unwrap_or_default();
        let text = text.clone();
        (*line, Word { text, open })
    })
}
