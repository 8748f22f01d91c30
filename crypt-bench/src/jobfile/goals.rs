//! How a job behaves beyond its requests: batches, durability, what it bears, and when it has enough.

#![forbid(unsafe_code)]

use super::Refusal;
use super::settings::{Setting, Settings};
use super::value::{Units, Value, list, number};
use crate::play::{Batches, Conduct, Figure, SteadyRule, Target, Tolerance};

/// What holds for `steadystate` where only a duration is given.
const DEFAULT_STEADY: &str = "iops_slope:0.01%";

/// What a job's options say. The threads to wait for, and the groups of steady states, are left open.
///
/// # Errors
/// What contradicts itself or has no effect, at its line.
pub(super) fn conduct(settings: &Settings, depth: u32) -> Result<Conduct, Refusal> {
    let max_us = settings.time_us("max_latency").map(|time| time.0);
    let max_ns = max_us
        .filter(|us| *us > 0)
        .map(|us| us.saturating_mul(1000));
    let tolerance = settings.text("continue_on_error").unwrap_or("none");
    Ok(Conduct {
        batches: batches(settings, depth),
        target: target(settings)?,
        max_latency_ns: [max_ns; 2],
        tolerance: Tolerance {
            reads: ["read", "io", "all", "1"].contains(&tolerance),
            writes: ["write", "io", "all", "1"].contains(&tolerance),
        },
        steady: steady(settings)?.map(|rule| (0, rule)),
        durable_writes: matches!(settings.text("sync"), Some("1" | "sync" | "dsync")),
        full_flush: settings.number("fsync").is_some_and(|every| every > 0),
        after: Vec::new(),
    })
}

/// fio takes a number over the depth, and 0 where it makes no sense, for the depth.
fn batches(settings: &Settings, depth: u32) -> Batches {
    let number = |name: &str| {
        settings
            .number(name)
            .map(|number| number.min(u64::from(depth)) as u32)
    };
    let none = Batches::default();
    let whole = |number: u32| if number == 0 { depth } else { number };
    let complete_min = number("iodepth_batch_complete_min").unwrap_or(none.complete_min);
    let complete_max = number("iodepth_batch_complete_max");
    Batches {
        submit: number("iodepth_batch").map_or(none.submit, whole),
        complete_min,
        complete_max: complete_max.unwrap_or(1).max(complete_min).max(1),
        low: number("iodepth_low").map_or(none.low, whole),
    }
}

fn target(settings: &Settings) -> Result<Option<Target>, Refusal> {
    let us = |name: &str| settings.time_us(name).map_or(0, |time| time.0);
    let Some(setting) = settings
        .find("latency_target")
        .filter(|_| us("latency_target") > 0)
    else {
        return lonely(
            settings,
            &["latency_window", "latency_percentile", "latency_run"],
            "latency_target=TIME",
        );
    };
    if us("latency_window") == 0 {
        let message =
            "latency_target needs to know how long a depth is tried; add latency_window=TIME";
        return Err(Refusal::at(&setting.position, message));
    }
    let percent = match settings
        .find("latency_percentile")
        .map(|setting| &setting.value)
    {
        Some(Value::Percentiles(list)) => list.first().copied().unwrap_or(100.0),
        _ => 100.0,
    };
    Ok(Some(Target {
        latency_ns: us("latency_target").saturating_mul(1000),
        window_ns: us("latency_window").saturating_mul(1000),
        percent,
        keeps_on: settings.flag("latency_run"),
    }))
}

fn steady(settings: &Settings) -> Result<Option<SteadyRule>, Refusal> {
    let us = |name: &str| settings.time_us(name).map_or(0, |time| time.0);
    let duration = settings.find("steadystate_duration");
    let Some(duration) = duration.filter(|_| us("steadystate_duration") > 0) else {
        return lonely(
            settings,
            &["steadystate", "steadystate_ramp_time"],
            "steadystate_duration=TIME",
        );
    };
    let window_s = us("steadystate_duration") / 1_000_000;
    if window_s < 1 {
        let message =
            "steadystate_duration: write whole seconds; throughput is looked at once a second";
        return Err(Refusal::at(&duration.position, message));
    }
    let setting = settings.find("steadystate");
    let text = setting.map_or(DEFAULT_STEADY, |setting| setting.text.as_str());
    let (figure, slope, limit, percent) = criterion(text).map_err(|message| match setting {
        Some(setting) => Refusal::at(&setting.position, format!("steadystate: {message}")),
        None => Refusal::whole(message),
    })?;
    Ok(Some(SteadyRule {
        figure,
        slope,
        limit,
        percent,
        window_s,
        ramp_s: us("steadystate_ramp_time").div_ceil(1_000_000),
    }))
}

/// Options that mean nothing without another one.
fn lonely<T>(settings: &Settings, names: &[&str], missing: &str) -> Result<Option<T>, Refusal> {
    let found: Option<&Setting> = names.iter().find_map(|name| settings.find(name));
    match found {
        Some(setting) => Err(Refusal::at(
            &setting.position,
            format!("without {missing} this has no effect; add that, or remove it"),
        )),
        None => Ok(None),
    }
}

