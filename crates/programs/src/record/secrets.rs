//! Finds what looks like a secret in arguments, environment values and lines of configuration, and takes it out.

use crate::config::files::open_quote;

/// What stands in its place.
pub(super) const REDACTED: &str = "<redacted>";

/// Parts of the names of settings whose values are secrets.
const NAMES: [&str; 16] = [
    "access-key",
    "access_key",
    "accesskey",
    "api-key",
    "api_key",
    "apikey",
    "credential",
    "masterauth",
    "passphrase",
    "passwd",
    "password",
    "private-key",
    "private_key",
    "requirepass",
    "secret",
    "token",
];
/// Beginnings of tokens that are secrets wherever they stand: of JSON web tokens, GitHub, GitLab, Slack, AWS, Vault.
const TOKENS: [&str; 9] = [
    "AKIA",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "hvs.",
    "xox",
];
/// The least length of such a token.
const TOKEN_LENGTH: usize = 16;
/// Clients whose short option is a password, by the beginning of their name.
const CLIENTS: [(&str, &str); 9] = [
    ("mysql", "-p"),
    ("mariadb", "-p"),
    ("sshpass", "-p"),
    ("7z", "-p"),
    ("rar", "-p"),
    ("zip", "-P"),
    ("unzip", "-P"),
    ("redis-cli", "-a"),
    ("valkey-cli", "-a"),
];
/// Options whose value may be `NAME:PASSWORD`.
const LOGINS: [&str; 5] = ["-u", "-U", "--user", "--proxy-user", "--login"];

/// Is the value of a setting of this name a secret?
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Arguments without what looks like a secret, and the names of the options it was taken from.
pub(super) fn arguments(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let short = arguments.first().and_then(|first| short_option(first));
    let mut kept: Vec<String> = Vec::new();
    let mut taken = Vec::new();
    for argument in arguments {
        let before = kept.last().map_or("", String::as_str);
        let clean = argument_after(before, argument, short);
        if clean != *argument {
            taken.push(name_of(before, argument));
        }
        kept.push(clean);
    }
    (kept, taken)
}

/// The option of a password of that client, by its path, behind a key of a unit too.
fn short_option(program: &str) -> Option<&'static str> {
    let name = program.rsplit(['/', '=']).next().unwrap_or(program);
    let client = CLIENTS.iter().find(|(client, _)| name.starts_with(client));
    client.map(|(_, option)| *option)
}

