//! Definitions that are no full product: their cases, one by one, and under what is laid over them.

#![forbid(unsafe_code)]

use super::Definition;

impl Definition {
    /// The full products that it is made of: itself, or each of its cases over the rest.
    ///
    /// # Errors
    /// A case that says what holds for all, or has cases of its own.
    pub fn products(&self) -> Result<Vec<Self>, String> {
        if self.case.is_empty() {
            return Ok(vec![self.clone()]);
        }
        let rest = Self {
            case: Vec::new(),
            ..self.clone()
        };
        let mut products = Vec::with_capacity(self.case.len());
        for (index, case) in self.case.iter().enumerate() {
            let what = match case {
                case if !case.policy.is_empty() => "policy",
                case if case.only.is_some() => "only",
                case if case.repeats.is_some() => "repeats",
                case if case.sample.is_some() => "sample",
                case if !case.case.is_empty() => "case",
                _ => "",
            };
            if !what.is_empty() {
                return Err(format!(
                    "case {}: {what} can't be said in a case; move it in front of the first [[case]]",
                    index + 1
                ));
            }
            products.push(case.clone().over(rest.clone()));
        }
        Ok(products)
    }
}

/// The cases of `base` under a definition that lies over it: see [`Definition::over`].
pub(super) fn narrowed(upper: &Definition, base: &Definition) -> Vec<Definition> {
    let mut cases: Vec<Definition> = base.case.clone();
    if cases.is_empty() {
        return cases;
    }
    narrow_blocks(upper, base, &mut cases);
    macro_rules! narrow {
        ($($axis:ident),*) => {$(
            narrow(&upper.$axis, &base.$axis, &mut cases, |case| &mut case.$axis);
        )*};
    }
    narrow!(
        device,
        rw,
        rwmixread,
        depth,
        jobs,
        devices,
        cores,
        cipher,
        key_bits,
        sector_size
    );
    for case in &mut cases {
        clear_conditions(case, upper);
    }
    cases
}

/// Keeps of each case what is wanted; where something is wanted that no case has, all is put in its place.
fn narrow<T: Clone + PartialEq>(
    wanted: &[T],
    rest: &[T],
    cases: &mut Vec<Definition>,
    axis: impl Fn(&mut Definition) -> &mut Vec<T>,
) {
    if wanted.is_empty() {
        return;
    }
    let values = |case: &mut Definition| match axis(case) {
        own if own.is_empty() => rest.to_vec(),
        own => own.clone(),
    };
    let there: Vec<T> = cases.iter_mut().flat_map(values).collect();
    let picks = wanted.iter().all(|value| there.contains(value));
    for case in cases.iter_mut() {
        let mut kept = values(case);
        kept.retain(|value| wanted.contains(value));
        *axis(case) = if picks { kept } else { wanted.to_vec() };
    }
    cases.retain_mut(|case| !axis(case).is_empty());
}

/// `bs` and `bssplit` are one axis.
fn narrow_blocks(upper: &Definition, base: &Definition, cases: &mut Vec<Definition>) {
    type Blocks = (Vec<super::Size>, Vec<String>);
    let of =
        |definition: &Definition| -> Blocks { (definition.bs.clone(), definition.bssplit.clone()) };
    let is_empty = |(bs, bssplit): &Blocks| bs.is_empty() && bssplit.is_empty();
    let wanted = of(upper);
    if is_empty(&wanted) {
        return;
    }
    let values = |case: &Definition| match of(case) {
        own if is_empty(&own) => of(base),
        own => own,
    };
    let there: Vec<Blocks> = cases.iter().map(values).collect();
    let picks = wanted
        .0
        .iter()
        .all(|size| there.iter().any(|(bs, _)| bs.contains(size)))
        && wanted
            .1
            .iter()
            .all(|text| there.iter().any(|(_, split)| split.contains(text)));
    for (case, mut kept) in cases.iter_mut().zip(there) {
        kept.0.retain(|size| wanted.0.contains(size));
        kept.1.retain(|text| wanted.1.contains(text));
        (case.bs, case.bssplit) = if picks { kept } else { wanted.clone() };
    }
    cases.retain(|case| !is_empty(&of(case)));
}

