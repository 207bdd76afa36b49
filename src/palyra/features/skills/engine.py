"""Engine that compiles and runs modules: the one configuration of wasmtime. Light, because the
compiling process imports it too.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import wasmtime

_STACK = 512 << 10


def new_engine() -> "wasmtime.Engine":
    import wasmtime

    config = wasmtime.Config()
    config.consume_fuel = True
    config.epoch_interruption = True
    config.max_wasm_stack = _STACK
    # Same input, same output on every machine.
    config.cranelift_nan_canonicalization = True
    config.parallel_compilation = False
    # What the ABI does not need is not there to be attacked.
    config.wasm_threads = config.shared_memory = False
    config.wasm_memory64 = config.wasm_multi_memory = config.wasm_custom_page_sizes = False
    config.wasm_gc = config.wasm_function_references = config.wasm_exceptions = (
        config.wasm_stack_switching
    ) = False
    config.wasm_relaxed_simd = config.wasm_wide_arithmetic = False
    return wasmtime.Engine(config)