/// `iops`, `iops_slope`, `bw` or `bw_slope`, with `:limit` or `:limit%`.
fn criterion(text: &str) -> Result<(Figure, bool, f64, bool), String> {
    let form = "write iops, iops_slope, bw or bw_slope with a limit, like iops_slope:0.3%";
    let (name, limit) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` has no limit; {form}"))?;
    let (figure, slope) = match name {
        "iops" => (Figure::Iops, false),
        "iops_slope" => (Figure::Iops, true),
        "bw" => (Figure::Bandwidth, false),
        "bw_slope" => (Figure::Bandwidth, true),
        "lat" | "lat_slope" => return Err(format!("`{name}` is not supported; {form}")),
        _ => return Err(format!("`{name}` is not a criterion; {form}")),
    };
    let percent = limit.trim().strip_suffix('%');
    let value = match (percent, figure) {
        (None, Figure::Bandwidth) => number::amount(limit, Units::default()).map(|n| n as f64),
        (text, _) => list::decimal(text.unwrap_or(limit))
            .ok_or_else(|| format!("`{limit}` is not a limit; {form}")),
    };
    Ok((figure, slope, value?, percent.is_some()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn read(options: &str) -> Result<Conduct, Refusal> {
        let fake = Fake::default().file("a.fio", &format!("[a]\niodepth=32\n{options}\n"));
        let mut jobs = super::super::load(&["a.fio".to_owned()], &[], &fake)?;
        Ok(jobs.remove(0).conduct)
    }

    #[test]
    fn batches_are_bounded_by_the_depth() {
        let batches = |options| read(options).unwrap().batches;
        assert_eq!(batches(""), Batches::default());
        let all = "iodepth_batch=8\niodepth_batch_complete=4\niodepth_batch_complete_max=16\niodepth_low=2";
        let expected = Batches {
            submit: 8,
            complete_min: 4,
            complete_max: 16,
            low: 2,
        };
        assert_eq!(batches(all), expected);
        assert_eq!(batches("iodepth_batch_submit=0").submit, 32);
        assert_eq!(batches("iodepth_low=99").low, 32);
        assert_eq!(batches("iodepth_batch_complete_min=0").complete_min, 0);
    }

    #[test]
    fn errors_and_durability() {
        let tolerance = |value: &str| {
            let tolerance = read(&format!("continue_on_error={value}"))
                .unwrap()
                .tolerance;
            (tolerance.reads, tolerance.writes)
        };
        assert_eq!(tolerance("none"), (false, false));
        assert_eq!(tolerance("read"), (true, false));
        assert_eq!(tolerance("write"), (false, true));
        assert_eq!(tolerance("io"), (true, true));
        assert_eq!(tolerance("1"), (true, true));
        assert_eq!(tolerance("verify"), (false, false));
        assert!(
            !read("sync=0").unwrap().durable_writes && read("sync=dsync").unwrap().durable_writes
        );
        assert!(read("fsync=8").unwrap().full_flush && !read("fdatasync=8").unwrap().full_flush);
        let max = read("max_latency=10ms").unwrap().max_latency_ns;
        assert_eq!(max, [Some(10_000_000); 2]);
    }

    #[test]
    fn targets_and_steady_states_are_complete_or_refused() {
        let target =
            "latency_target=500us\nlatency_window=100ms\nlatency_percentile=99.9\nlatency_run=1";
        let expected = Target {
            latency_ns: 500_000,
            window_ns: 100_000_000,
            percent: 99.9,
            keeps_on: true,
        };
        assert_eq!(read(target).unwrap().target, Some(expected));
        let rule = |options: &str| read(options).unwrap().steady.unwrap().1;
        let plain = rule("ss_dur=30");
        assert_eq!(
            (plain.figure, plain.slope, plain.limit),
            (Figure::Iops, true, 0.01)
        );
        let bandwidth = rule("ss=bw:10m\nss_dur=5s\nss_ramp=2");
        assert_eq!(
            (
                bandwidth.figure,
                bandwidth.limit,
                bandwidth.percent,
                bandwidth.ramp_s
            ),
            (Figure::Bandwidth, 10_485_760.0, false, 2)
        );
        for (options, reason) in [
            ("latency_target=1ms", "a.fio:3: latency_target needs"),
            ("latency_run=1", "a.fio:3: without latency_target"),
            ("ss=iops:2%", "a.fio:3: without steadystate_duration"),
            ("ss_dur=500ms", "a.fio:3: steadystate_duration: write whole"),
            (
                "ss=lat:1%\nss_dur=9",
                "a.fio:3: steadystate: `lat` is not supported",
            ),
            (
                "ss=iops\nss_dur=9",
                "a.fio:3: steadystate: `iops` has no limit",
            ),
            (
                "ss=iops:x\nss_dur=9",
                "a.fio:3: steadystate: `x` is not a limit",
            ),
        ] {
            let refusal = read(options).unwrap_err().to_string();
            assert!(refusal.starts_with(reason), "{refusal}");
        }
    }
}
