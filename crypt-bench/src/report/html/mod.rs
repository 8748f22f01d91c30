//! One self-contained HTML file: it opens from disk, asks no network, and works without its script.
//!
//! The first screen is the verdict and one picture. Below lie the heat maps (the script shows those
//! that the reader picks; without it all are shown), a table of every number, the environment and
//! how the run was made. Every string from outside is escaped; the content security policy of the
//! page forbids everything that is not in the file.

#![forbid(unsafe_code)]

mod environment;
mod figures;
mod table;

use super::decisions;
use super::escape::escape;
use super::model::Report;
use super::published;
use super::scaling::Scaling;
use super::verdict::Verdict;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The page. The same report gives the same bytes.
#[must_use]
pub fn page(report: &Report<'_>) -> String {
    let verdict = Verdict::of(report);
    let title = title(report);
    let sections = published::sections(report);
    let decided = decisions::sections(report);
    let scaling = Scaling::of(report);
    [
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n",
        "<link rel=\"icon\" href=\"data:,\">\n<title>",
        &escape(&title),
        "</title>\n<style>\n",
        STYLE,
        "</style>\n</head>\n<body>\n",
        &header(
            report,
            &[
                (!sections.is_empty(), "published", "Published"),
                (scaling.is_some(), "scaling", "Scaling"),
                (true, "maps", "Maps"),
                (!decided.is_empty(), "decisions", "Decisions"),
            ],
        ),
        "<main>\n",
        &first_screen(report, &verdict),
        &published::html(&sections),
        &scaling.map_or_else(String::new, |scaling| scaling.html()),
        &figures::maps(report),
        &decisions::html(&decided),
        &table::cells(report),
        &environment::sections(report),
        "</main>\n",
        FOOTER,
        "<script>\n",
        SCRIPT,
        "</script>\n</body>\n</html>\n",
    ]
    .concat()
}

/// A page of another kind, in the same dress and without a script; `style` is what it adds, `main` its content.
#[must_use]
pub fn simple_page(title: &str, style: &str, main: &str) -> String {
    [
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:\">\n",
        "<link rel=\"icon\" href=\"data:,\">\n<title>",
        &escape(title),
        "</title>\n<style>\n",
        STYLE,
        style,
        "</style>\n</head>\n<body>\n<header class=\"top\"><span class=\"name\">crypt-bench</span></header>\n<main>\n",
        main,
        "</main>\n</body>\n</html>\n",
    ]
    .concat()
}

const FOOTER: &str = "<footer>Made by crypt-bench from <code>results.jsonl</code> and \
     <code>manifest.json</code> of the results folder; <code>crypt-bench report DIR</code> makes it \
     again.</footer>\n";

fn title(report: &Report<'_>) -> String {
    let hosts: Vec<String> = report
        .runs
        .iter()
        .map(|run| format!("{} {}", host(run), day(&run.manifest.started)))
        .collect();
    format!("crypt-bench · {}", hosts.join(" · "))
}

fn host(run: &super::Run) -> &str {
    if run.manifest.environment.is_known() {
        &run.manifest.environment.host
    } else {
        "imported"
    }
}

/// The day of an RFC 3339 time.
fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or(time)
}

/// The head of the page, with a link to each of these sections that is there.
fn header(report: &Report<'_>, sections: &[(bool, &str, &str)]) -> String {
    let runs: Vec<String> = report
        .runs
        .iter()
        .map(|run| {
            let (host, day) = (host(run), day(&run.manifest.started));
            format!("{} · {}", escape(host), escape(day))
        })
        .collect();
    let links: String = sections
        .iter()
        .filter(|(is_there, ..)| *is_there)
        .map(|(_, id, name)| format!("<a href=\"#{id}\">{name}</a>\n"))
        .collect();
    format!(
        "<header class=\"top\"><span class=\"name\">crypt-bench</span>\
         <span class=\"quiet\">{}</span><nav aria-label=\"Sections\">{links}\
         <a href=\"#numbers\">Numbers</a><a href=\"#environment\">Environment</a>\
         <a href=\"#made\">How it was made</a></nav>\
         <button id=\"theme\" type=\"button\" aria-label=\"Switch between light and dark\" hidden>\
         Dark</button></header>\n",
        runs.join(" &amp; ")
    )
}

fn first_screen(report: &Report<'_>, verdict: &Verdict) -> String {
    format!(
        "<section class=\"verdict\" aria-label=\"Verdict\">\n<h1>{}</h1>\n<p>{}</p>\n\
         <p class=\"quiet\">{}</p>\n{}</section>\n",
        escape(&verdict.headline),
        escape(&verdict.worst),
        escape(&verdict.trust),
        figures::overview(report),
    )
}

#[cfg(test)]
mod tests;
