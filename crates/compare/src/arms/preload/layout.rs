//! Layouts: which page kind which part of a program's memory is to get, as text and as words of the shared page.

use std::fmt;
use std::str::FromStr;

use model::{Bytes, PageKind};
use preload_abi::{Kind, MAGIC, MOST_RULES, WORDS, at};

/// `thp`, `hugetlb-2M,min=16M`, `base,0-512M=hugetlb-2M,1G-=thp`: a kind for all, or for all that no rule names; the smallest
/// region that is looked at; rules.
///
/// Offsets count the growth of each process by itself: all its anonymous regions of at least the minimum, laid end to end in the order in
/// which they are mapped, whatever is unmapped later. A rule's ends are moved inwards to whole pages of its kind, within each region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    kind: PageKind,
    minimum: Option<Bytes>,
    rules: Vec<Rule>,
}

/// Bytes `from..to` of the growth get this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The first byte.
    pub from: Bytes,
    /// The byte behind the last one; `u64::MAX` for no end.
    pub to: Bytes,
    pub kind: PageKind,
}

/// Why a layout is not available.
fn fail(text: &str, why: &(impl fmt::Display + ?Sized)) -> String {
    format!(
        "`{text}` in a layout: {why} (write a page kind, then rules such as 0-512M=hugetlb-2M or 1G-=thp, or min=4M, with commas between)"
    )
}

impl Layout {
    /// One kind for everything.
    ///
    /// # Errors
    /// For kinds that no call can order: mTHP sizes are up to the machine's settings.
    pub fn of(kind: PageKind) -> Result<Self, String> {
        Self {
            kind,
            minimum: None,
            rules: Vec::new(),
        }
        .checked()
    }

    /// The same with a smallest region of its own.
    #[must_use]
    pub fn with_minimum(self, minimum: Bytes) -> Self {
        Self {
            minimum: Some(minimum),
            ..self
        }
    }

    /// The same with one more rule.
    ///
    /// # Errors
    /// If the rule overlaps another, is empty, or has a kind that no call can order.
    #[cfg(test)]
    pub(super) fn with_rule(mut self, rule: Rule) -> Result<Self, String> {
        self.rules.push(rule);
        self.checked()
    }

    /// Every page kind that it names.
    pub fn kinds(&self) -> impl Iterator<Item = PageKind> {
        std::iter::once(self.kind).chain(self.rules.iter().map(|rule| rule.kind))
    }

    fn checked(mut self) -> Result<Self, String> {
        self.rules.sort_by_key(|rule| rule.from);
        for kind in self.kinds() {
            to_abi(kind).ok_or_else(|| fail(&kind.to_string(), "no call orders pages of this kind"))?;
        }
        if let Some(empty) = self.rules.iter().find(|rule| rule.from >= rule.to) {
            return Err(fail(&empty.to_string(), "it ends before it begins"));
        }
        if let Some(pair) = self.rules.windows(2).find(|pair| pair[0].to > pair[1].from) {
            return Err(fail(&pair[1].to_string(), &format!("it overlaps {}", pair[0])));
        }
        if self.rules.len() > MOST_RULES {
            return Err(fail(
                &self.rules.len().to_string(),
                &format!("at most {MOST_RULES} rules fit"),
            ));
        }
        Ok(self)
    }

    /// The smallest region that is looked at: unless said otherwise, one page of the smallest large kind that is named.
    fn minimum(&self) -> Bytes {
        let large = self.kinds().filter(|kind| kind.is_large());
        let page = large.map(PageKind::x86_size).min();
        self.minimum.or(page).unwrap_or(PageKind::Thp.x86_size())
    }

    /// The shared page with these orders and no counts.
    pub(super) fn words(&self, nonce: u64) -> [u64; WORDS] {
        let word = |kind| to_abi(kind).unwrap_or(Kind::Base).to_word();
        let mut words = [0; WORDS];
        words[at::MAGIC] = MAGIC;
        words[at::NONCE] = nonce;
        words[at::MINIMUM] = self.minimum().0;
        words[at::KIND] = word(self.kind);
        words[at::RULE_COUNT] = self.rules.len() as u64;
        let places = words[at::RULES..].as_chunks_mut::<3>().0;
        for (place, rule) in places.iter_mut().zip(&self.rules) {
            *place = [rule.from.0, rule.to.0, word(rule.kind)];
        }
        words
    }
}

/// As the library knows it, if it can order it.
fn to_abi(kind: PageKind) -> Option<Kind> {
    Kind::ALL.into_iter().find(|known| from_abi(*known) == kind)
}

/// As everybody else knows it.
pub(super) fn from_abi(kind: Kind) -> PageKind {
    match kind {
        Kind::Base => PageKind::Base,
        Kind::Thp => PageKind::Thp,
        Kind::Pool2M => PageKind::HUGETLB_2M,
        Kind::Pool1G => PageKind::HUGETLB_1G,
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let kind = first.parse().map_err(|error| fail(first, &error))?;
        let mut layout = Self {
            kind,
            minimum: None,
            rules: Vec::new(),
        };
        for part in parts {
            match part.split_once('=') {
                Some(("min", size)) => layout.minimum = Some(size.parse().map_err(|error| fail(part, &error))?),
                Some((range, kind)) => layout.rules.push(rule(part, range, kind)?),
                None => return Err(fail(part, "neither a rule nor a minimum")),
            }
        }
        layout.checked()
    }
}

fn rule(part: &str, range: &str, kind: &str) -> Result<Rule, String> {
    let (from, to) = range
        .split_once('-')
        .ok_or_else(|| fail(part, "there is no `-` between its ends"))?;
    let size = |text: &str, if_empty: u64| match text.trim() {
        "" => Ok(Bytes(if_empty)),
        "0" => Ok(Bytes(0)),
        size => size.parse().map_err(|error| fail(part, &error)),
    };
    Ok(Rule {
        from: size(from, 0)?,
        to: size(to, u64::MAX)?,
        kind: kind.parse().map_err(|error| fail(part, &error))?,
    })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = if self.from.0 == 0 {
            "0".to_owned()
        } else {
            self.from.exact()
        };
        let to = if self.to.0 == u64::MAX {
            String::new()
        } else {
            self.to.exact()
        };
        write!(f, "{from}-{to}={}", self.kind)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(minimum) = self.minimum {
            write!(f, ",min={}", minimum.exact())?;
        }
        self.rules.iter().try_for_each(|rule| write!(f, ",{rule}"))
    }
}
