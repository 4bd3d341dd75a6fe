// Package plan reads and writes cabling plans, says what fabric a plan means, and what
// differs from it: cables that are miswired, missing in the fabric, or missing in the plan.
// It makes no promise to other modules.
//
// A plan names cables as operators write them: a device and one of its ports
// at each end. Three forms are read. UFM's network definition table (NDT) is
// CSV with a header, the short one of four columns or the long one with racks
// and cable lengths (from the tables and scripts that Mellanox/ufm_sdk_3.0
// publishes). Other CSV has four columns, with a header or without one.
// ibutils' .topo has a section for each system (ibdm-topo-file(1)).
//
// Bind finds the ports of a fabric that the names of a plan mean; bind.go says how.
package plan

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Plan is the cables of one or several files.
type Plan struct {
	Files    []string
	Cables   []Cable // in the order of the files
	Problems []*fabric.ParseError
	lenient  bool // skip rows that make no sense, and list them as Problems
}

// skip leaves a row out if the plan is lenient; else it returns the error.
func (p *Plan) skip(err *fabric.ParseError) error {
	if !p.lenient {
		return err
	}
	p.Problems = append(p.Problems, err)
	return nil
}

// Cable is a cable of a plan, as written.
type Cable struct {
	Ends [2]End
	File string
	Line int    // 1-based
	Text string // of the row, for messages
}

// End is one end of a cable, as written, without blanks around it.
type End struct {
	Device, Port string
	// Place is the rack and height, if the plan has such columns. It matters only if the same
	// device and port stand in several places: then they are placeholders.
	Place string
}

// String is DEVICE/PORT as in the reports of UFM, where "Port 21" of a switch is 21.
func (e End) String() string {
	port := e.Port
	if s, ok := strings.CutPrefix(fold(port), "port "); ok && isNumber(s) {
		port = s
	}
	return e.Device + "/" + port
}

// String is both ends, as in the reports of UFM.
func (c *Cable) String() string { return c.Ends[0].String() + " - " + c.Ends[1].String() }

func (c *Cable) fail(format string, args ...any) *fabric.ParseError {
	return &fabric.ParseError{File: c.File, Line: c.Line, Text: c.Text, Err: fmt.Errorf(format, args...)}
}

// The forms of a plan's file.
const (
	NDT  = "ndt"
	CSV  = "csv"
	Topo = "topo"
)

// Forms lists the forms, the one that most sites have first.
var Forms = []string{NDT, CSV, Topo}

// Parse reads a plan of any form; name is the file's, for errors. If lenient
// is set, it and Bind skip rows that make no sense. Errors are
// *fabric.ParseError, with a nil plan.
func Parse(name string, data []byte, lenient bool) (*Plan, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.IndexByte(data, '\n') < 0 { // as Excel on a Mac ends lines
		data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	}
	r := &reader{name, &Plan{Files: []string{name}, lenient: lenient}}
	read := r.csv
	if recognizeTopo(data) {
		read = r.topo
	}
	if err := read(data); err != nil {
		return nil, err
	}
	if len(r.Cables) == 0 {
		return nil, r.error(0, "", "the plan has no cable; want one of %s", formsHelp)
	}
	return r.Plan, nil
}

// formsHelp names the forms for messages.
const formsHelp = "UFM's NDT (a header with StartDevice, StartPort, EndDevice, EndPort), CSV of four columns (name, port, name, port), or a .topo file of ibutils"

// Join puts the cables of several plans together.
func Join(plans ...*Plan) *Plan {
	all := &Plan{}
	for _, p := range plans {
		all.Files = append(all.Files, p.Files...)
		all.Cables = append(all.Cables, p.Cables...)
		all.Problems = append(all.Problems, p.Problems...)
		all.lenient = all.lenient || p.lenient
	}
	return all
}

type reader struct {
	name string
	*Plan
}

func (r *reader) error(line int, text, format string, args ...any) *fabric.ParseError {
	return &fabric.ParseError{File: r.name, Line: line, Text: text, Err: fmt.Errorf(format, args...)}
}

// add adds the cable of a row, unless a name is missing or too long.
func (r *reader) add(line int, text string, a, b End) error {
	for _, e := range []End{a, b} {
		switch {
		case e.Device == "":
			return r.skip(r.error(line, text, "port %q of no device; want a name before it", e.Port))
		case e.Port == "":
			return r.skip(r.error(line, text, "no port of %q; want one like %s", e.Device, portHelp))
		case len(e.Device) > maxName || len(e.Port) > maxName:
			return r.skip(r.error(line, text, "a name of more than %d bytes", maxName))
		}
	}
	r.Cables = append(r.Cables, Cable{Ends: [2]End{a, b}, File: r.name, Line: line, Text: text})
	return nil
}

// maxName bounds the length of a name, bytes. Node descriptions have at most 64.
const maxName = 256

// portHelp says how ports are written, for messages.
const portHelp = `"Port 21", "Blade 16_Port 2/20", "1/12/2" or "HOST mlx5_0"`
