package dump

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// WriteFileAtomic makes the file path of what write prints, such that a crash
// leaves the old file or the new one whole: it writes a temporary file in the
// same folder, syncs it, renames it and syncs the folder. On an error before
// the rename the old file stays and the temporary one is removed. The file
// has mode 0666 less the umask, as one that os.Create makes.
func WriteFileAtomic(path string, write func(io.Writer) error) error {
	f, err := createTemporary(path)
	if err != nil {
		return err
	}
	s := NewSyncedFile(f)
	err = cmp.Or(write(s), s.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// createTemporary creates a new file beside path, whose name begins with a
// dot and ends in .tmp. os.CreateTemp would give it mode 0600.
func createTemporary(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	for {
		name := filepath.Join(dir, "."+base+"."+strconv.FormatUint(rand.Uint64(), 36)+".tmp")
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
