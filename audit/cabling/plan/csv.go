package plan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
)

// The columns that a plan needs: device and port of the first end, then of the second.
const (
	device = iota
	port
	required = 4 // number of these columns
)

// Column names are compared by their letters and digits, in lower case. A name is a word for the
// end of the cable and a word for device or port, in either order. The first words of each list are
// UFM's.
var (
	endWords = [2][]string{
		{"start", "source", "src", "from", "local", "left", "near", "a", "aside", "sidea", "aend", "enda", "1", "von", "quelle", "quell"},
		{"end", "destination", "dest", "dst", "to", "remote", "peer", "right", "far", "target", "b", "bside", "sideb", "bend", "endb",
			"z", "zside", "sidez", "zend", "endz", "2", "nach", "ziel"},
	}
	thingWords = [2][]string{
		device: {"device", "node", "name", "host", "hostname", "switch", "system", "equipment", "equipement", "nodename", "devicename",
			"switchname", "nodeguid", "portnodedescription", "gert", "geraet"},
		port: {"port", "portnum", "portnumber", "portname", "portno", "portnr", "interface", "anschluss"},
	}
)

// columnKey returns the letters and digits of a column's name, in lower case.
func columnKey(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(name))
}

// columnNamed finds what a column has. side is the end of the cable, -1 if the
// name does not tell; thing is device or port. A word for the end alone means
// the device. ok is false for other names.
func columnNamed(name string) (side, thing int, ok bool) {
	key := strings.TrimPrefix(columnKey(name), "fields") // #Fields:StartDevice of UFM
	for thing, words := range thingWords {
		if slices.Contains(words, key) {
			return -1, thing, true
		}
		for side, ends := range endWords {
			for _, end := range ends {
				before, isBefore := strings.CutPrefix(key, end)
				behind, isBehind := strings.CutSuffix(key, end)
				if isBefore && slices.Contains(words, before) || isBehind && slices.Contains(words, behind) || thing == device && key == end && end > "9" {
					return side, thing, true
				}
			}
		}
	}
	return 0, 0, false
}

// header has the indices of the columns.
type header struct {
	at     [required]int // -1 for none
	places [2][]int      // for each end, the columns with the place of its device
}

// maxTitle bounds the rows above the header.
const maxTitle = 20

type csvRow struct {
	line   int
	fields []string
}

// csv reads NDTs and other CSV. After the header, a row that begins with # is a comment. A row
// without a second device and port is skipped, as UFM writes ports that are down.
func (r *reader) csv(data []byte) error {
	rows, err := r.rows(data)
	if err != nil {
		return err
	}
	h, from, err := r.header(rows)
	if err != nil {
		return err
	}
	for _, row := range rows[from:] {
		if err := r.row(h, row); err != nil {
			return err
		}
	}
	return nil
}

// separator returns the character between fields: that of a first line like "sep=;", which Excel
// reads, else the most frequent of comma, semicolon, tab and bar in the first lines. rest is the
// text without the sep line; skipped is 1 if there was one.
func separator(data []byte) (comma rune, rest []byte, skipped int) {
	const separators = ",;\t|"
	line, behind, _ := bytes.Cut(data, []byte("\n"))
	if is, ok := bytes.CutPrefix(bytes.Trim(line, "\"\r"), []byte("sep=")); ok && len(is) == 1 && strings.IndexByte(separators, is[0]) >= 0 {
		return rune(is[0]), behind, 1
	}
	lines := bytes.SplitAfterN(data, []byte("\n"), maxTitle+1)
	first := bytes.Join(lines[:min(maxTitle, len(lines))], nil)
	most := 0
	for _, c := range separators {
		if n := bytes.Count(first, []byte(string(c))); n > most || comma == 0 {
			comma, most = c, n
		}
	}
	return comma, data, 0
}

// rows splits the file into rows, without empty ones.
func (r *reader) rows(data []byte) ([]csvRow, error) {
	comma, data, skipped := separator(data)
	c := csv.NewReader(bytes.NewReader(data))
	c.FieldsPerRecord, c.LazyQuotes, c.Comma = -1, true, comma
	var rows []csvRow
	for {
		fields, err := c.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			if at, ok := errors.AsType[*csv.ParseError](err); ok {
				return nil, r.error(at.Line+skipped, "", "%w; want CSV", at.Err)
			}
			return nil, r.error(0, "", "%w", err)
		}
		empty := true
		for i, f := range fields {
			fields[i] = strings.TrimSpace(f)
			empty = empty && fields[i] == ""
		}
		line, _ := c.FieldPos(0)
		if !empty {
			rows = append(rows, csvRow{line + skipped, fields})
		}
	}
}

