;; Makes a slug: small letters, digits and single hyphens. Its input is {"text":"..."} as JSON without spaces.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"slug\":\"")
  ;; The first page begins with the answer's first words; everything handed out lies behind it and is never given back: a call gets a new
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

  (global $out (mut i32) (i32.const 0))
  (global $gap (mut i32) (i32.const 0)) ;; something was left out since the last letter
  (global $begun (mut i32) (i32.const 0)) ;; there is a letter
  (func $put (param $byte i32)
    (i32.store8 (global.get $out) (local.get $byte))
    (global.set $out (i32.add (global.get $out) (i32.const 1))))

  (func $in (param $byte i32) (param $first i32) (param $last i32) (result i32)
    (i32.and
      (i32.ge_u (local.get $byte) (local.get $first))
      (i32.le_u (local.get $byte) (local.get $last))))

  ;; A letter or digit goes into the slug, after a hyphen if something was left out; everything else is left out.
  (func $see (param $byte i32)
    (if (call $in (local.get $byte) (i32.const 0x41) (i32.const 0x5a)) ;; A to Z
      (then (local.set $byte (i32.add (local.get $byte) (i32.const 32)))))
    (if (i32.eqz (i32.or
          (call $in (local.get $byte) (i32.const 0x61) (i32.const 0x7a))
          (call $in (local.get $byte) (i32.const 0x30) (i32.const 0x39))))
      (then (global.set $gap (i32.const 1)) (return)))
    (if (i32.and (global.get $gap) (global.get $begun))
      (then (call $put (i32.const 0x2d))))
    (global.set $gap (i32.const 0))
    (global.set $begun (i32.const 1))
    (call $put (local.get $byte)))

  (func (export "call") (param $at i32) (param $size i32) (result i64)
    (local $end i32) (local $byte i32) (local $answer i32)
    (local.set $answer (call $alloc (i32.add (local.get $size) (i32.const 16))))
    (global.set $out (local.get $answer))
    (memory.copy (global.get $out) (i32.const 0) (i32.const 9))
    (global.set $out (i32.add (global.get $out) (i32.const 9)))
    (local.set $end (i32.sub (i32.add (local.get $at) (local.get $size)) (i32.const 2))) ;; before "}
    (local.set $at (i32.add (local.get $at) (i32.const 9))) ;; behind {"text":"
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.eq (local.get $byte) (i32.const 0x5c)) ;; an escape is never a letter: skip it
          (then
            (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x75))
              (then (local.set $at (i32.add (local.get $at) (i32.const 4)))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (local.set $byte (i32.const 32))))
        (call $see (local.get $byte))
        (br $next)))
    (call $put (i32.const 0x22))
    (call $put (i32.const 0x7d))
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $answer)) (i64.const 32))
      (i64.extend_i32_u (i32.sub (global.get $out) (local.get $answer))))))
