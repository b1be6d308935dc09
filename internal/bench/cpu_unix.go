//go:build unix

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns what the process has used so far, in user and system mode.
func cpuTime() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
