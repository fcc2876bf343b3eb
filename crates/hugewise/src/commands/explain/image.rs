//! `hugewise explain --image`: which code of executables at rest can ever be on huge pages.

use std::path::Path;

use anyhow::{anyhow, bail};
use host::Snapshot;
use model::{Bytes, Reading};
use programs::image::Images;

use crate::commands::session::Session;
use crate::ui::Outcome;

/// No machine has smaller pages.
const LEAST: Bytes = Bytes::kib(4);

pub(super) fn run(session: &mut Session<'_>, path: &Path, page: Option<Bytes>) -> anyhow::Result<Outcome> {
    let form = session.form::<Images>()?;
    let snapshot = Snapshot::take(&session.source);
    let page = match (page, snapshot.pmd_page()) {
        (Some(page), _) if page > LEAST && page.0.is_power_of_two() => page,
        (Some(page), _) => bail!("--page-size {page}: a huge page has a power of two above {LEAST}, such as 2M"),
        (None, Reading::Known(page)) => page,
        (None, Reading::Unread(why)) => {
            bail!(
                "the size of a huge page on {} is not known: {why} (name it: --page-size 2M)",
                session.source.name()
            )
        }
    };
    let images = Images::read(path, page).map_err(|why| anyhow!("--image {}: {}", why.place, why.why))?;
    session.give_about(&snapshot, Vec::new(), images, form)
}
