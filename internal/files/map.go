package files

import (
	"errors"
	"io"
	"os"
	"sync"
	"unsafe"

	"github.com/ibweave/ibweave/internal/par"
)

// mapped has the files that ReadAll maps while calls of WithMaps run.
var mapped struct {
	sync.Mutex
	calls int
	list  []mapping
}

type mapping struct {
	name string
	info os.FileInfo // when it was mapped
	data []byte
}

// WithMaps calls f. Meanwhile ReadAll maps regular files of more than
// StartSize bytes instead of reading them: what it returns must not be used
// afterwards. If a page is gone, since somebody cut such a file short, f ends
// with a *RefusedError. That holds for the goroutine of f and those of package
// par: others must not touch these files. Another panic of f is a *par.Panic.
func WithMaps(f func() error) error {
	mapped.Lock()
	mapped.calls++
	mapped.Unlock()
	err := par.Catch(f)
	mapped.Lock()
	defer mapped.Unlock()
	if p, ok := errors.AsType[*par.Panic](err); ok {
		if fault, ok := p.Value.(interface{ Addr() uintptr }); ok {
			for _, m := range mapped.list {
				if at := fault.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(m.data))); at < uintptr(len(m.data)) {
					err = changed(m.name)
				}
			}
		}
	}
	if mapped.calls--; mapped.calls == 0 {
		for _, m := range mapped.list {
			unmapPages(m.data)
		}
		mapped.list = nil
	}
	return err
}

func changed(name string) error {
	return &RefusedError{name, "was changed while it was read; want a file that no program writes meanwhile"}
}

// readMapped is ReadAll by a mapping. It returns nil if the file is small, compressed
// or not regular, if it was read in part, or if the system has no mappings.
func readMapped(name string, f *os.File, limit Limit) ([]byte, error) {
	mapped.Lock()
	defer mapped.Unlock()
	info, err := f.Stat()
	at, _ := f.Seek(0, io.SeekCurrent)
	if mapped.calls == 0 || err != nil || !info.Mode().IsRegular() || info.Size() <= StartSize || at != 0 {
		return nil, nil
	}
	start := make([]byte, StartSize)
	if _, err := f.ReadAt(start, 0); err != nil || compression(start) != "" {
		return nil, nil // reading meets the error
	}
	switch most, err := limit(start); {
	case err != nil:
		return nil, &RefusedError{name, err.Error()}
	case info.Size() > most:
		return nil, tooLarge(name, most)
	}
	data, err := mapPages(f, int(info.Size()))
	if err != nil {
		return nil, nil
	}
	mapped.list = append(mapped.list, mapping{name, info, data})
	return data, nil
}

// CheckUnchanged returns a *RefusedError if a file that ReadAll
// mapped has another size or time now: it was written to, and what was read may be partly
// old and partly new. Another file that has its name now is no error.
func CheckUnchanged(name string) error {
	mapped.Lock()
	defer mapped.Unlock()
	now, err := os.Stat(name)
	for _, m := range mapped.list {
		if m.name == name && err == nil && os.SameFile(now, m.info) && (now.Size() != m.info.Size() || !now.ModTime().Equal(m.info.ModTime())) {
			return changed(name)
		}
	}
	return nil
}
