package files

import (
	"errors"
	"os"
	"sync/atomic"
)

// SyncedFile writes a new file that is to be on the disk when Close returns. What is
// larger than a block goes there past the page cache where the file system can do
// that (O_DIRECT): the cache would hold gigabytes that are not read again soon,
// and the disk would have nothing to do until they are synced. The disk writes one
// block while the caller fills the next.
//
// It is not for several goroutines at a time.
type SyncedFile struct {
	file   *os.File // for the end of the file, and all of it where direct is nil
	direct *os.File
	tried  bool // whether it has been tried to open direct
	block  []byte
	n      int   // bytes of block
	at     int64 // where block will stand in the file

	free   chan []byte
	full   chan diskBlock
	done   chan error
	failed atomic.Pointer[error] // the first error of the writer
}

// diskBlock is a block on its way to the disk.
type diskBlock struct {
	data []byte
	at   int64
}

// The size of blocks, a multiple of what any disk wants, and how many there are.
const (
	blockSize = 4 << 20
	blocks    = 3
)

// NewSyncedFile writes to f, which is new, empty and open for writing. It owns f.
func NewSyncedFile(f *os.File) *SyncedFile { return &SyncedFile{file: f} }

// Write takes p over. Its errors are those of writing what earlier calls gave.
func (s *SyncedFile) Write(p []byte) (int, error) {
	taken := 0
	for len(p) > 0 {
		if s.block == nil {
			if err := s.next(); err != nil {
				return taken, err
			}
		}
		n := copy(s.block[s.n:], p)
		p, s.n, taken = p[n:], s.n+n, taken+n
		if s.n == len(s.block) {
			s.full <- diskBlock{s.block, s.at}
			s.at += int64(s.n)
			s.block, s.n = nil, 0
		}
	}
	return taken, nil
}

// next takes a free block, and starts the writer before the first.
func (s *SyncedFile) next() error {
	if s.free == nil {
		s.free, s.full, s.done = make(chan []byte, blocks), make(chan diskBlock, blocks), make(chan error, 1)
		for range blocks {
			s.free <- nil
		}
		go s.drain()
	}
	b := <-s.free
	var err error
	if failed := s.failed.Load(); failed != nil {
		err = *failed
	} else if b == nil {
		b, err = newBlock()
	}
	if err != nil {
		s.free <- b
		return err
	}
	s.block = b
	return nil
}

// drain writes blocks until there are no more, and gives the first error to done.
// After one it goes on to take blocks, so that waiters are always released.
func (s *SyncedFile) drain() {
	var err error
	for b := range s.full {
		if err == nil {
			if err = s.writeBlock(b); err != nil {
				s.failed.Store(&err)
			}
		}
		s.free <- b.data
	}
	s.done <- err
}

// writeBlock writes a whole block.
func (s *SyncedFile) writeBlock(b diskBlock) error {
	if !s.tried {
		s.tried = true
		s.direct = openDirect(s.file.Name())
	}
	if s.direct != nil {
		_, err := s.direct.WriteAt(b.data, b.at)
		if !refusesDirect(err) {
			return err
		}
		err = s.direct.Close()
		if s.direct = nil; err != nil {
			return err
		}
	}
	_, err := s.file.WriteAt(b.data, b.at)
	return err
}

// Close writes what is left, syncs the file and closes it, also after an error.
func (s *SyncedFile) Close() error {
	var err error
	if s.free != nil {
		close(s.full)
		err = <-s.done
		if err == nil && s.n > 0 {
			_, err = s.file.WriteAt(s.block[:s.n], s.at)
		}
		if s.block != nil {
			s.free <- s.block
		}
		for range blocks {
			err = errors.Join(err, freeBlock(<-s.free))
		}
		s.free, s.block = nil, nil
	}
	if s.direct != nil {
		err = errors.Join(err, s.direct.Close())
	}
	if err == nil {
		err = s.file.Sync()
	}
	return errors.Join(err, s.file.Close())
}
