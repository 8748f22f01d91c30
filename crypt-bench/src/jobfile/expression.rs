//! Arithmetic in values: `( ) + - * / % ^` over whole numbers, as fio takes it between parentheses.

#![forbid(unsafe_code)]

/// Deepest nesting.
const MOST_DEPTH: usize = 64;

/// Computes an expression whose numbers, with their suffixes, `number` reads.
///
/// # Errors
/// A text that is no expression, a division by zero, a number over 126 bits; in words.
pub(super) fn evaluate(
    text: &str,
    number: impl Fn(&str) -> Result<i128, String>,
) -> Result<i128, String> {
    let mut parser = Parser {
        rest: text.trim_start(),
        depth: 0,
        number,
    };
    let value = parser.sum()?;
    if parser.rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("`{}` is left over", parser.rest))
    }
}

/// A number without a suffix.
pub(super) fn plain_number(text: &str) -> Result<i128, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number"))
}

struct Parser<'a, F> {
    rest: &'a str,
    depth: usize,
    number: F,
}

impl<F: Fn(&str) -> Result<i128, String>> Parser<'_, F> {
    fn sum(&mut self) -> Result<i128, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let other = self.product()?;
            value = checked(match sign {
                '+' => value.checked_add(other),
                _ => value.checked_sub(other),
            })?;
        }
        self.depth -= 1;
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let other = self.power()?;
            if other == 0 && sign != '*' {
                return Err("a division by zero".to_owned());
            }
            value = checked(match sign {
                '*' => value.checked_mul(other),
                '/' => value.checked_div(other),
                _ => value.checked_rem(other),
            })?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.operand()?;
        if self.take(&['^']).is_none() {
            return Ok(base);
        }
        let exponent = u32::try_from(self.operand()?).map_err(|_| "a negative power".to_owned())?;
        checked(base.checked_pow(exponent))
    }

    fn operand(&mut self) -> Result<i128, String> {
        if self.take(&['-']).is_some() {
            self.depth += 1;
            if self.depth > MOST_DEPTH {
                return Err("nested too deeply".to_owned());
            }
            let value = checked(self.operand()?.checked_neg());
            self.depth -= 1;
            return value;
        }
        if self.take(&['(']).is_some() {
            let value = self.sum()?;
            return match self.take(&[')']) {
                Some(_) => Ok(value),
                None => Err("`(` without `)`".to_owned()),
            };
        }
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric() && c != '.')
            .unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        if text.is_empty() {
            return Err("a number is missing".to_owned());
        }
        self.rest = rest.trim_start();
        (self.number)(text)
    }

    fn take(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.rest.chars().next().filter(|c| signs.contains(c))?;
        self.rest = self.rest[sign.len_utf8()..].trim_start();
        Some(sign)
    }
}

fn checked(value: Option<i128>) -> Result<i128, String> {
    value.ok_or_else(|| "the number is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn operators_bind_as_in_arithmetic() {
        for (text, value) in [
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("2^10", 1024),
            ("10-4-3", 3),
            ("17%5", 2),
            ("-2+5", 3),
            (" ( 8 / 2 ) ", 4),
        ] {
            assert_eq!(evaluate(text, plain_number), Ok(value), "{text}");
        }
        for text in ["", "1+", "(1", "1)", "1/0", "2^-1", "9^999", "x", "1 2"] {
            assert!(evaluate(text, plain_number).is_err(), "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(
            evaluate(&deep, plain_number)
                .unwrap_err()
                .contains("nested")
        );
        assert!(evaluate(&"-".repeat(100_000), plain_number).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+*/%^() 0-9a-zé.]{0,40}") {
            let _ = evaluate(&text, plain_number);
        }
    }
}
