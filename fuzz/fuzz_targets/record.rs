#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| git_claim::fuzzing::run("record", input));
