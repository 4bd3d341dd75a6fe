package ibdiagnet

import (
	"io"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// counterSection has the counters of all ports.
const counterSection = "PM_INFO"

// Reading is what a database says of counters.
type Reading struct {
	*dump.Counters
	Date     string           // of the run; "" when it is not there
	Problems []fabric.Problem // sorted by line
}

// counterDraft is a reading that is being made.
type counterDraft struct {
	f    *fabric.Fabric
	made *dump.Counters
	seen []int // by PortID: the line of its row, 0 for none
}

// ReadCounters reads the counters of the ports of f, which need not come from this database:
// section PM_INFO. It needs no memory for the rest. Of a counter of 64 bits and that of
// PortCounters the greater value counts. name is for messages.
//
// Errors are as those of Read: no section PM_INFO, nodes and ports that f does not have, a second row
// of a port, and numbers that are none or have too many bits; with Options.Lenient these but the
// first are Problems.
func ReadCounters(name string, from io.Reader, f *fabric.Fabric, opt Options) (*Reading, error) {
	d := newDraft(name, opt)
	d.counters = &counterDraft{f, &dump.Counters{}, make([]int, f.NumPorts())}
	if err := d.readText(from); err != nil {
		return nil, err
	}
	if _, there := d.lines[counterSection]; !there {
		return nil, parseError(name, 0, nil, "no section %s; want a run of ibdiagnet without --skip pm", counterSection)
	}
	d.sortProblems()
	return &Reading{d.counters.made, d.date, d.problems}, nil
}

// readCounters reads the counters of a port.
func (d *draft) readCounters(r *row) {
	at, c := r.port(), d.counters
	n, known := c.f.NodeByGUID(at.node)
	if r.err == nil && (!known || at.num > c.f.Node(n).NumPorts) {
		r.refuse("the fabric has no port %s", at)
	}
	if r.err != nil {
		return
	}
	p := c.f.Port(n, at.num)
	if c.seen[p] > 0 {
		r.refuse("port %s has a row in line %d, too", at, c.seen[p])
		return
	}
	c.seen[p] = r.line
	for k := range dump.CounterCount {
		for i, bits := range []uint8{64, k.Info().Bits} {
			cell := 2 + 2*int(k) + i
			if v := k.Value(r.number(cell, 1<<bits-1), bits); r.err == nil && r.cell(cell) != "" {
				c.made.Set(c.f, k, p, v)
			}
		}
	}
}
