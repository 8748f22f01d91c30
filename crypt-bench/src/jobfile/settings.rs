//! Options in force for each job: what its section says over what the `[global]` sections before it
//! say, with where each value came from.
//!
//! Of an option that stands twice the last one counts; the others are remembered for `explain`. A
//! `[global]` section holds for the jobs after it only, together with earlier ones.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalog::{self, OptionInfo};
use super::expand::expand;
use super::source::{Line, Section};
use super::value::{self, Kind, PerDirection, Share, Units, Value};
use super::{Position, Refusal, Surroundings};

/// Most values that are remembered of one that they replace.
const MOST_OVERRIDES: usize = 16;
/// Most jobs of a file.
const MOST_JOBS: usize = 65_536;

/// A value in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// What it means.
    pub value: Value,
    /// As written, variables replaced; empty for an option without `=`.
    pub text: String,
    /// Where it stands.
    pub position: Position,
    /// Whether it stands in a `[global]` section.
    pub global: bool,
    /// Where values that it replaced stand; of very many the first ones and the last.
    pub overrides: Vec<Position>,
}

/// All values in force for one job, by the name of the option.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Shared by the jobs that a `[global]` section gives them to.
    map: BTreeMap<&'static str, Arc<Setting>>,
}

/// A job's section, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSection {
    /// Name between the brackets.
    pub name: String,
    /// Where the section begins.
    pub position: Position,
    /// Values in force.
    pub settings: Settings,
}

/// Resolves the sections of a file; `wanted` names the jobs to take, all where it is empty.
///
/// # Errors
/// The first option that is refused, or a wanted section that is not there.
pub fn resolve(
    sections: &[Section],
    wanted: &[String],
    surroundings: &dyn Surroundings,
) -> Result<Vec<JobSection>, Refusal> {
    if let Some(missing) = missing(sections, wanted) {
        return Err(missing);
    }
    let mut defaults = Settings::default();
    let mut jobs = Vec::new();
    for section in sections {
        if section.is_global() {
            defaults.apply(section, surroundings)?;
        } else if wanted.is_empty() || wanted.contains(&section.name) {
            if jobs.len() >= MOST_JOBS {
                let message = format!("more jobs than are possible; there are at most {MOST_JOBS}");
                return Err(Refusal::at(&section.position, message));
            }
            let mut settings = defaults.clone();
            settings.apply(section, surroundings)?;
            jobs.push(JobSection {
                name: section.name.clone(),
                position: section.position.clone(),
                settings,
            });
        }
    }
    Ok(jobs)
}

fn missing(sections: &[Section], wanted: &[String]) -> Option<Refusal> {
    let jobs = || sections.iter().filter(|section| !section.is_global());
    let name = wanted
        .iter()
        .find(|name| !jobs().any(|section| section.name == **name))?;
    let names: Vec<&str> = jobs().map(|section| section.name.as_str()).collect();
    Some(Refusal::whole(format!(
        "--section {name}: there is no such section; there are: {}",
        names.join(", ")
    )))
}

