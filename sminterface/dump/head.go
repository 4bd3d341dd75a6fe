package dump

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// headSize is how much of a file Head reads, in bytes of text. Comments and lines that
// newer tools put first are shorter.
const headSize = 64 << 10

// Head reads the beginning of a file, of which Recognize tells the form, and undoes zstd
// or gzip. Text has at most 64 KiB. Errors are those of from, and what is wrong with the
// compressed data so far.
func Head(from io.Reader) ([]byte, error) {
	first := make([]byte, len(zstdMagic))
	n, err := io.ReadFull(from, first)
	if first = first[:n]; err == io.EOF || err == io.ErrUnexpectedEOF {
		return first, nil
	}
	if err != nil {
		return nil, err
	}
	from = io.MultiReader(bytes.NewReader(first), from)
	switch {
	case bytes.HasPrefix(first, zstdMagic):
		d, err := zstd.NewReader(from, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		from = d
	case bytes.HasPrefix(first, gzipMagic):
		if from, err = gzip.NewReader(from); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(from, headSize))
}

// What compressed files begin with.
var (
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	gzipMagic = []byte{0x1f, 0x8b}
)
