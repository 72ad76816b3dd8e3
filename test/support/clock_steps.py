"""A system clock that a test sets, for processes that it starts: a library put before libc's."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
import struct
import subprocess

SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset_ns;

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("CLOCK_OFFSET_FILE");
  int handle = file ? open(file, O_RDONLY) : -1;
  if (handle < 0) return;
  void *found = mmap(0, sizeof *offset_ns, PROT_READ, MAP_SHARED, handle, 0);
  if (found != MAP_FAILED) offset_ns = found;
  close(handle);
}

int clock_gettime(clockid_t id, struct timespec *now) {
  int status = syscall(SYS_clock_gettime, id, now);
  if (status == 0 && id == CLOCK_REALTIME && offset_ns) {
    int64_t ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + *offset_ns;
    now->tv_sec = ns / INT64_C(1000000000);
    now->tv_nsec = ns % INT64_C(1000000000);
  }
  return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  int status = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return status;
}

time_t time(time_t *into) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (into) *into = precise.tv_sec;
  return precise.tv_sec;
}
"""


class SystemClock:
    """The clock of every process that is started with `environment`."""

    def __init__(self, folder: Path) -> None:
        """Build the library in a folder; needs a C compiler."""
        source, library = folder / 'clock.c', folder / 'clock.so'
        source.write_text(SOURCE)
        command = ['cc', '-shared', '-fPIC', '-O2', '-o', str(library), str(source)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        self._file = folder / 'offset'
        self._file.write_bytes(bytes(8))
        with self._file.open('r+b') as file:
            self._shared = mmap.mmap(file.fileno(), 8)
        before = os.environ.get('LD_PRELOAD', '')
        self.environment = {
            'LD_PRELOAD': f'{library} {before}'.strip(),
            'CLOCK_OFFSET_FILE': str(self._file),
        }

    def set_off(self, seconds: float) -> None:
        """Set the clock so far ahead of the real one, at once, for all of them."""
        self._shared[:] = struct.pack('q', round(seconds * 1e9))
