//! Finishes the SVG that the plotting library writes: theme colours, hatching, accessibility, size.
//!
//! The library knows literal colours only, so charts draw with the marker colours below and
//! [`finish`] replaces them: text takes the colour of the page (`currentColor`), hatched cells a
//! pattern. A marker is matched with its quotes, which text content can't contain, so a hostile
//! label can't be mistaken for one. Output depends on the input alone, byte for byte.

#![forbid(unsafe_code)]

use super::escape::escape;
use super::palette::Rgb;

/// Text and lines in the colour of the page.
pub(super) const INK: Rgb = Rgb(1, 1, 1);

/// Text and lines in the quieter colour of the page.
pub(super) const MUTED: Rgb = Rgb(2, 2, 2);

/// Fill of an invalid cell.
pub(super) const HATCH_INVALID: Rgb = Rgb(3, 3, 3);

/// Fill of a missing cell.
pub(super) const HATCH_MISSING: Rgb = Rgb(4, 4, 4);

/// Family that the library is asked for; the page's own takes its place.
pub(super) const FONT: &str = "chart";

/// What [`finish`] adds to a drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finish<'a> {
    /// Prefix of the ids inside, unique on the page: letters, digits and `-`.
    pub(super) id: &'a str,
    /// Short name of the picture.
    pub(super) title: &'a str,
    /// Its content in words.
    pub(super) description: &'a str,
    /// Whether the picture stands alone, with a background and colours of its own.
    pub(super) standalone: bool,
}

/// The finished SVG element.
#[must_use]
pub(super) fn finish(raw: &str, size: (u32, u32), finish: &Finish<'_>) -> String {
    let id: String = finish
        .id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let body = raw
        .split_once('\n')
        .map_or("", |(_, body)| body)
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(" dy=\"0.5ex\"", " dy=\".35em\"")
        .replace(&format!(" font-family=\"{FONT}\""), "")
        .replace(&format!("\"{INK}\""), "\"currentColor\"")
        .replace(&format!("\"{MUTED}\""), "\"var(--chart-muted,#6b7280)\"")
        .replace(
            &format!("\"{HATCH_INVALID}\""),
            &format!("\"url(#{id}-x)\""),
        )
        .replace(
            &format!("\"{HATCH_MISSING}\""),
            &format!("\"url(#{id}-m)\""),
        );
    let (width, height) = size;
    let extra = if finish.standalone { STANDALONE } else { "" };
    format!(
        "<svg class=\"chart\" style=\"--w:{width}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{title}. {description}\" \
         font-family=\"{FAMILY}\">\n<title>{title}</title>\n<defs>{invalid}{missing}</defs>\n{extra}{body}",
        title = escape(finish.title),
        description = escape(finish.description),
        invalid = hatch(&format!("{id}-x"), true),
        missing = hatch(&format!("{id}-m"), false),
    )
}

/// Fonts of the reader's own system, in a single-quoted form that fits an attribute.
const FAMILY: &str = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif";

/// Background and colours of a picture that stands alone, for light and dark readers.
const STANDALONE: &str = "<style>svg{color:#1c2430;--chart-muted:#5a6472;--chart-paper:#fff}\
@media(prefers-color-scheme:dark){svg{color:#e6eaf0;--chart-muted:#9aa5b4;--chart-paper:#12161c}}\
</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"var(--chart-paper,#fff)\"/>\n";

/// Diagonal lines; crossed for what is invalid, single for what is missing.
fn hatch(id: &str, crossed: bool) -> String {
    let cross = if crossed { "M0,8L8,0" } else { "" };
    format!(
        "<pattern id=\"{id}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
         <path d=\"M-2,6L2,10M0,0L8,8M6,-2L10,2{cross}\" stroke=\"currentColor\" \
         stroke-opacity=\".35\" fill=\"none\"/></pattern>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINISH: Finish<'_> = Finish {
        id: "a\"b<1",
        title: "A & B",
        description: "say \"hi\"",
        standalone: false,
    };

    #[test]
    fn ids_titles_and_descriptions_can_not_break_out() {
        let svg = finish("<svg>\n</svg>\n", (10, 20), &FINISH);
        assert!(svg.contains("id=\"ab1-x\""), "{svg}");
        assert!(svg.contains("<title>A &amp; B</title>"));
        assert!(svg.contains("say &quot;hi&quot;"));
        assert!(svg.ends_with("</svg>\n"));
    }

    #[test]
    fn marker_colours_become_the_colours_of_the_page() {
        let raw = "<svg>\n<rect fill=\"#010101\"/><text>#010101</text>\n</svg>\n";
        let svg = finish(raw, (1, 1), &FINISH);
        assert!(svg.contains("fill=\"currentColor\""));
        assert!(svg.contains("<text>#010101</text>"), "text is left alone");
    }

    #[test]
    fn only_a_picture_that_stands_alone_has_a_style() {
        let inline = finish("<svg>\n</svg>\n", (1, 1), &FINISH);
        let alone = finish(
            "<svg>\n</svg>\n",
            (1, 1),
            &Finish {
                standalone: true,
                ..FINISH
            },
        );
        assert!(!inline.contains("<style>"));
        assert!(alone.contains("prefers-color-scheme:dark"));
    }
}
