package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
)

// Limit returns how many bytes an input may have; start is its first
// StartSize bytes. Shorter inputs have no limit. An error refuses the input.
type Limit func(start []byte) (int64, error)

// StartSize is the number of bytes that a Limit is given.
const StartSize = 1 << 20

// The limits of compressed input. Dumps of fat trees of radix 24 and
// 36 unpack to 105 times their size with WriteZstd of room dump,
// 2,200 times with zstd -19 (forwarding tables 640) and 38 with gzip
// -9; a bomb of zstd to 50,000. Up to freely bytes any ratio passes.
const (
	maxRatio = 4_000
	freely   = 64 << 20
	// maxWindow is the most memory that a zstd frame gets, as in the zstd program.
	maxWindow = 128 << 20
)

// chunkSize is how much is read at a time, in bytes.
const chunkSize = 4 << 20

// ReadAll reads from, which messages call name, to its end, without
// decoding. It stops at limit, and at three quarters of the available
// memory. Within WithMaps it maps large regular files that are not
// compressed, which takes no memory: what it returns is read-only. done
// counts the bytes that are read. Errors: those of from, and *RefusedError.
func ReadAll(name string, from io.Reader, limit Limit, done *atomic.Int64) ([]byte, error) {
	size := int64(0) // of a regular file, else 0
	if f, ok := from.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		if data, err := readMapped(name, f, limit); data != nil || err != nil {
			done.Add(int64(len(data)))
			return data, err
		}
	}
	return readStream(name, from, done, func(start []byte) (bound, error) {
		b, err := newBound(name, start, limit)
		if size > b.most && err == nil {
			err = b.err
		}
		return b, err
	})
}

// readStream reads to the end. After StartSize bytes it asks bounded for a
// bound. At the end it holds the text twice. name is put before errors of from.
func readStream(name string, from io.Reader, done *atomic.Int64, bounded func(start []byte) (bound, error)) ([]byte, error) {
	var (
		parts  [][]byte // full ones
		length int64
		b      bound
	)
	part := make([]byte, 0, 64<<10)
	for {
		n, err := from.Read(part[len(part):min(cap(part), len(part)+chunkSize)])
		part = part[:len(part)+n]
		length += int64(n)
		done.Add(int64(n))
		if b.err != nil && length > b.most {
			return nil, b.err
		}
		switch {
		case err == io.EOF && len(parts) == 0:
			return part, nil
		case err == io.EOF:
			return slices.Concat(append(parts, part)...), nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case len(part) < cap(part):
		case cap(part) < StartSize:
			part = append(make([]byte, 0, 4*cap(part)), part...)
		case b.err == nil:
			if b, err = bounded(part); err != nil {
				return nil, err
			}
			fallthrough
		default:
			parts = append(parts, part)
			part = make([]byte, 0, chunkSize)
		}
	}
}

// bound is the most bytes that may be read, and the error if there are more.
type bound struct {
	most int64
	err  error
}

// newBound returns how many bytes of an input may be read, given that reading takes twice
// its size in memory.
func newBound(name string, start []byte, limit Limit) (bound, error) {
	memory := Available() / 4 * 3 / 2
	b := bound{memory, &RefusedError{name, fmt.Sprintf("has more than %s, which is what the memory allows; want less, or a machine with more memory", Size(memory))}}
	if compression(start) != "" {
		return b, nil
	}
	most, err := limit(start)
	if err != nil {
		return b, &RefusedError{name, err.Error()}
	}
	if most < memory {
		b = bound{most, tooLarge(name, most)}
	}
	return b, nil
}

// Text in UTF-16, as PowerShell's > and Excel's "Unicode text"
// write it, begins with a byte order mark.
const (
	littleEndian = "UTF-16LE"
	bigEndian    = "UTF-16BE"
)

