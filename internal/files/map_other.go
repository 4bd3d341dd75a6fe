//go:build !linux && !darwin

package files

import (
	"errors"
	"os"
)

func mapPages(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapPages([]byte) {}
