package files

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zip"
)

// The limits of archives.
const (
	maxMembers = 100_000
	// maxDeflate bounds how far zip unpacks; deflate reaches 1,032 times the size.
	maxDeflate = 1_100
)

// Member is a file of an archive.
type Member struct {
	Name string // its path in the archive, without .. and a leading /
	Size int64  // bytes in the archive
	From io.Reader
}

// Archive returns true if name is a regular file with a zip archive or a tar archive; the tar archive
// may be compressed with zstd or gzip. The beginning of the file decides.
func Archive(name string) bool {
	f, _, err := openRegular(name, math.MaxInt64)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := Head(f)
	return err == nil && IsArchive(head)
}

// IsArchive returns true if head, as Head returns it, begins like a tar or zip archive.
func IsArchive(head []byte) bool { return isZip(head) || isTar(head) }

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// isTar recognizes the header of POSIX and GNU tar.
func isTar(head []byte) bool {
	return len(head) >= 512 && bytes.HasPrefix(head[257:], []byte("ustar"))
}

// EachMember visits the regular files of an archive, in its order. Nothing is
// unpacked to a disk, so that their paths are mere names. Of several members with
// one name the last is what unpacking leaves. A member in zstd, gzip or UTF-16 is
// decoded, too. EachMember stops if the text is out of proportion to the archive.
// It checks the checksums of the whole archive, whatever visit reads, and that
// of a compressed member if visit reads the member to its end. Errors: those of
// the system and of visit, *RefusedError, and what is wrong with the archive.
func EachMember(name string, visit func(Member) error) error {
	t, err := OpenText(name)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	visit = unpackMembers(name, t.size, visit)
	text := bufio.NewReaderSize(t.From, 256<<10)
	if start, _ := text.Peek(4); t.undo == nil && isZip(start) {
		return eachZip(name, t.file, t.size, visit)
	}
	return eachTar(name, text, visit)
}

// unpackMembers returns a visit that decodes compressed members before it calls
// visit, in an archive of size bytes. One bound holds for all of them together.
func unpackMembers(name string, size int64, visit func(Member) error) func(Member) error {
	all := &bounded{name: name, most: func() int64 { return maxRatio * size }}
	return func(m Member) error {
		from := bufio.NewReaderSize(m.From, 4<<10)
		m.From = from
		start, err := from.Peek(4)
		form := compression(start)
		if err != nil || form == "" {
			return visit(m) // visit meets the error
		}
		text, err := unpack(form, from)
		if err != nil {
			return archiveError(name, m.Name+", "+form, err)
		}
		all.from = text
		m.From = &memberReader{name, all}
		return errors.Join(visit(m), text.Close())
	}
}

// counter counts what is read, also by the goroutines of a decompressor.
type counter struct {
	from  io.Reader
	bytes atomic.Int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// bounded reads an archive's text, and refuses more than the greater of freely and most() bytes.
type bounded struct {
	name  string
	from  io.Reader
	most  func() int64
	bytes int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.bytes += int64(n)
	if most := max(freely, b.most()); b.bytes > most {
		return 0, &RefusedError{b.name, fmt.Sprintf("unpacks to more than %s, out of proportion to its size; want less", Size(most))}
	}
	return n, err
}

// eachTar visits the files of a tar archive.
func eachTar(name string, text io.Reader, visit func(Member) error) error {
	last := &lastBlock{from: text}
	r := tar.NewReader(last)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case err == io.EOF && last.zeros < 512:
			return archiveError(name, "tar", io.ErrUnexpectedEOF)
		case err == io.EOF:
			if _, err := io.Copy(io.Discard, text); err != nil { // the checksum follows the tar
				return archiveError(name, "tar", err)
			}
			return nil
		case err != nil:
			return archiveError(name, "tar", err)
		case n == maxMembers:
			return tooManyMembers(name)
		case h.Typeflag != tar.TypeReg:
			continue
		}
		if err := visit(Member{plainPath(h.Name), h.Size, &memberReader{name, r}}); err != nil {
			return err
		}
	}
}

// lastBlock counts the zeros at the end of what was read: a tar archive ends with a block of zeros.
type lastBlock struct {
	from  io.Reader
	zeros int
}

func (l *lastBlock) Read(b []byte) (int, error) {
	n, err := l.from.Read(b)
	zeros := n - len(bytes.TrimRight(b[:n], "\x00"))
	if zeros < n {
		l.zeros = 0
	}
	l.zeros += zeros
	return n, err
}

// memberReader reads a member, and names the archive in its errors.
type memberReader struct {
	archive string
	from    io.Reader
}

func (m *memberReader) Read(b []byte) (int, error) {
	n, err := m.from.Read(b)
	if err != nil && err != io.EOF {
		err = archiveError(m.archive, "archive", err)
	}
	return n, err
}

// eachZip visits the files of a zip archive. Entries may overlap, so one bound is for all.
func eachZip(name string, f *os.File, size int64, visit func(Member) error) error {
	r, err := zip.NewReader(f, size)
	if err != nil {
		return archiveError(name, "zip", err)
	}
	if len(r.File) > maxMembers {
		return tooManyMembers(name)
	}
	all := &bounded{name: name, most: func() int64 { return maxDeflate * size }}
	for _, x := range r.File {
		if !x.Mode().IsRegular() {
			continue
		}
		if x.Flags&1 != 0 {
			return &RefusedError{name, "is protected by a password; want it without one, or unpacked"}
		}
		from, err := x.Open()
		if err != nil {
			return archiveError(name, "zip", err)
		}
		all.from = from
		m := Member{plainPath(x.Name), int64(min(x.UncompressedSize64, math.MaxInt64)), &memberReader{name, all}}
		if err = visit(m); err == nil {
			_, err = io.Copy(io.Discard, m.From)
		}
		if err = errors.Join(err, from.Close()); err != nil {
			return err
		}
	}
	return nil
}

func archiveError(name, form string, err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return err
	}
	return &RefusedError{name, fmt.Sprintf("is no %s that can be read to its end: %v", form, err)}
}

func tooManyMembers(name string) error {
	return &RefusedError{name, fmt.Sprintf("has more than %d files; want the archive of one directory", maxMembers)}
}

// plainPath returns a path of an archive without ways out of it.
func plainPath(name string) string {
	return strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/")
}

// Text is a file that is decoded as it is read. If it is not
// compressed, From is an *io.SectionReader.
type Text struct {
	From io.Reader
	file *os.File
	size int64
	undo io.Closer // nil without compression
}

// OpenText opens a regular file and decodes zstd, gzip or UTF-16. Errors: those of the system,
// errors in compressed data, and *RefusedError, which reading can return too.
func OpenText(name string) (*Text, error) {
	f, size, err := openRegular(name, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	start := make([]byte, 4)
	n, err := f.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return nil, errors.Join(err, f.Close())
	}
	form := compression(start[:n])
	if form == "" {
		return &Text{io.NewSectionReader(f, 0, size), f, size, nil}, nil
	}
	packed := &counter{from: bufio.NewReaderSize(f, 256<<10)}
	u, err := unpack(form, packed)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %s: %w", name, form, err), f.Close())
	}
	return &Text{&bounded{name: name, from: u, most: func() int64 { return maxRatio * packed.bytes.Load() }}, f, size, u}, nil
}

// Close closes the file.
func (t *Text) Close() error {
	if t.undo != nil {
		_ = t.undo.Close() // its error changes nothing
	}
	return t.file.Close()
}
