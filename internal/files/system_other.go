//go:build !linux

package files

import (
	"errors"
	"io/fs"
	"os"
)

// descriptors is the folder of this process's descriptors on macOS, where opening one of them
// continues it.
const descriptors = "/dev/fd"

func duplicate(_ int, name string) (*os.File, error) { return os.OpenFile(name, os.O_WRONLY, 0) }

// writable leaves it to the opening of the file.
func writable(string) error { return nil }

// keepOwner fails, so that an old file is overwritten, with its owner and ACL.
func keepOwner(*os.File, string, fs.FileInfo) error { return errors.ErrUnsupported }

func reserve(*os.File, int64) error { return nil }
