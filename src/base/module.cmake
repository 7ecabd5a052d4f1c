galley_module(base LAYER 0
    SOURCES src/base/arena.c src/base/buf.c src/base/cgroup.c src/base/clock.c src/base/cp.c src/base/err.c
            src/base/half.c src/base/hash.c src/base/image.c src/base/json.c src/base/log.c
            src/base/map.c src/base/mem.c src/base/path.c src/base/pool.c src/base/rng.c
            src/base/utf8.c
    LIBS PkgConfig::cjson PkgConfig::nettle Threads::Threads)
