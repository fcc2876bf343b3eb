//! Finds what looks like a secret in arguments, environment values and lines of configuration, and takes it out.

use std::ops::Range;

use crate::config::files::open_quote;

/// What stands in its place.
pub(super) const REDACTED: &str = "<redacted>";

/// Parts of the names of settings whose values are secrets.
const NAMES: [&str; 16] = [
    "accesskey",
    "accountkey",
    "apikey",
    "connectionstring",
    "credential",
    "instrumentationkey",
    "licensekey",
    "masterauth",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "requirepass",
    "secret",
    "sstauth",
    "token",
];
/// Whole words of such names, which are parts of other words too.
const WORDS: [&str; 3] = ["pass", "pw", "pwd"];
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
/// What an option of a client has.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    /// A password, in the same word alone: a word behind `mysql -p` is the name of a database.
    Joined,
    /// A password, in the same word or in the next.
    Password,
    /// `NAME:PASSWORD`, in the same word or in the next.
    Login,
}

/// A client, by the beginning of its name, its options, and what those take.
type Client = (&'static str, &'static [&'static str], Takes);

const CLIENTS: [Client; 11] = [
    ("mysql", &["-p"], Takes::Joined),
    ("mariadb", &["-p"], Takes::Joined),
    ("7z", &["-p"], Takes::Joined),
    ("rar", &["-p"], Takes::Joined),
    ("sshpass", &["-p"], Takes::Password),
    ("zip", &["-P"], Takes::Password),
    ("unzip", &["-P"], Takes::Password),
    ("redis-cli", &["-a"], Takes::Password),
    ("valkey-cli", &["-a"], Takes::Password),
    ("curl", &["--user", "--proxy-user", "-u", "-U"], Takes::Login),
    ("etcdctl", &["--user"], Takes::Login),
];
const QUOTES: [char; 2] = ['"', '\''];

/// Is the value of a setting of this name a secret?
pub(super) fn is_secret_name(name: &str) -> bool {
    let plain = name.replace(['-', '_', '.'], "").to_ascii_lowercase();
    let last = last_word(name).to_ascii_lowercase();
    NAMES.iter().any(|part| plain.contains(part)) || WORDS.contains(&&*last)
}

/// `Pass` of `db.proxyPass`, and `pass` of `db_pass`.
fn last_word(name: &str) -> &str {
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default();
    let starts = last.char_indices().zip(last.chars().skip(1));
    let inner = starts.filter(|((_, one), next)| one.is_lowercase() && next.is_uppercase());
    inner.last().map_or(last, |((at, one), _)| &last[at + one.len_utf8()..])
}

/// Arguments without what looks like a secret, and the names of the options it was taken from.
pub(super) fn arguments(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let mut client = None;
    let mut kept: Vec<String> = Vec::new();
    let mut taken = Vec::new();
    for argument in arguments {
        let before = kept.last().map_or("", String::as_str);
        // Behind an option it may be the name of anything; a login has its own form.
        let is_named = |found: &&Client| !before.starts_with('-') || found.2 == Takes::Login;
        client = client_of(argument).filter(is_named).or(client);
        let is_secret_object = argument.starts_with("secret,") || argument.contains(r#""qom-type":"secret"#);
        let more: &[&str] = if is_secret_object { &["data"] } else { &[] };
        let clean = of_option(before, argument, client).unwrap_or_else(|| commands(argument, more));
        if clean != *argument {
            taken.push(name_of(before, argument));
        }
        kept.push(clean);
    }
    (kept, taken)
}

/// The client, by its path, behind a key of a unit too.
fn client_of(program: &str) -> Option<&'static Client> {
    let name = program.rsplit(['/', '=']).next().unwrap_or(program);
    CLIENTS.iter().find(|(client, ..)| name.starts_with(client))
}

/// One argument by the option before it or its client's own; `None` if neither takes a secret.
fn of_option(before: &str, argument: &str, client: Option<&Client>) -> Option<String> {
    let waits = before.starts_with('-') && !before.contains('=') && is_secret_name(before);
    if waits && !argument.starts_with("--") {
        return Some(REDACTED.to_owned());
    }
    // QEMU takes the keys in any order, and the value may have commas.
    if before.trim_start_matches('-') == "fw_cfg"
        && let Some(at) = argument.find("string=")
        && (at == 0 || argument[..at].ends_with(','))
    {
        return Some(format!("{}string={REDACTED}", &argument[..at]));
    }
    of_client(before, argument, client?)
}

/// The argument without what an option of this client takes; `None` if it has nothing of it.
fn of_client(before: &str, argument: &str, (_, options, takes): &Client) -> Option<String> {
    let value = if *takes != Takes::Joined && options.contains(&before) {
        argument
    } else {
        options.iter().find_map(|option| {
            let joined = argument.strip_prefix(option)?;
            let is_long = option.starts_with("--");
            if is_long {
                joined.strip_prefix('=')
            } else {
                Some(joined)
            }
        })?
    };
    let secret = match takes {
        Takes::Login => value.split_once(':')?.1,
        Takes::Joined | Takes::Password => value,
    };
    let start = argument.len() - secret.len();
    (!secret.is_empty() && !is_reference(secret)).then(|| format!("{}{REDACTED}", &argument[..start]))
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
    let clean = commands(line, &[]);
    let mut words = line.trim_start().splitn(2, [' ', '\t']);
    match (words.next(), words.next()) {
        (Some(name), Some(_)) if clean == line && is_secret_name(name) && !name.starts_with(['#', ';', '[']) => {
            format!("{name} {REDACTED}")
        }
        _ => clean,
    }
}

/// A text that may be commands. `more` are further names of secrets.
fn commands(of: &str, more: &[&str]) -> String {
    words(&text(&of_sudo(of), more))
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

/// The words of commands: of each client its own option, up to the sign or the line's end that ends the command.
fn words(text: &str) -> String {
    let (mut clean, mut before, mut client, mut open) = (String::new(), "", None, None);
    // The quote that opens a value went with it.
    let mut is_gone = false;
    for piece in text.split_inclusive(char::is_whitespace) {
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
        client = client_of(bare).or(client);
        let own = of_option(before, bare, client).filter(|own| !bare.is_empty() && own != bare);
        if let Some(own) = own {
            is_gone = bare.contains(QUOTES);
            let end = word.find(bare).map_or(word.len(), |at| at + bare.len());
            open = open_quote(None, word).filter(|_| open_quote(None, &word[..end]).is_some());
            let whole = word.trim_end_matches([';', '|', '&', ')']);
            let own = piece.replacen(if is_gone { whole } else { bare }, &own, 1);
            clean += if open.is_some() { own.trim_end() } else { own.as_str() };
        } else {
            clean += piece;
        }
        if !bare.is_empty() {
            before = bare;
        }
        if word.ends_with([';', '|', '&']) || (piece.ends_with('\n') && !word.ends_with('\\')) {
            (before, client) = ("", None);
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
        // Ceph's key in the name of an image: `rbd:pool/image:id=x:key=AQ..==`.
        let is_header = name.to_ascii_lowercase().ends_with("authorization");
        let is_secret = is_header || is_secret_name(name) || more.contains(&name) || clean.ends_with(":key=");
        if !is_secret || right.starts_with([':', '/']) {
            continue;
        }
        let before = &text[..text.len() - right.len()];
        let value = match is_header {
            true => credentials(before, right),
            false => value_of(before, right),
        };
        if !is_none(&right[value.clone()]) {
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

/// Is there no secret in a value? MongoDB has `authorization: enabled`.
fn is_none(value: &str) -> bool {
    matches!(value, "" | "enabled" | "disabled") || is_reference(value)
}

/// A variable of a shell, or a file that it reads: where the secret is, not the secret.
fn is_reference(value: &str) -> bool {
    let Some(rest) = value.strip_prefix('$') else {
        return false;
    };
    let name = rest.strip_prefix('{').unwrap_or(rest).trim_end_matches('}');
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    rest.starts_with("(cat") || (!name.is_empty() && name.chars().all(is_name))
}

/// Where the secret of a header lies: behind the scheme, up to the quote that was open before its name.
fn credentials(before: &str, text: &str) -> Range<usize> {
    let mut value = value_of(before, text);
    if !text[..value.start].ends_with(QUOTES) {
        let outside = before[..before.len() - 1].strip_suffix(last_name(before));
        let own = outside.and_then(|outside| Some((outside, outside.chars().last().filter(|c| QUOTES.contains(c))?)));
        let (escape, quote) = match own {
            Some((outside, quote)) => {
                let outside = &outside[..outside.len() - 1];
                (&outside[outside.trim_end_matches('\\').len()..], Some(quote))
            }
            None => ("", open_quote(None, before)),
        };
        let rest = &text[value.start..];
        let end = quote.and_then(|quote| closing(rest, escape, quote));
        value.end = value.start + end.or_else(|| rest.find('\n')).unwrap_or(rest.len());
    }
    match text[value.clone()].split_once(' ') {
        Some((scheme, secret)) if scheme.chars().all(char::is_alphabetic) => {
            value.end - secret.trim_start().len()..value.end
        }
        _ => value,
    }
}

/// Where the value lies: quoted, behind `=` in braces too, or up to the next blank or separator.
fn value_of(before: &str, text: &str) -> Range<usize> {
    let start = text.len() - text.trim_start_matches([' ', '\t']).len();
    let value = &text[start..];
    // A quote within quotes is escaped: `\"`.
    let escapes = value.len() - value.trim_start_matches('\\').len();
    let (escape, quoted) = value.split_at(escapes);
    if let Some(quote @ ('"' | '\'')) = quoted.chars().next() {
        let inner = &quoted[1..];
        let end = closing(inner, escape, quote).unwrap_or(inner.len());
        return start + escapes + 1..start + escapes + 1 + end;
    }
    // `}` in it is doubled, in strings that open a database.
    if let Some(inner) = value.strip_prefix('{').filter(|_| before.ends_with('=')) {
        let rest = inner.replace("}}", "  ");
        return start + 1..start + 1 + rest.find('}').unwrap_or(inner.len());
    }
    let end = value.find(|c: char| c.is_whitespace() || ",;&}\"'".contains(c));
    start..start + end.unwrap_or(value.len())
}

/// Where the quote stands that closes what one with this escape opened; one with another escape, or of a command in `$(..)`, is part
/// of the value.
fn closing(text: &str, escape: &str, quote: char) -> Option<usize> {
    text.match_indices(quote).map(|(at, _)| at).find_map(|at| {
        let before = &text[..at];
        let own = before.len() - before.trim_end_matches('\\').len();
        let is_in_command = before.matches("$(").count() > before.matches(')').count();
        let closes = own == escape.len() || (escape.is_empty() && own.is_multiple_of(2));
        (closes && !is_in_command).then(|| at - escape.len())
    })
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
#[path = "secrets_tests.rs"]
mod tests;