// newUTF16 returns UTF-8 for text in UTF-16. Bytes that are no
// UTF-16 become the replacement character.
func newUTF16(form string, from io.Reader) io.Reader {
	order := unicode.LittleEndian
	if form == bigEndian {
		order = unicode.BigEndian
	}
	return unicode.UTF16(order, unicode.UseBOM).NewDecoder().Reader(from)
}

// compression recognizes zstd, gzip and UTF-16 by the first bytes, and returns "" for other data.
func compression(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return littleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return bigEndian
	}
	return ""
}

// foreignForms has forms that people take for text: their first bytes, name and remedy.
var foreignForms = []struct{ first, is string }{
	{"PK\x03\x04", "a zip archive or a workbook of Excel; want text: unpack it, or save the sheet as CSV"},
	{"\xd0\xcf\x11\xe0", "an old workbook of Excel; want text: save the sheet as CSV"},
	{"BZh", "compressed by bzip2; want it unpacked, or zstd or gzip"},
	{"\xfd7zXZ\x00", "compressed by xz; want it unpacked, or zstd or gzip"},
	{"7z\xbc\xaf\x27\x1c", "packed by 7-Zip; want it unpacked, or .zip or .tar.gz"},
	{"Rar!", "packed by RAR; want it unpacked, or .zip or .tar.gz"},
}

// Decompress decodes zstd, gzip or UTF-16, as the first bytes say, and returns
// other data as they are, not copied. It stops at the limit of the text, at
// three quarters of the available memory, and if the text is out of proportion
// to data. Errors: what is wrong with the compressed data, and *RefusedError.
func Decompress(name string, data []byte, limit Limit) ([]byte, error) {
	form := compression(data)
	if form == "" {
		for _, x := range foreignForms {
			if bytes.HasPrefix(data, []byte(x.first)) {
				return nil, &RefusedError{name, "is " + x.is}
			}
		}
		return noTar(name, data)
	}
	from, err := unpack(form, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, form, err)
	}
	defer func() { _ = from.Close() }()
	text, err := readStream(name+": "+form, from, new(atomic.Int64), func(start []byte) (bound, error) {
		b, err := newBound(name, start, limit)
		if most := max(freely, maxRatio*int64(len(data))); most < b.most {
			b = bound{most, &RefusedError{name, fmt.Sprintf("has %s of %s that unpack to more than %s, %d times as much; want less",
				Size(int64(len(data))), form, Size(most), most/int64(len(data)))}}
		}
		return b, err
	})
	if err != nil {
		return nil, err
	}
	return noTar(name, text)
}

// noTar refuses a tar archive, which is no text.
func noTar(name string, data []byte) ([]byte, error) {
	if isTar(data) {
		return nil, &RefusedError{name, "is a tar archive; want text, or the archive as the file of a topology"}
	}
	return data, nil
}

func unpack(form string, from io.Reader, opt ...zstd.DOption) (io.ReadCloser, error) {
	switch form {
	case "gzip":
		return gzip.NewReader(from)
	case littleEndian, bigEndian:
		return io.NopCloser(newUTF16(form, from)), nil
	}
	d, err := zstd.NewReader(from, append(opt, zstd.WithDecoderMaxWindow(maxWindow))...)
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// headSize is how many bytes of text Head reads. Comments and
// lines that newer tools put first are shorter.
const headSize = 64 << 10

// Head reads the beginning of a file, enough to recognize its form, and
// decodes zstd, gzip or UTF-16. The result has at most 64 KiB and no
// byte order mark. Errors are those of from, and broken compressed data.
func Head(from io.Reader) ([]byte, error) {
	first := make([]byte, 4)
	n, err := io.ReadFull(from, first)
	if first = first[:n]; err == io.EOF || err == io.ErrUnexpectedEOF {
		return first, nil
	}
	if err != nil {
		return nil, err
	}
	from = io.MultiReader(bytes.NewReader(first), from)
	if form := compression(first); form != "" {
		text, err := unpack(form, from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		defer func() { _ = text.Close() }()
		from = text
	}
	text, err := io.ReadAll(io.LimitReader(from, headSize))
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}
