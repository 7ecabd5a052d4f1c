# Measurements, not tests: built with them, run by hand (README and docs say how).
add_executable(bench_veto tests/bench/veto.c)
target_link_libraries(bench_veto PRIVATE document)
add_executable(bench_steps tests/bench/steps.c)
target_link_libraries(bench_steps PRIVATE engine)
add_executable(bench_tokens tests/bench/bench_tokens.c)
target_link_libraries(bench_tokens PRIVATE galley_core PkgConfig::cjson)