/// One argument, known the one before it.
fn argument_after(before: &str, argument: &str, short: Option<&str>) -> String {
    let waits = before.starts_with('-') && !before.contains('=') && (is_secret_name(before) || Some(before) == short);
    if waits && !argument.starts_with("--") {
        return REDACTED.to_owned();
    }
    if let Some(rest) = short.and_then(|option| argument.strip_prefix(option))
        && !rest.is_empty()
    {
        return argument.replacen(rest, REDACTED, 1);
    }
    if LOGINS.contains(&before)
        && let Some((name, _)) = argument.split_once(':')
    {
        return format!("{name}:{REDACTED}");
    }
    let is_secret_object = argument.starts_with("secret,") || argument.contains(r#""qom-type":"secret"#);
    text(argument, if is_secret_object { &["data"] } else { &[] })
}

/// What to call it in the list of what was taken out: never the secret itself.
fn name_of(before: &str, argument: &str) -> String {
    let own = argument.split(['=', ':', ' ', ',']).next().unwrap_or_default();
    let is_option = |word: &str| word.starts_with('-') && word.len() <= 64;
    if is_option(own) && argument.len() > own.len() {
        own.to_owned()
    } else if is_option(before) {
        before.to_owned()
    } else if is_option(own) {
        own.chars().take(2).collect()
    } else {
        "an argument".to_owned()
    }
}

/// A line of configuration without what looks like a secret: `password = x`, `requirepass x`, `//user:x@host`.
pub(super) fn line(line: &str) -> String {
    let clean = words(&text(&of_sudo(line), &[]));
    let mut words = line.trim_start().splitn(2, [' ', '\t']);
    match (words.next(), words.next()) {
        (Some(name), Some(_)) if clean == line && is_secret_name(name) && !name.starts_with(['#', ';', '[']) => {
            format!("{name} {REDACTED}")
        }
        _ => clean,
    }
}

/// Without the password that `sudo -S` reads: what is echoed into it, or a word behind `<<<`.
fn of_sudo(line: &str) -> String {
    let reads =
        |part: &str| part.contains("sudo") && part.split_whitespace().any(|word| matches!(word, "-S" | "--stdin"));
    let mut parts: Vec<String> = line.split('|').map(str::to_owned).collect();
    for at in 0..parts.len() {
        if !reads(&parts[at]) {
            continue;
        }
        if let Some((command, rest)) = parts[at].split_once("<<<") {
            let word = rest.split_whitespace().next().unwrap_or_default();
            parts[at] = format!("{command}<<<{}", rest.replacen(word, REDACTED, 1));
        }
        let before = at.checked_sub(1);
        let echo = |text: &str| {
            ["echo ", "printf "]
                .iter()
                .find_map(|name| Some(text.rfind(name)? + name.len()))
        };
        if let Some((before, end)) = before.and_then(|before| Some((before, echo(&parts[before])?))) {
            parts[before].truncate(end);
            parts[before] += REDACTED;
            parts[before].push(' ');
        }
    }
    parts.join("|")
}

/// The words of commands in a line: of each client its own option, up to the sign that ends the command.
fn words(line: &str) -> String {
    const QUOTES: [char; 2] = ['"', '\''];
    let (mut clean, mut before, mut short, mut open) = (String::new(), "", None, None);
    // The quote that opens a value went with it.
    let mut is_gone = false;
    for piece in line.split_inclusive([' ', '\t']) {
        let word = piece.trim_end();
        let bare = word.trim_matches(|c: char| "\"'`();|&".contains(c));
        // The rest of a value in quotes.
        if open.is_some() {
            open = open_quote(open, word);
            let rest = piece.trim_start_matches(|c: char| !QUOTES.contains(&c));
            clean += match (open, is_gone) {
                (Some(_), _) => "",
                (None, true) => rest.strip_prefix(QUOTES).unwrap_or(rest),
                (None, false) => rest,
            };
            continue;
        }
        if bare.is_empty() {
            clean += piece;
            continue;
        }
        short = short_option(bare).or(short);
        let own = argument_after(before, bare, short);
        if own == bare {
            clean += piece;
        } else {
            is_gone = bare.contains(QUOTES);
            let end = word.find(bare).map_or(word.len(), |at| at + bare.len());
            open = open_quote(None, word).filter(|_| open_quote(None, &word[..end]).is_some());
            let whole = word.trim_end_matches([';', '|', '&', ')']);
            let own = piece.replacen(if is_gone { whole } else { bare }, &own, 1);
            clean += if open.is_some() { own.trim_end() } else { own.as_str() };
        }
        before = bare;
        if word.ends_with([';', '|', '&']) {
            (before, short) = ("", None);
        }
    }
    clean
}

/// Any text: pairs of a secret's name and a value, logins in addresses, tokens. `more` are further such names.
fn text(text: &str, more: &[&str]) -> String {
    tokens(&logins(&pairs(text, more)))
}

/// `name=value`, `name: value`, `"name": "value"`, anywhere in a text.
fn pairs(text: &str, more: &[&str]) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':']) {
        let (left, right) = rest.split_at(at + 1);
        clean += left;
        rest = right;
        let name = last_name(left);
        // `://` is no pair, and a name before `::` is a path in a program.
        if !(is_secret_name(name) || more.contains(&name)) || right.starts_with([':', '/']) {
            continue;
        }
        let value = value_of(right);
        if !right[value.clone()].is_empty() {
            clean = clean + &right[..value.start] + REDACTED;
            rest = &right[value.end..];
        }
    }
    clean + rest
}

/// The name that ends just before the sign at the end of `text`.
fn last_name(text: &str) -> &str {
    let end = text[..text.len() - 1].trim_end_matches([' ', '\t', '"', '\'']);
    let start = end.rfind(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
    &end[start.map_or(0, |at| at + end[at..].chars().next().map_or(1, char::len_utf8))..]
}

/// Where the value lies: quoted, or up to the next blank or separator.
fn value_of(text: &str) -> std::ops::Range<usize> {
    let start = text.len() - text.trim_start_matches([' ', '\t']).len();
    let value = &text[start..];
    if let Some(quote @ ('"' | '\'')) = value.chars().next() {
        let inner = &value[1..];
        let end = inner.find(quote).unwrap_or(inner.len());
        return start + 1..start + 1 + end;
    }
    let end = value.find(|c: char| c.is_whitespace() || ",;&}\"'".contains(c));
    start..start + end.unwrap_or(value.len())
}

/// `scheme://user:password@host`.
fn logins(text: &str) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (left, right) = rest.split_at(at + 3);
        clean += left;
        rest = right;
        let end = right.find(|c: char| c.is_whitespace() || "/\"'?#".contains(c));
        let authority = &right[..end.unwrap_or(right.len())];
        if let Some((login, _)) = authority.rsplit_once('@') {
            let user = login.split_once(':').map_or("", |(user, _)| user);
            clean = clean + user + if user.is_empty() { "" } else { ":" } + REDACTED;
            rest = &right[login.len()..];
        }
    }
    clean + rest
}

