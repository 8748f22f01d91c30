//! Variables and keywords in values: `${NAME}`, `$pagesize`, `$mb_memory`, `$ncpus`, and the
//! arithmetic that keywords bring with them (`size=8*$mb_memory`).
//!
//! Stricter than fio: a variable that is not set is refused, where fio puts nothing in its place.

#![forbid(unsafe_code)]

use super::{Surroundings, expression};

/// Keywords, with their `$`.
const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];
/// Longest value after expansion, in bytes.
const MOST_BYTES: usize = 64 << 10;

/// A value with variables and keywords replaced. Not recursive: what a variable holds stays.
///
/// # Errors
/// A variable that is not set, arithmetic that can't be done; in words.
pub fn expand(value: &str, surroundings: &dyn Surroundings) -> Result<String, String> {
    let replaced = variables(value, surroundings)?;
    let (replaced, had_keyword) = keywords(&replaced, surroundings)?;
    if !had_keyword || !replaced.contains(['+', '-', '*', '/']) || replaced.starts_with('(') {
        return Ok(replaced);
    }
    // fio hands this to bc(1); whole numbers are all that makes sense in an option.
    expression::evaluate(&replaced, expression::plain_number)
        .map(|number| number.to_string())
        .map_err(|error| format!("`{value}` is `{replaced}`, which can't be computed: {error}"))
}

fn variables(value: &str, surroundings: &dyn Surroundings) -> Result<String, String> {
    let mut expanded = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(len) = rest[start + 2..].find('}') else {
            return Err(format!("`{value}`: `${{` without `}}`"));
        };
        let name = &rest[start + 2..start + 2 + len];
        let found = surroundings.variable(name).ok_or_else(|| {
            format!(
                "`${{{name}}}`: the environment variable {name} is not set; set it, as in \
                 {name}=... crypt-bench ..."
            )
        })?;
        expanded.push_str(&rest[..start]);
        expanded.push_str(&found);
        rest = &rest[start + 2 + len + 1..];
        if expanded.len() > MOST_BYTES {
            return Err(format!("more than {MOST_BYTES} bytes after expansion"));
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn keywords(value: &str, surroundings: &dyn Surroundings) -> Result<(String, bool), String> {
    let mut replaced = value.to_owned();
    let mut any = false;
    for keyword in KEYWORDS {
        if replaced.contains(keyword) {
            let number = surroundings
                .keyword(&keyword[1..])
                .ok_or_else(|| format!("`{keyword}` is not known on this system"))?;
            replaced = replaced.replace(keyword, &number.to_string());
            any = true;
        }
    }
    Ok((replaced, any))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn variables_and_keywords_are_replaced() {
        let fake = Fake::default().variable("SIZE", "64m").variable("E", "");
        for (value, expected) in [
            ("${SIZE}", "64m"),
            ("a${SIZE}b${SIZE}", "a64mb64m"),
            ("x${E}y", "xy"),
            ("$ncpus", "2"),
            ("$ncpus*2+1", "5"),
            ("8*$mb_memory", "16384"),
            ("/dev/$x", "/dev/$x"),
            ("4096-8", "4096-8"),
        ] {
            assert_eq!(expand(value, &fake), Ok(expected.to_owned()), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        let fake = Fake::default();
        for (value, reason) in [
            ("${NONE}", "NONE is not set"),
            ("${NONE", "without `}`"),
            ("$ncpus*", "can't be computed"),
            ("$ncpus/0", "can't be computed"),
        ] {
            let message = expand(value, &fake).unwrap_err();
            assert!(message.contains(reason), "{message}");
        }
    }
}
