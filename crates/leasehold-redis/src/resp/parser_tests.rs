use super::*;

fn feed(parser: &mut Parser, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let room = parser.room();
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        parser.filled(count);
        bytes = &bytes[count..];
    }
}

/// Returns all values of `sent`, which comes in pieces of `piece` bytes.
fn values(sent: &[u8], piece: usize) -> Result<Vec<Value>, ParseError> {
    let mut parser = Parser::new();
    let mut values = Vec::new();
    for piece in sent.chunks(piece) {
        feed(&mut parser, piece);
        while let Some(value) = parser.next_value()? {
            values.push(value);
        }
    }
    Ok(values)
}

fn value(sent: &str) -> Value {
    let mut values = values(sent.as_bytes(), usize::MAX).unwrap();
    assert_eq!(values.len(), 1, "{sent:?}");
    values.remove(0)
}

fn bytes(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

const ALL_KINDS: &str = "$-1\r\n_\r\n*-1\r\n+OK\r\n$5\r\na\r\nbc\r\n:-2\r\n,1.5e+3\r\n#t\r\n\
    *2\r\n:1\r\n*1\r\n$0\r\n\r\n~1\r\n+a\r\n%1\r\n+k\r\n:7\r\n-NOPERM no way\r\n-ERR\r\n\
    !13\r\nNOPERM no way\r\n=8\r\ntxt:role\r\n(123\r\n|1\r\n+ttl\r\n:3\r\n:7\r\n\
    >3\r\n+message\r\n+inbox\r\n+hello\r\n*0\r\n";

fn all_values() -> Vec<Value> {
    let simple = |text: &str| Value::Simple(text.into());
    let refused = Value::error("NOPERM", "no way");
    vec![
        Value::Null,
        Value::Null,
        Value::Null,
        simple("OK"),
        bytes("a\r\nbc"),
        Value::Integer(-2),
        Value::Double(1500.0),
        Value::Integer(1),
        Value::Array(vec![Value::Integer(1), Value::Array(vec![bytes("")])]),
        Value::Array(vec![simple("a")]),
        Value::Map(vec![(simple("k"), Value::Integer(7))]),
        refused.clone(),
        Value::error("ERR", ""),
        refused,
        bytes("role"),
        bytes("123"),
        Value::Integer(7),
        Value::Push(["message", "inbox", "hello"].map(simple).into()),
        Value::Array(vec![]),
    ]
}

#[test]
fn values_are_parsed_from_any_split() {
    for piece in (1..20).chain([usize::MAX]) {
        assert_eq!(values(ALL_KINDS.as_bytes(), piece).unwrap(), all_values());
    }
}

#[test]
fn large_scores_are_exact() {
    for sent in [",9007199254740991\r\n", "$16\r\n9007199254740991\r\n"] {
        assert_eq!(value(sent).as_number(), Some(9_007_199_254_740_991.0));
    }
}

#[test]
fn values_beyond_the_buffer_are_read() {
    let long = "x".repeat(3 * ROOM + 1);
    let sent = format!(
        ":1\r\n${}\r\n{long}\r\n*1\r\n${}\r\n{long}\r\n:2\r\n",
        long.len(),
        long.len()
    );
    let expected = [
        Value::Integer(1),
        bytes(&long),
        Value::Array(vec![bytes(&long)]),
        Value::Integer(2),
    ];
    for piece in [1, 1000, usize::MAX] {
        assert_eq!(values(sent.as_bytes(), piece).unwrap(), expected);
    }
}

#[test]
fn buffer_shrinks_after_a_long_value() {
    let mut parser = Parser::new();
    let long = format!("${}\r\n{}\r\n", 4 * ROOM, "x".repeat(4 * ROOM));
    feed(&mut parser, long.as_bytes());
    assert!(parser.next_value().unwrap().is_some());
    assert_eq!(parser.room().len(), ROOM);
}

#[test]
fn buffer_does_not_grow_for_many_short_values() {
    let mut parser = Parser::new();
    for _ in 0..ROOM {
        feed(&mut parser, b":1\r\n:2");
        assert_eq!(parser.next_value(), Ok(Some(Value::Integer(1))));
        assert_eq!(parser.next_value(), Ok(None));
        feed(&mut parser, b"\r\n");
        assert_eq!(parser.next_value(), Ok(Some(Value::Integer(2))));
    }
    assert_eq!(parser.buffer.len(), ROOM);
}

#[test]
fn malformed_bytes_are_refused() {
    let deep = "*1\r\n".repeat(DEPTH_MAX + 1) + ":1\r\n";
    let very_deep = "*1\r\n".repeat(100_000) + ":1\r\n";
    let attributes = "|0\r\n".repeat(100_000) + ":1\r\n";
    let long = format!("+{}\r\n", "x".repeat(LINE_MAX));
    for wrong in [
        "HTTP/1.1 400 Bad Request\r\n",
        "$3\r\nabcde\r\n",
        "$-2\r\n",
        "*-1x\r\n",
        "$99999999999999999999\r\n",
        ":seven\r\n",
        "+a\n",
        "%-1\r\n",
        ">-1\r\n",
        "=2\r\nab\r\n",
        "*1\r\n>1\r\n+a\r\n",
        &deep,
        &very_deep,
        &attributes,
        &long,
    ] {
        for piece in [1, usize::MAX] {
            let read = values(wrong.as_bytes(), piece);
            let shown = &wrong[..wrong.len().min(40)];
            assert_eq!(read, Err(ParseError::Malformed), "{shown:?}");
        }
    }
}

#[test]
fn announced_lengths_are_not_believed() {
    for wrong in [
        "$9999999\r\n",
        "*9999999\r\n",
        "%1500000\r\n",
        "|1500000\r\n",
        ">9999999\r\n",
        "!9999999\r\n",
        "*18446744073709551615\r\n",
        "%18446744073709551615\r\n",
        "$18446744073709551615\r\n",
        "*2\r\n$8000000\r\n",
    ] {
        let sent = match wrong {
            // The second item starts where 8 MB are read.
            "*2\r\n$8000000\r\n" => format!("{wrong}{}\r\n$500000\r\n", "x".repeat(8_000_000)),
            _ => wrong.to_owned(),
        };
        for piece in [4096, usize::MAX] {
            let read = values(sent.as_bytes(), piece);
            assert!(matches!(read, Err(ParseError::TooLong(_))), "{wrong:?}");
        }
    }
}

#[test]
fn endless_values_end_at_the_limit() {
    let mut parser = Parser::new();
    feed(&mut parser, b"*2700000\r\n");
    let items = ":1\r\n".repeat(1000);
    let mut sent = 0;
    let error = loop {
        feed(&mut parser, items.as_bytes());
        sent += items.len();
        match parser.next_value() {
            Ok(value) => assert!(value.is_none()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ParseError::TooLong(_)), "{error:?}");
    assert!(sent < Parser::VALUE_MAX + 2 * items.len());
}

#[test]
fn announced_items_reserve_little() {
    let Err(stop) = read(b"*2000000\r\n") else {
        panic!("read");
    };
    assert_eq!(stop, Stop::Incomplete);
    let whole = format!("*2000000\r\n{}", ":1\r\n".repeat(2_000_000));
    let (value, _) = read(whole.as_bytes()).unwrap();
    assert_eq!(value.as_array().map(<[Value]>::len), Some(2_000_000));
}

/// Random bytes of the protocol's alphabet find what no list names.
#[test]
fn random_bytes_are_read_alike_in_pieces() {
    let alphabet = b"$:+*~%,_#-!=(|>0123\r\n\r\n\r\n\r\nat:1.";
    let mut state: u64 = 42;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let length = draw(40);
        let sent: Vec<u8> = (0..length)
            .map(|_| alphabet[draw(alphabet.len())])
            .collect();
        // A value in pieces is refused once it is whole, perhaps later.
        if let Ok(whole) = values(&sent, usize::MAX) {
            assert_eq!(values(&sent, 1), Ok(whole), "{sent:?}");
        }
    }
}