impl Settings {
    /// The value in force of an option.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Setting> {
        self.map.get(name).map(Arc::as_ref)
    }

    /// All values in force, by the name of the option.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Setting)> {
        self.map.iter().map(|(name, setting)| (*name, &**setting))
    }

    /// A text that is set.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.find(name)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// How the names of files begin that an option asks for: as it says, or with the name that is given here.
    #[must_use]
    pub fn prefix<'a>(&'a self, name: &str, default: &'a str) -> Option<&'a str> {
        match &self.find(name)?.value {
            Value::Prefix(Some(prefix)) if !prefix.is_empty() => Some(prefix),
            Value::Prefix(_) => Some(default),
            _ => None,
        }
    }

    /// Whether a flag is set, and not to 0.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        matches!(
            self.find(name),
            Some(Setting {
                value: Value::Flag(true),
                ..
            })
        )
    }

    /// As [`Settings::flag`], and `default` where nothing is said.
    #[must_use]
    pub fn flag_or(&self, name: &str, default: bool) -> bool {
        match self.find(name) {
            Some(_) => self.flag(name),
            None => default,
        }
    }

    /// A number that is set.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.find(name)?.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// A range of bytes that is set: smallest and largest.
    #[must_use]
    pub fn range(&self, name: &str) -> Option<(u64, u64)> {
        match self.find(name)?.value {
            Value::Range(from, to) => Some((from, to)),
            _ => None,
        }
    }

    /// Numbers per direction.
    #[must_use]
    pub fn numbers(&self, name: &str) -> PerDirection<u64> {
        match self.find(name).map(|setting| &setting.value) {
            Some(Value::Numbers(numbers)) => *numbers,
            _ => [None; 3],
        }
    }

    /// A size or percentage that is set.
    #[must_use]
    pub fn share(&self, name: &str) -> Option<Share> {
        match self.find(name)?.value {
            Value::Share(share) => Some(share),
            _ => None,
        }
    }

    /// A time that is set, in microseconds: from, to.
    #[must_use]
    pub fn time_us(&self, name: &str) -> Option<(u64, u64)> {
        match self.find(name)?.value {
            Value::TimeUs(from, to) => Some((from, to)),
            _ => None,
        }
    }

    fn apply(&mut self, section: &Section, surroundings: &dyn Surroundings) -> Result<(), Refusal> {
        // fio takes kb_base first, wherever in the section it stands.
        let (first, rest): (Vec<&Line>, Vec<&Line>) = section
            .lines
            .iter()
            .partition(|line| line.name == "kb_base");
        for line in first.into_iter().chain(rest) {
            self.apply_line(line, section.is_global(), surroundings)
                .map_err(|message| Refusal::at(&line.position, message))?;
        }
        Ok(())
    }

    fn apply_line(
        &mut self,
        line: &Line,
        global: bool,
        surroundings: &dyn Surroundings,
    ) -> Result<(), String> {
        let info = catalog::find(&line.name)?;
        check_comment(line, info)?;
        let named = |message: String| format!("{}: {message}", line.name);
        let text = line
            .value
            .as_deref()
            .map(|value| expand(value, surroundings))
            .transpose()
            .map_err(named)?;
        let value = value::parse(info.kind, text.as_deref(), self.units()).map_err(named)?;
        self.set(info.name, value, text.unwrap_or_default(), line, global);
        Ok(())
    }

    fn set(&mut self, name: &'static str, value: Value, text: String, line: &Line, global: bool) {
        let old = self.map.remove(name).map(Arc::unwrap_or_clone);
        let mut overrides = Vec::new();
        let value = match old {
            Some(mut old) => {
                overrides.append(&mut old.overrides);
                overrides.truncate(MOST_OVERRIDES - 1);
                overrides.push(old.position);
                over(value, old.value)
            }
            None => value,
        };
        let setting = Setting {
            value,
            text,
            position: line.position.clone(),
            global,
            overrides,
        };
        self.map.insert(name, Arc::new(setting));
    }

    fn units(&self) -> Units {
        let base = self.find("kb_base").map(|setting| setting.text.as_str());
        Units {
            decimal: base == Some("1000"),
        }
    }
}

/// A new value over an old one: directions that the new one leaves open keep what they had.
fn over(new: Value, old: Value) -> Value {
    fn fill<T>(new: PerDirection<T>, old: PerDirection<T>) -> PerDirection<T> {
        let mut old = old.into_iter();
        new.map(|value| value.or(old.next().flatten()))
    }
    match (new, old) {
        (Value::Numbers(new), Value::Numbers(old)) => Value::Numbers(fill(new, old)),
        (Value::Ranges(new), Value::Ranges(old)) => Value::Ranges(fill(new, old)),
        (Value::Splits(new), Value::Splits(old)) => Value::Splits(fill(new, old)),
        (Value::Prefix(None), Value::Prefix(old)) => Value::Prefix(old),
        (new, _) => new,
    }
}