// header finds the header, and the first row after it. Without one, the first four columns are
// used.
func (r *reader) header(rows []csvRow) (*header, int, error) {
	var best *header
	most, at := 1, 0
	for i, row := range rows[:min(maxTitle, len(rows))] {
		h, found := headerOf(row.fields)
		if found == required {
			return h, i + 1, nil
		}
		if isCable(row.fields) {
			break
		}
		if found > most {
			best, most, at = h, found, i
		}
	}
	if best == nil {
		if len(rows) > 0 && len(rows[0].fields) >= required && !isCable(rows[0].fields) {
			return nil, 0, r.error(rows[0].line, strings.Join(rows[0].fields, ","),
				"this is no cable, nor a header with columns StartDevice, StartPort, EndDevice and EndPort; want one of them")
		}
		return &header{at: [required]int{0, 1, 2, 3}}, 0, nil
	}
	missing := slices.Index(best.at[:], -1)
	return nil, 0, r.error(rows[at].line, strings.Join(rows[at].fields, ","), "the header has no column %s; want StartDevice, StartPort, EndDevice and EndPort",
		[required]string{"StartDevice", "StartPort", "EndDevice", "EndPort"}[missing])
}

// isCable returns true if a row without a header may be a cable: both ports have a number.
func isCable(fields []string) bool {
	const digits = "0123456789"
	return len(fields) >= required && !strings.HasPrefix(fields[0], "#") && fields[0] != "" && fields[2] != "" &&
		strings.ContainsAny(fields[1], digits) && strings.ContainsAny(fields[3], digits)
}

// headerOf reads a row as a header; found counts the required columns. If
// names do not tell the end, as in Device, Port, Device, Port, the first
// column belongs to the first device.
func headerOf(fields []string) (h *header, found int) {
	h = &header{at: [required]int{-1, -1, -1, -1}}
	for i, f := range fields {
		for side, start := range []string{"startdevicelocation", "enddevicelocation"} {
			if strings.HasPrefix(columnKey(f), start) {
				h.places[side] = append(h.places[side], i)
			}
		}
	}
	for _, bare := range []bool{false, true} { // names that tell the end go first
		for i, f := range fields {
			side, thing, ok := columnNamed(f)
			if !ok || bare != (side < 0) {
				continue
			}
			if side < 0 {
				if side = 0; h.at[thing] >= 0 {
					side = 1
				}
			}
			if at := &h.at[2*side+thing]; *at < 0 {
				*at = i
				found++
			}
		}
	}
	if len(h.places[0]) == 0 { // no column tells places
		return h, found
	}
	for i := range max(0, h.at[device]) { // rack and height before the device
		h.places[0] = append(h.places[0], i)
	}
	for i := h.at[2+port] + 1; i < len(fields); i++ {
		if key := fold(fields[i]); strings.HasPrefix(key, "u height") || strings.HasPrefix(key, "rack") {
			h.places[1] = append(h.places[1], i)
		}
	}
	return h, found
}

func (r *reader) row(h *header, row csvRow) error {
	if strings.HasPrefix(row.fields[0], "#") {
		return nil
	}
	joined := strings.Join(row.fields, ",")
	if len(row.fields) < required {
		return r.skip(r.error(row.line, joined, "a row of %s; want %s", text.CountGrouped(len(row.fields), "column", "columns"), formsHelp))
	}
	get := func(i int) string {
		if i < len(row.fields) {
			return row.fields[i]
		}
		return ""
	}
	var ends [2]End
	for side := range ends {
		place := slices.DeleteFunc(text.Each(h.places[side], get), func(s string) bool { return s == "" })
		ends[side] = End{get(h.at[2*side+device]), get(h.at[2*side+port]), strings.Join(place, " ")}
	}
	a, b := &ends[0], &ends[1]
	if b.Device == "" && b.Port == "" && (a.Device == "") == (a.Port == "") {
		return nil // a port that stays free, or a row of remarks
	}
	return r.add(row.line, joined, *a, *b)
}
