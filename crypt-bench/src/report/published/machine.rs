//! Sections for programs.

#![forbid(unsafe_code)]

use serde_json::{Value, json};

use super::render::label;
use super::{Instant, Row, Section, Table};

/// All sections for programs: numbers with their units in the keys, null where there is none.
#[must_use]
pub fn json(sections: &[Section]) -> Value {
    let one = |section: &Section| {
        let plan = &section.preset.plan;
        let shows = plan.show.iter().map(|show| show.measure.name);
        json!({
            "preset": section.preset.name,
            "title": plan.title,
            "published_by": plan.source,
            "published_on": plan.hardware,
            "notes": plan.notes,
            "simulated_on": section.simulated_on,
            "tables": section.tables.iter().zip(shows).map(|(table, name)| table_json(section, table, name)).collect::<Vec<_>>(),
            "instant": section.instant.iter().map(instant_json).collect::<Vec<_>>(),
        })
    };
    sections.iter().map(one).collect()
}

fn table_json(section: &Section, table: &Table, name: &str) -> Value {
    let row = |row: &Row| {
        let mut object = serde_json::Map::new();
        object.insert("figures".to_owned(), json!(label(section, row)));
        for (key, text) in table.keys.iter().zip(&row.keys) {
            object.insert(key.clone(), json!(text));
        }
        for (column, field) in table.columns.iter().zip(&row.cells) {
            let key = if column == "%change" {
                "change_percent"
            } else {
                column
            };
            object.insert(key.to_owned(), json!(field.cell.value()));
        }
        Value::Object(object)
    };
    json!({ "measure": name, "rows": table.rows.iter().map(row).collect::<Vec<_>>() })
}

fn instant_json(instant: &Instant) -> Value {
    let [p5, p50, p95] = instant.p5_p50_p95;
    json!({
        "workload": instant.workload,
        "column": instant.column,
        "slice_ns": instant.slice_ns,
        "slices": instant.slices,
        "repeats": instant.repeats,
        "mib_s_p5": p5,
        "mib_s_p50": p50,
        "mib_s_p95": p95,
        "autocorrelation": instant.correlation,
        "dip": instant.dip,
        "dip_p_value": instant.p_value,
        "dip_p_value_thinned": instant.p_value_thinned,
        "verdict": instant.verdict.words(),
        "two_means_mib_s": instant.modes.map(|(low, high)| [low, high]),
        "histogram_slices": instant.bars,
        "histogram_mib_s": [instant.bars_range.0, instant.bars_range.1],
    })
}
