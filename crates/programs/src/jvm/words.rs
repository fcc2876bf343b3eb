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

/// A word with the file or variable that it stands in; without one it is on the command line.
type Placed = (String, Option<String>);

/// All options in the JVM's order; those of variables and files have their place.
pub(super) fn all_options(source: &Source, program: &Program, arguments: &[String]) -> Vec<Placed> {
    let files = Files::of(source, program);
    let variables = program.tunables.known();
    let variable = |name: &'static str| {
        let value = variables.and_then(|all| all.get(name)).map_or("", String::as_str);
        let place = format!("{name} in {}", program.file("environ"));
        let words = words_of(value).into_iter();
        let words = words.map(|option| (option, Some(place.clone())));
        match name {
            "JDK_JAVA_OPTIONS" => words.flat_map(|word| files.of_launcher(word)).collect(),
            _ => words.collect::<Vec<Placed>>(),
        }
    };
    let [before @ .., after] = READ_BY_JAVA;
    let mut is_own = is_own();
    let own = arguments.iter().map(|argument| (argument.clone(), None));
    let own = own.flat_map(|word| files.of_launcher(word)).skip(1);
    let own = own.take_while(|(word, _)| is_own(word.as_str()));
    let all = before
        .into_iter()
        .flat_map(variable)
        .chain(own)
        .chain(variable(after))
        .flat_map(|word| files.of_machine(word));
    let all: Vec<Placed> = all.collect();
    // The machine reads that file before all others.
    let flags = all.iter().rev().find_map(|(word, _)| files.flags(word));
    flags.into_iter().flatten().chain(all.iter().cloned()).collect()
}

/// Files of options, those of the process's own root and directory.
struct Files<'a> {
    source: &'a Source,
    program: &'a Program,
    directory: String,
}

impl<'a> Files<'a> {
    fn of(source: &'a Source, program: &'a Program) -> Self {
        let directory = source.link(&program.file("cwd")).known().cloned();
        Self {
            source,
            program,
            directory: directory.unwrap_or_default(),
        }
    }

    /// The words of a file, with their place.
    fn read(&self, file: &str, words: fn(&str) -> Vec<String>) -> Option<Vec<Placed>> {
        let path = host::tree::beside(&self.directory, file);
        let inside = self.source.text(&self.program.file(&format!("root{path}")));
        let outside = || (!self.source.is_live()).then(|| self.source.text(&path));
        let text = inside.known().cloned().or_else(|| outside()?.known().cloned())?;
        let words = words(&text).into_iter();
        Some(words.map(|word| (word, Some(path.clone()))).collect())
    }

    /// The words that a word of the launcher stands for: `@FILE`.
    fn of_launcher(&self, word: Placed) -> Vec<Placed> {
        let file = word.0.strip_prefix('@');
        let file = file.filter(|file| !file.is_empty() && !file.starts_with('@'));
        file.and_then(|file| self.read(file, words_of_file))
            .unwrap_or_else(|| vec![word])
    }

    /// The same of the machine itself.
    fn of_machine(&self, word: Placed) -> Vec<Placed> {
        let file = word.0.strip_prefix("-XX:VMOptionsFile=");
        file.and_then(|file| self.read(file, words_of))
            .unwrap_or_else(|| vec![word])
    }

    /// A file of flags without `-XX:`.
    fn flags(&self, word: &str) -> Option<Vec<Placed>> {
        let flags = self.read(word.strip_prefix("-XX:Flags=")?, words_of_file)?;
        let option = |(flag, place)| (format!("-XX:{flag}"), place);
        Some(flags.into_iter().map(option).collect())
    }
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

/// The words of an `@argfile`, or of a file of flags: quotes, `#` comments, and backslashes as the launcher takes them (JDK-8027634).
fn words_of_file(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| match line.find('#') {
        Some(at) if !line[..at].contains(['"', '\'']) => &line[..at],
        _ => line,
    });
    words_of(&lines.collect::<Vec<&str>>().join("\n"))
}