/// A condition that is said above holds in every case.
fn clear_conditions(case: &mut Definition, upper: &Definition) {
    macro_rules! clear {
        ($($field:ident),*) => {$(
            if upper.$field.is_some() {
                case.$field = None;
            }
        )*};
    }
    clear!(
        issuers,
        workers,
        hipri,
        readahead,
        direct,
        engine,
        cipher_throttle,
        size,
        runtime,
        ramp,
        slice,
        seed
    );
}

#[cfg(test)]
mod tests {
    use super::super::quantity::Count;
    use super::*;

    const ROWS: &str = "\
rw = ['randwrite']
cipher = ['cipher_null-ecb']
jobs = [4]
[[case]]
depth = [128]
jobs = [1]
bs = ['4k']
runtime = '1s'
[[case]]
depth = [256, 2048]
bs = ['4k']
[[case]]
depth = [1]
bs = ['1m']
bssplit = ['4k/50:8k/50']
";

    /// Depth, jobs and block sizes of every product under some flags.
    fn rows(flags: &str) -> Vec<(Vec<u32>, Vec<Count>, usize)> {
        let flags = Definition::parse(flags).unwrap();
        let products = flags
            .over(Definition::parse(ROWS).unwrap())
            .products()
            .unwrap();
        products
            .into_iter()
            .map(|one| (one.depth, one.jobs, one.bs.len() + one.bssplit.len()))
            .collect()
    }

    #[test]
    fn each_case_lies_over_the_rest() {
        let (one, four) = (vec![Count::Number(1)], vec![Count::Number(4)]);
        let expected = [
            (vec![128], one, 1),
            (vec![256, 2048], four.clone(), 1),
            (vec![1], four, 2),
        ];
        assert_eq!(rows(""), expected);
    }

    #[test]
    fn values_that_cases_have_pick_and_others_multiply() {
        let depths =
            |flags: &str| -> Vec<Vec<u32>> { rows(flags).into_iter().map(|row| row.0).collect() };
        assert_eq!(depths("depth = [1, 256]"), [vec![256], vec![1]]);
        assert_eq!(
            depths("depth = [1, 7]"),
            [vec![1, 7], vec![1, 7], vec![1, 7]]
        );
        assert_eq!(depths("jobs = [4]"), [vec![256, 2048], vec![1]]);
        assert_eq!(depths("bs = ['1m']"), [vec![1]]);
        assert_eq!(depths("bssplit = ['4k/50:8k/50']"), [vec![1]]);
        let blocks: Vec<usize> = rows("bs = ['8k']").into_iter().map(|row| row.2).collect();
        assert_eq!(blocks, [1, 1, 1]);
        // No case has both: the second one multiplies what the first one left.
        let one = vec![Count::Number(1)];
        assert_eq!(rows("bs = ['1m']\njobs = [1]"), [(vec![1], one, 1)]);
    }

    #[test]
    fn a_condition_above_holds_in_every_case() {
        let flags = Definition::parse("runtime = '3s'").unwrap();
        let all = flags.over(Definition::parse(ROWS).unwrap());
        for product in all.products().unwrap() {
            assert_eq!(product.runtime.unwrap().to_string(), "3s");
        }
    }

    #[test]
    fn cases_print_as_they_can_be_parsed_again() {
        let definition = Definition::parse(ROWS).unwrap();
        assert_eq!(Definition::parse(&definition.to_toml()), Ok(definition));
        let per_cpu = Definition::parse("jobs = [1, 'cpus']").unwrap();
        assert_eq!(per_cpu.jobs, [Count::Number(1), Count::PerCpu]);
        assert_eq!(Definition::parse(&per_cpu.to_toml()), Ok(per_cpu));
        let message = Definition::parse("jobs = ['many']").unwrap_err();
        assert!(message.contains("cpus"), "{message}");
    }

    #[test]
    fn what_holds_for_all_is_refused_in_a_case() {
        for text in [
            "policy = ['inline']",
            "repeats = 2",
            "sample = 2",
            "only = true",
            "[[case.case]]",
        ] {
            let definition = Definition::parse(&format!("[[case]]\n{text}\n")).unwrap();
            let message = definition.products().unwrap_err();
            assert!(message.starts_with("case 1: "), "{message}");
        }
    }
}
