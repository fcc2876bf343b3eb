//! What the option files and arguments of a MySQL or MariaDB server say, as it sees them.

use model::{Cause, Unread};

use super::facts::Own;
use super::{Program, Setting};
use crate::config::mysql::{self, Options};
use crate::size::database::Innodb;
use host::Source;

pub(super) fn own(source: &Source, program: &Program, is_container: bool) -> Own {
    // A capture holds the files of the host alone, so that of a server in a container it has none.
    let root = match source.is_live() {
        true => Some(program.file("root")),
        false => (!is_container).then(String::new),
    };
    let why = || Unread::new(Cause::Absent, "my.cnf", "a capture has no files of containers");
    let arguments = program.arguments.known().map_or(&[][..], Vec::as_slice);
    let files = root.as_deref().ok_or_else(why);
    let mut files = files.and_then(|root| Options::of_server(source, root, arguments));
    let refused = files
        .as_mut()
        .map_or_else(|_| Vec::new(), |options| std::mem::take(&mut options.refused));
    let setting = program.arguments.as_ref().and_then(|arguments| {
        let setting = mysql::large_pages(files.as_ref(), (arguments, &program.file("cmdline"))).into_result()?;
        Ok(setting.map(|setting| Setting {
            value: setting.value,
            place: setting.place,
        }))
    });
    let innodb = files.ok().map(|options| Innodb {
        is_mariadb: options.names_mariadb || program.is_called_mariadb(),
        ..Innodb::of(options.settings.pairs()).with_options(arguments)
    });
    Own {
        setting,
        option_file: root.and_then(|root| mysql::option_file(source, &root, arguments)),
        innodb,
        refused,
    }
}
