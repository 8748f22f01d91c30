//! What cells are called in lists and tables: as short as tells them apart.

#![forbid(unsafe_code)]

use super::axis::Axis;
use crate::result::CellParams;

/// Names of some cells: device, rw, block size and depth, the policy where they differ in it, and every other
/// parameter in which a cell is not as most of them.
#[derive(Clone, Debug)]
pub struct CellNames {
    with_policy: bool,
    usual: Vec<(Axis, String)>,
}

impl CellNames {
    /// What a cell is always called by.
    const ALWAYS: [Axis; 4] = [Axis::Device, Axis::Rw, Axis::BlockSize, Axis::Depth];

    /// What is told elsewhere, or follows from what is.
    const SILENT: [Axis; 3] = [Axis::Policy, Axis::Mix, Axis::Direct];

    /// Names among these cells.
    pub fn of<'a>(cells: impl IntoIterator<Item = &'a CellParams>) -> Self {
        let cells: Vec<&CellParams> = cells.into_iter().collect();
        let cells = || cells.iter().copied();
        let others = Axis::ALL
            .into_iter()
            .filter(|axis| !Self::ALWAYS.contains(axis) && !Self::SILENT.contains(axis));
        let commonest = |axis: Axis| {
            let texts: Vec<String> = cells().map(|cell| axis.text(cell)).collect();
            let count = |text: &String| texts.iter().filter(|other| *other == text).count();
            let positions = axis.positions(cells());
            Some((axis, positions.into_iter().max_by_key(count)?))
        };
        Self {
            with_policy: Axis::Policy.positions(cells()).len() > 1,
            usual: others.filter_map(commonest).collect(),
        }
    }

    /// The name of one of them.
    #[must_use]
    pub fn name(&self, cell: &CellParams) -> String {
        let [device, rw, bs, depth] = Self::ALWAYS.map(|axis| axis.text(cell));
        let mut text = format!("{device} {rw} {bs} depth {depth}");
        if self.with_policy {
            text += &format!(" {}", cell.policy);
        }
        for (axis, usual) in &self.usual {
            let own = axis.text(cell);
            if own != *usual {
                text += &format!(", {} {own}", axis.name());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;

    #[test]
    fn names_are_short_and_tell_cells_apart() {
        let mut odd = cell("inline", 4096, 8);
        odd.jobs = 4;
        let cells = [cell("inline", 4096, 1), cell("inline", 65536, 8), odd];
        let names = CellNames::of(&cells);
        assert_eq!(names.name(&cells[1]), "memory randread 64k depth 8");
        assert_eq!(names.name(&cells[2]), "memory randread 4k depth 8, jobs 4");
        let both = [cell("inline", 4096, 1), cell("adaptive", 4096, 1)];
        let names = CellNames::of(&both);
        assert_eq!(names.name(&both[1]), "memory randread 4k depth 1 adaptive");
    }
}
