//! The 128 random bits that make two claims different objects.
//!
//! The bits come in as a value; this module only writes and reads them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A token, written as 32 lower-case hexadecimal digits. It identifies a claim and is no secret: anyone who can read
/// the remote can read it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Token([u8; 16]);

/// The text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token is 32 hexadecimal digits")]
pub struct TokenError;

impl Token {
    /// A token of these bits, which the caller drew at random.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Token(bytes)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

impl FromStr for Token {
    type Err = TokenError;

    /// Reads 32 hexadecimal digits of either case.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        if text.len() != 32 {
            return Err(TokenError);
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Token(bytes))
    }
}

fn digit(letter: u8) -> Result<u8, TokenError> {
    match letter {
        b'0'..=b'9' => Ok(letter - b'0'),
        b'a'..=b'f' => Ok(letter - b'a' + 10),
        b'A'..=b'F' => Ok(letter - b'A' + 10),
        _ => Err(TokenError),
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.to_string()
    }
}

impl TryFrom<String> for Token {
    type Error = TokenError;

    fn try_from(text: String) -> Result<Self, TokenError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_32_hexadecimal_digits_are_a_token() {
        for broken in
            ["", "5e1f0c", &"g".repeat(32), &"0".repeat(31), &"0".repeat(33), &"é".repeat(16)]
        {
            assert_eq!(broken.parse::<Token>(), Err(TokenError), "{broken:?}");
        }
        assert_eq!("AB".repeat(16).parse::<Token>(), Ok(Token([0xab; 16])));
        assert_eq!(format!("{:?}", Token([0xab; 16])), format!("Token({})", "ab".repeat(16)));
    }

    proptest! {
        #[test]
        fn text_and_json_keep_every_bit(bytes: [u8; 16]) {
            let token = Token::from_bytes(bytes);
            prop_assert_eq!(token.to_string().parse(), Ok(token));
            let json = serde_json::to_string(&token)?;
            prop_assert_eq!(&json, &format!("\"{token}\""));
            prop_assert_eq!(serde_json::from_str::<Token>(&json)?, token);
        }

        #[test]
        fn any_text_is_a_token_or_an_error(text: String) {
            if let Ok(token) = text.parse::<Token>() {
                prop_assert_eq!(token.to_string(), text.to_ascii_lowercase());
            }
        }
    }
}
