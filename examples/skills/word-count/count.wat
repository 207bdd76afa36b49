;; Counts words, lines and characters. Its input is {"text":"..."} as JSON without spaces: the schema allows nothing else.
(module
  (memory (export "memory") 1)
  ;; The first page begins with what is printed; everything handed out lies behind it and is never given back: a call gets a new
  ;; instance, so there is nothing to tidy up.
  (global $free (mut i32) (i32.const 1024))
  (func $alloc (export "alloc") (param $size i32) (result i32)
    (local $start i32) (local $end i32) (local $missing i32)
    (local.set $start (global.get $free))
    (local.set $end (i32.add (local.get $start) (local.get $size)))
    (local.set $missing (i32.sub (local.get $end) (i32.mul (memory.size) (i32.const 65536))))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then
        (if (i32.eq (memory.grow (i32.div_u (i32.add (local.get $missing) (i32.const 65535)) (i32.const 65536))) (i32.const -1))
          (then unreachable))))
    (global.set $free (local.get $end))
    (local.get $start))

  ;; --- counting, one character at a time -----------------------------------------------------------------------------
  (global $words (mut i32) (i32.const 0))
  (global $lines (mut i32) (i32.const 0))
  (global $characters (mut i32) (i32.const 0))
  (global $inside (mut i32) (i32.const 0)) ;; of a word
  (global $open (mut i32) (i32.const 0)) ;; a line that has not ended yet
  (func $see (param $char i32)
    (global.set $characters (i32.add (global.get $characters) (i32.const 1)))
    (global.set $open (i32.ne (local.get $char) (i32.const 10)))
    (global.set $lines (i32.add (global.get $lines) (i32.eqz (global.get $open))))
    ;; Space, and tab to carriage return.
    (if (i32.or
          (i32.eq (local.get $char) (i32.const 32))
          (i32.lt_u (i32.sub (local.get $char) (i32.const 9)) (i32.const 5)))
      (then (global.set $inside (i32.const 0)))
      (else
        (global.set $words (i32.add (global.get $words) (i32.eqz (global.get $inside))))
        (global.set $inside (i32.const 1)))))

  ;; --- printing: an answer is put together from offset 256 on ---------------------------------------------------------
  (data (i32.const 0) "{\"words\":")
  (data (i32.const 16) ",\"lines\":")
  (data (i32.const 32) ",\"characters\":")
  (data (i32.const 48) "}")
  (global $out (mut i32) (i32.const 256))
  (func $puts (param $from i32) (param $size i32)
    (memory.copy (global.get $out) (local.get $from) (local.get $size))
    (global.set $out (i32.add (global.get $out) (local.get $size))))
  (func $putn (param $n i32)
    (if (i32.ge_u (local.get $n) (i32.const 10))
      (then (call $putn (i32.div_u (local.get $n) (i32.const 10)))))
    (i32.store8 (global.get $out) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
    (global.set $out (i32.add (global.get $out) (i32.const 1))))
  (func $answer (result i64)
    (call $puts (i32.const 0) (i32.const 9)) (call $putn (global.get $words))
    (call $puts (i32.const 16) (i32.const 9)) (call $putn (i32.add (global.get $lines) (global.get $open)))
    (call $puts (i32.const 32) (i32.const 14)) (call $putn (global.get $characters))
    (call $puts (i32.const 48) (i32.const 1))
    ;; Where the answer is and how long it is, in one number.
    (i64.or
      (i64.shl (i64.const 256) (i64.const 32))
      (i64.extend_i32_u (i32.sub (global.get $out) (i32.const 256)))))

  ;; --- reading a JSON string -----------------------------------------------------------------------------------------
  ;; The character that an escape stands for, as far as counting cares: line end, tab, or something visible.
  (func $escaped (param $letter i32) (result i32)
    (if (i32.eq (local.get $letter) (i32.const 0x6e)) (then (return (i32.const 10)))) ;; n
    (if (i32.or (i32.eq (local.get $letter) (i32.const 0x74)) (i32.eq (local.get $letter) (i32.const 0x72))) ;; t, r
      (then (return (i32.const 9))))
    (i32.const 0x78))

  (func (export "call") (param $at i32) (param $size i32) (result i64)
    (local $end i32) (local $byte i32)
    (local.set $end (i32.sub (i32.add (local.get $at) (local.get $size)) (i32.const 2))) ;; before "}
    (local.set $at (i32.add (local.get $at) (i32.const 9))) ;; behind {"text":"
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.eq (local.get $byte) (i32.const 0x5c)) ;; a backslash
          (then
            (local.set $byte (i32.load8_u (local.get $at)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (if (i32.eq (local.get $byte) (i32.const 0x75)) ;; u and four digits
              (then (local.set $at (i32.add (local.get $at) (i32.const 4)))))
            (call $see (call $escaped (local.get $byte)))
            (br $next)))
        ;; The second and later bytes of a character in UTF-8 do not count.
        (if (i32.ne (i32.and (local.get $byte) (i32.const 0xc0)) (i32.const 0x80))
          (then (call $see (local.get $byte))))
        (br $next)))
    (call $answer)))