/// Words that are tokens by their form.
fn tokens(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut clean = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let end = rest[start..]
            .find(|c| !is_part(c))
            .map_or(rest.len(), |length| start + length);
        let word = &rest[start..end];
        let is_token = word.len() >= TOKEN_LENGTH && TOKENS.iter().any(|beginning| word.starts_with(beginning));
        clean = clean + &rest[..start] + if is_token { REDACTED } else { word };
        rest = &rest[end..];
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{arguments, line};

    fn clean(command: &str) -> (String, Vec<String>) {
        let words: Vec<String> = command.split('|').map(str::to_owned).collect();
        let (kept, taken) = arguments(&words);
        (kept.join("|"), taken)
    }

    #[test]
    fn passwords_in_arguments_are_taken_out_and_named() {
        for (command, kept, taken) in [
            ("app|--password=s3cret|-x", "app|--password=<redacted>|-x", "--password"),
            (
                "app|--db-password|s3cret",
                "app|--db-password|<redacted>",
                "--db-password",
            ),
            (
                "java|-Ddb.password=s3cret",
                "java|-Ddb.password=<redacted>",
                "-Ddb.password",
            ),
            ("/usr/bin/mysqldump|-ps3cret", "/usr/bin/mysqldump|-p<redacted>", "-p"),
            ("redis-cli|-a|s3cret", "redis-cli|-a|<redacted>", "-a"),
            ("curl|-u|me:s3cret", "curl|-u|me:<redacted>", "-u"),
            (
                "app|postgres://me:s3cret@db/x",
                "app|postgres://me:<redacted>@db/x",
                "an argument",
            ),
            ("app|https://s3cret@db", "app|https://<redacted>@db", "an argument"),
            (
                "psql|host=db password='s3 cret' user=x",
                "psql|host=db password='<redacted>' user=x",
                "an argument",
            ),
            (
                "app|{\"api_key\": \"s3cret\", \"n\": 1}",
                "app|{\"api_key\": \"<redacted>\", \"n\": 1}",
                "an argument",
            ),
            (
                "qemu|-object|secret,id=a,data=s3cret",
                "qemu|-object|secret,id=a,data=<redacted>",
                "-object",
            ),
            ("app|--x|ghp_s3cretabcdefghijk", "app|--x|<redacted>", "--x"),
        ] {
            assert_eq!(clean(command), (kept.to_owned(), vec![taken.to_owned()]), "{command}");
        }
    }

    #[test]
    fn what_decides_page_sizes_stays_as_it_is() {
        for command in [
            "java|-Xmx4g|-XX:+UseLargePages|-XX:LargePageSizeInBytes=2m|-cp|/a:/b|Main",
            "postgres|-D|/var/lib/postgresql|-c|config_file=/etc/postgresql/15/main/postgresql.conf",
            "qemu-system-x86_64|-m|4G|-object|memory-backend-file,id=mem,mem-path=/dev/hugepages,size=4G,prealloc=on",
            "firecracker|--api-sock|/run/fc.sock|--config-file|/etc/fc.json",
            "testpmd|-l|0-3|--huge-dir|/dev/hugepages|--socket-mem=1024,0|-p|0x3",
            "redis-server|*:6379",
        ] {
            assert_eq!(clean(command), (command.to_owned(), vec![]));
        }
    }

    #[test]
    fn lines_of_configuration_lose_their_secrets_only() {
        for (from, to) in [
            ("requirepass s3cret", "requirepass <redacted>"),
            (
                "x; mysql -uroot -ps3cret -e 'a'; y -pz",
                "x; mysql -uroot -p<redacted> -e 'a'; y -pz",
            ),
            ("sshpass -p 's3 cret' ssh x", "sshpass -p '<redacted>' ssh x"),
            ("sh -c 'mysql -ps3cret' > /x y", "sh -c 'mysql -p<redacted>' > /x y"),
            ("mysql -p's3 cret' x; y", "mysql -p<redacted> x; y"),
            ("mysql -p's3cret'; y", "mysql -p<redacted>; y"),
            ("curl -u me:s3cret http://x", "curl -u me:<redacted> http://x"),
            (
                "@reboot echo s3cret | sudo -S sysctl -w vm.nr_hugepages=8",
                "@reboot echo <redacted> | sudo -S sysctl -w vm.nr_hugepages=8",
            ),
            (
                "sudo -S <<< s3cret tee /proc/sys/vm/nr_hugepages",
                "sudo -S <<< <redacted> tee /proc/sys/vm/nr_hugepages",
            ),
            (
                "echo 8 | sudo tee /proc/sys/vm/nr_hugepages",
                "echo 8 | sudo tee /proc/sys/vm/nr_hugepages",
            ),
            ("--db-password s3cret", "--db-password <redacted>"),
            ("postgres - memlock 8388608", "postgres - memlock 8388608"),
            ("password = s3cret", "password = <redacted>"),
            (
                "primary_conninfo = 'host=a password=s3cret'",
                "primary_conninfo = 'host=a password=<redacted>'",
            ),
            ("huge_pages = try # ask first", "huge_pages = try # ask first"),
            ("vm.nr_hugepages=512", "vm.nr_hugepages=512"),
        ] {
            assert_eq!(line(from), to);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn a_password_never_survives_and_nothing_panics(
            before in "[a-z =:,'\"/@é-]{0,12}",
            name in "(--|-D|)[a-z.]{0,6}(password|TOKEN|api_key|Secret)",
            sign in "(=|: |=\"|:')",
        ) {
            let argument = format!("{before} {name}{sign}hunter2");
            let (kept, _) = arguments(&["app".to_owned(), argument.clone()]);
            prop_assert!(!kept.concat().contains("hunter2"), "{argument} -> {kept:?}");
            prop_assert!(!line(&argument).contains("hunter2"), "{argument}");
        }
    }
}
