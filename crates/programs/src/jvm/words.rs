//! The words of a JVM's command line, of its variables and of files of options: those that are its own, in its order.

use host::Source;

use crate::Program;

/// Variables of options in the order in which they are read: the last one behind the command line, the others before it.
pub(crate) const READ_BY_JAVA: [&str; 5] = [
    "JAVA_TOOL_OPTIONS",
    "IBM_JAVA_OPTIONS",
    "OPENJ9_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
];

/// All options in the JVM's order; those of variables and files have their place.
pub(super) fn all_options(source: &Source, program: &Program, arguments: &[String]) -> Vec<(String, Option<String>)> {
    let variables = program.tunables.known();
    let variable = |name: &'static str| {
        let value = variables.and_then(|all| all.get(name)).map_or("", String::as_str);
        let place = format!("{name} in {}", program.file("environ"));
        let words = words_of(value).into_iter();
        words.map(move |option| (option, Some(place.clone())))
    };
    let [before @ .., after] = READ_BY_JAVA;
    let mut is_own = is_own();
    let own = with_files(source, program, arguments).into_iter().skip(1);
    let own = own.take_while(|(word, _)| is_own(word.as_str()));
    before
        .into_iter()
        .flat_map(variable)
        .chain(own)
        .chain(variable(after))
        .collect()
}

/// The options in a text, split at white space outside of quotes.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    shlex::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
}

/// The arguments that are the machine's own; those of the application follow them.
pub(crate) fn options(arguments: &[String]) -> impl Iterator<Item = &String> {
    let mut is_own = is_own();
    arguments.iter().skip(1).take_while(move |word| is_own(word.as_str()))
}

/// Is the next word of a command line the machine's own, an option or the value of one? The main class is none, nor the file behind `-jar`.
pub(crate) fn is_own() -> impl FnMut(&str) -> bool {
    let mut before = String::new();
    move |word: &str| {
        // A variable that is not known stands for options.
        let is_option = word.starts_with(['-', '@', '$']) && !before.starts_with("--module=");
        let is_own = is_option || WITH_VALUE.contains(&before.as_str());
        word.clone_into(&mut before);
        is_own
    }
}

/// Options of the launcher whose value may be the next word (java.c, IsWhiteSpaceOption()), without those that name the program.
const WITH_VALUE: [&str; 14] = [
    "--add-exports",
    "--add-modules",
    "--add-opens",
    "--add-reads",
    "--class-path",
    "--enable-native-access",
    "--limit-modules",
    "--module-path",
    "--patch-module",
    "--source",
    "--upgrade-module-path",
    "-classpath",
    "-cp",
    "-p",
];

/// Is it a word of a variable with which the machine does not start, as its launcher alone knows it? (`-cp PATH`, `-jar`, `@FILE`; JDK 17 and 25:
/// `Unrecognized option`.)
pub(crate) fn is_of_launcher(word: &str) -> bool {
    let is_option = word.starts_with(['-', '$']);
    !is_option || WITH_VALUE.contains(&word) || matches!(word, "-jar" | "-m" | "--module" | "-client" | "-server")
}

/// The words of an `@argfile`: quotes, `#` comments, and backslashes as the launcher takes them (JDK-8027634).
fn words_of_file(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| match line.find('#') {
        Some(at) if !line[..at].contains(['"', '\'']) => &line[..at],
        _ => line,
    });
    words_of(&lines.collect::<Vec<&str>>().join("\n"))
}

/// The arguments with the files in them read, those of the process's own root and directory; each with its file.
fn with_files(source: &Source, program: &Program, arguments: &[String]) -> Vec<(String, Option<String>)> {
    let directory = source.link(&program.file("cwd")).known().cloned().unwrap_or_default();
    let expand = |argument: &String| {
        let file = argument
            .strip_prefix('@')
            .filter(|file| !file.is_empty() && !file.starts_with('@'));
        let read = file.and_then(|file| {
            let path = host::tree::beside(&directory, file);
            let inside = source.text(&program.file(&format!("root{path}")));
            let outside = || (!source.is_live()).then(|| source.text(&path));
            let text = inside.known().cloned().or_else(|| outside()?.known().cloned())?;
            Some((text, path))
        });
        match read {
            None => vec![(argument.clone(), None)],
            Some((text, path)) => {
                let words = words_of_file(&text).into_iter();
                words.map(|word| (word, Some(path.clone()))).collect()
            }
        }
    };
    arguments.iter().flat_map(expand).collect()
}
