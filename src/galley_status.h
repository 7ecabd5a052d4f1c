/* galley_status.h - every result code of Galley, in one list.
 *
 * Installed beside galley.h.  Zero is success, everything else negative; the
 * text is what galley_status_text of galley.h returns.  Add at the end, never renumber. */
#ifndef GALLEY_STATUS_H
#define GALLEY_STATUS_H

#define GALLEY_STATUS_MAP(X)                                \
    X(OK, 0, "ok")                                          \
    X(ENOMEM, -1, "out of memory")                          \
    X(EINPUT, -2, "malformed or hostile input")             \
    X(EUNSUP, -3, "valid, but not supported by this build") \
    X(ELIMIT, -4, "over a limit")                           \
    X(EIO, -5, "cannot read or write")                      \
    X(EMODEL, -6, "model missing or bad")                   \
    X(EENCRYPTED, -7, "encrypted: a password is needed")    \
    X(ECANCELLED, -8, "cancelled")                          \
    X(ETIMEOUT, -9, "took longer than its time limit")      \
    X(EDEVICE, -10, "device failure")                       \
    X(EUSAGE, -11, "wrong use")                             \
    X(EINTERNAL, -12, "internal error")

enum galley_status {
#define X(name, value, text) GALLEY_##name = (value),
    GALLEY_STATUS_MAP(X)
#undef X
};

#define GALLEY_ERR_MAX 512

/* One failure: the code and one sentence with the numbers in it, fit for a log
 * line.  Zero-initialise; an unset error has an empty msg. */
struct galley_err {
    enum galley_status status;
    char msg[GALLEY_ERR_MAX];
};

#endif
