package blob

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/lakestream-go/lakestream/internal/base"
)

// errNotObject says that a path exists but is a folder or something else that
// this store does not keep objects in.
var errNotObject = errors.New("not a regular file")

// remedies tells what to do about the failures that an operator can mend.
var remedies = []struct {
	cause  error
	remedy string
}{
	{syscall.ENOSPC, "the disk is full: free space, then work goes on by itself"},
	{syscall.EDQUOT, "the disk quota is used up: raise it or free space, then work goes on by itself"},
	{syscall.EROFS, "the file system is read-only: mount it writable, and look in the kernel log for disk errors"},
	{os.ErrPermission, "no permission: give the user that runs this process read and write access to the folder"},
	{syscall.EMFILE, "too many open files: raise the limit of open files (ulimit -n)"},
	{syscall.EIO, "the disk reports an input/output error: look in the kernel log and check the disk"},
}

// fileError classes the failure of a file system call that had no effect.
func fileError(doing string, err error) error {
	switch {
	case isAbsent(err):
		return classify(doing, base.ErrNotFound, err)
	case errors.Is(err, os.ErrExist):
		return classify(doing, base.ErrExists, err)
	case errors.Is(err, os.ErrClosed), errors.Is(err, base.ErrClosed):
		return classify(doing, base.ErrClosed, err)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return classify(doing, base.ErrInvalid, err)
	}
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			return classify(doing, base.ErrUnavailable, fmt.Errorf("%w: %s", err, r.remedy))
		}
	}
	return classify(doing, base.ErrUnavailable, err)
}

// isAbsent reports whether err says that a path, or a folder on the way to it,
// does not exist.
func isAbsent(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
