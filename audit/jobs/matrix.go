package jobs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/traffic"
)

// maxMatrix is the greatest number of ranks of a matrix, and maxAmount the greatest value in it.
const (
	maxMatrix = 1 << 16
	maxAmount = 1 << 50
)

// ReadMatrix reads a communication matrix. It has a line for each rank that
// sends, with what each rank gets from it; or, under a head that names the
// columns, lines of a sender, a receiver and an amount. Commas, semicolons,
// tabs or blanks separate numbers. Errors are *fabric.ParseError.
func ReadMatrix(name string, data []byte) (*traffic.Matrix, error) {
	m := &matrixReader{}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimRight(strings.TrimPrefix(line, "\ufeff"), "\r\n")
		plain, _, _ := strings.Cut(line, "#")
		if plain = strings.TrimSpace(plain); plain == "" {
			continue
		}
		if err := m.add(cells(plain)); err != nil {
			return nil, &fabric.ParseError{File: name, Line: number, Text: shorten(line), Err: err}
		}
	}
	switch {
	case m.triples == nil && m.rows != m.columns:
		return nil, &fabric.ParseError{File: name, Line: number, Err: fmt.Errorf("a matrix of %d rows and %d columns; want as many rows as columns", m.rows, m.columns)}
	case m.ranks == 0:
		return nil, &fabric.ParseError{File: name, Err: errors.New("no numbers; want a communication matrix")}
	}
	return traffic.NewMatrix(m.ranks, m.entries), nil
}

// shorten cuts a line after its first 200 bytes, for an error.
func shorten(line string) string {
	const most = 200
	if len(line) <= most {
		return line
	}
	return strings.ToValidUTF8(line[:most], "") + ".."
}

func cells(line string) []string {
	for _, between := range []string{",", ";", "\t"} {
		if strings.Contains(line, between) {
			return text.Each(strings.Split(line, between), strings.TrimSpace)
		}
	}
	return strings.Fields(line)
}

// matrixReader reads a matrix line by line.
type matrixReader struct {
	rows, columns int
	triples       *[3]int // columns of sender, receiver and amount; nil for a dense matrix
	ranks         int     // for triples, one more than the highest
	entries       []traffic.Entry
}

// heads are the names that columns of triples may have.
var heads = [3][]string{
	{"src", "source", "sender", "from"},
	{"dst", "dest", "destination", "receiver", "to"},
	{"bytes", "size", "amount", "volume", "weight"},
}

func (m *matrixReader) add(list []string) error {
	if m.columns == 0 {
		m.columns = len(list)
		if m.head(list) {
			return nil
		}
	}
	switch {
	case len(list) != m.columns:
		return fmt.Errorf("%d cells; want %d as in the first line", len(list), m.columns)
	case m.triples != nil:
		src, err := rank(list[m.triples[0]])
		if err != nil {
			return err
		}
		dst, err := rank(list[m.triples[1]])
		if err != nil {
			return err
		}
		amount, err := amount(list[m.triples[2]])
		m.ranks = max(m.ranks, int(src)+1, int(dst)+1)
		m.entries = append(m.entries, traffic.Entry{Src: src, Dst: dst, Amount: amount})
		return err
	case m.columns > maxMatrix || m.rows == m.columns:
		return fmt.Errorf("more than %d ranks; want as many rows as columns", min(m.columns, maxMatrix))
	}
	for dst, cell := range list {
		amount, err := amount(cell)
		if err != nil {
			return err
		}
		if amount > 0 && dst != m.rows {
			m.entries = append(m.entries, traffic.Entry{Src: int32(m.rows), Dst: int32(dst), Amount: amount})
		}
	}
	m.rows++
	m.ranks = m.rows
	return nil
}

// head reads list as the head of triples; it returns false if a column is missing.
func (m *matrixReader) head(list []string) bool {
	at := [3]int{-1, -1, -1}
	for i, cell := range list {
		for k, names := range heads {
			if at[k] < 0 && slices.Contains(names, strings.ToLower(strings.Trim(cell, `"`))) {
				at[k] = i
			}
		}
	}
	if slices.Contains(at[:], -1) {
		return false
	}
	m.triples = &at
	return true
}

// amount reads how much a rank sends, from 0 to maxAmount, with or without a fraction.
func amount(cell string) (float64, error) {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || !(v >= 0 && v <= maxAmount) {
		return 0, fmt.Errorf("%q; want a number from 0 to %d", shorten(cell), int64(maxAmount))
	}
	return v, nil
}

// rank reads the number of a rank, which tools may write as 1.0 or 1e3.
func rank(cell string) (int32, error) {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || !(v >= 0 && v < maxMatrix) || v != math.Trunc(v) {
		return 0, fmt.Errorf("%q; want the number of a rank, a whole number from 0 to %d", shorten(cell), maxMatrix-1)
	}
	return int32(v), nil
}
