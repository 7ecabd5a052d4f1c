galley_module(vision LAYER 3
    SOURCES vision/merger.c vision/mrope.c vision/prep.c vision/resize.c vision/vcache.c
            vision/vcache_disk.c vision/vcache_writer.c vision/vit.c vision/vit_hash.c vision/vit_job.c
            vision/window.c
    DEPS base kernels format)
