//! MySQL's `large-pages` and its option file, as the server sees them.

use model::{Cause, Reading, Unread};

use super::{Program, Setting};
use crate::config::{self, mysql};
use host::Source;

/// A capture holds the files of the host alone, so that of a server in a container it has none.
fn root(source: &Source, program: &Program, is_container: bool) -> Option<String> {
    match source.is_live() {
        true => Some(program.file("root")),
        false => (!is_container).then(String::new),
    }
}

/// The option file that it reads first.
pub(super) fn option_file(source: &Source, program: &Program, is_container: bool) -> Option<String> {
    let root = root(source, program, is_container)?;
    mysql::option_file(source, &root, program.arguments.known()?)
}

/// The setting, if it is written anywhere.
pub(super) fn large_pages(source: &Source, program: &Program, is_container: bool) -> Reading<Option<Setting>> {
    let Some(root) = root(source, program, is_container) else {
        let why = "a capture has no files of containers";
        return Reading::Unread(Unread::new(Cause::Absent, "my.cnf", why));
    };
    let of_arguments = |arguments: &Vec<String>| {
        let setting = mysql::large_pages(source, &root, (arguments, &program.file("cmdline"))).into_result()?;
        Ok(setting.map(|config::Setting { value, place, .. }| Setting { value, place }))
    };
    program.arguments.as_ref().and_then(of_arguments)
}