/// fio cuts `filename=a#b` to `a`.
fn check_comment(line: &Line, info: &OptionInfo) -> Result<(), String> {
    if line.glued_comment
        && matches!(
            info.kind,
            Kind::Text | Kind::Paths | Kind::Prefix | Kind::Bytes { .. }
        )
    {
        let value = line.value.as_deref().unwrap_or_default();
        return Err(format!(
            "{}: a `;` or `#` begins a comment, so the value is `{value}`; put a blank before a \
             comment, and rename a file that has such a sign in its name",
            line.name
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::super::testing::Fake;
    use super::*;

    fn jobs(text: &str, wanted: &[&str]) -> Result<Vec<JobSection>, Refusal> {
        let fake = Fake::default().file("a.fio", text);
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        resolve(&source::read("a.fio", &fake)?, &wanted, &fake)
    }

    fn text<'a>(job: &'a JobSection, name: &str) -> Option<&'a str> {
        job.settings.find(name).map(|setting| setting.text.as_str())
    }

    #[test]
    fn globals_add_up_and_hold_for_what_follows() {
        let jobs = jobs(
            "[global]\nbs=4k\n[a]\n[global]\niodepth=8\n[b]\nbs=8k\n[c]\n",
            &[],
        )
        .unwrap();
        let seen: Vec<_> = jobs
            .iter()
            .map(|job| (text(job, "bs"), text(job, "iodepth")))
            .collect();
        assert_eq!(
            seen,
            [
                (Some("4k"), None),
                (Some("8k"), Some("8")),
                (Some("4k"), Some("8"))
            ]
        );
        let setting = jobs[1].settings.find("bs").unwrap();
        assert!(!setting.global);
        assert_eq!(setting.overrides[0].to_string(), "a.fio:2");
    }

    #[test]
    fn the_last_of_two_counts_and_open_directions_keep_theirs() {
        let jobs = jobs("[global]\nbs=4k,8k\n[a]\nblocksize=,16k\nbs=32k,\n", &[]).unwrap();
        let setting = jobs[0].settings.find("bs").unwrap();
        assert_eq!(
            setting.value,
            Value::Numbers([Some(32768), Some(16384), Some(16384)])
        );
        assert_eq!(setting.overrides.len(), 2);
    }

    #[test]
    fn kb_base_counts_for_its_whole_section() {
        let jobs = jobs("[a]\nsize=1m\nkb_base=1000\n[b]\nsize=1m\n", &[]).unwrap();
        let size = |job: &JobSection| job.settings.find("size").unwrap().value.clone();
        assert_eq!(size(&jobs[0]), Value::Share(Share::Bytes(1_000_000)));
        assert_eq!(size(&jobs[1]), Value::Share(Share::Bytes(1 << 20)));
    }

    #[test]
    fn sections_can_be_chosen() {
        let file = "[a]\nbs=oops\n[b]\nbs=4k\n";
        assert_eq!(jobs(file, &["b"]).unwrap().len(), 1);
        let refusal = jobs(file, &["c"]).unwrap_err().to_string();
        assert!(refusal.contains("there are: a, b"), "{refusal}");
        assert!(jobs(file, &[]).is_err());
    }

    #[test]
    fn refusals_name_line_and_option() {
        for (file, expected) in [
            ("[a]\n\nbs=4KiB\n", "a.fio:3: bs: `4KiB` is 4000 bytes"),
            (
                "[a]\nverify_dump=1\n",
                "a.fio:2: option `verify_dump` is not supported",
            ),
            ("[a]\nfilename=a#b.img\n", "a.fio:2: filename: a `;` or `#`"),
            ("[a]\nsize=${NO}\n", "a.fio:2: size: `${NO}`"),
            ("[a]\nfsync\n", "a.fio:2: fsync: needs a value"),
        ] {
            let refusal = jobs(file, &[]).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }
}
